//! What decides page sizes on a machine, as tables.

use std::fmt::Display;

use host::Snapshot;
use host::snapshot::{Cache, CacheHolds, Choice, Cpu, Pool, Thp, ThpSize, Topology};
use model::{Bytes, Reading};

use draw::{Sheet, columns, counted, joined, or};

/// The inventory: machine, pools, THP, memory, settings.
pub fn sheets(snapshot: &Snapshot) -> Vec<Sheet> {
    let mut sheets = vec![brief(snapshot), pools(&snapshot.pools), policy(&snapshot.thp)];
    sheets.extend(snapshot.thp.known().map(sizes));
    sheets.extend([memory(snapshot), free_blocks(snapshot), settings(snapshot)]);
    sheets
}

/// The machine in a few lines.
pub fn brief(snapshot: &Snapshot) -> Sheet {
    let (cpu, kernel) = (&snapshot.cpu, &snapshot.kernel.release);
    let mut sheet = Sheet::new("Machine", [""; 0]);
    sheet.note(format!("CPU: {}; {}", cpu.model_name, online(&snapshot.topology)));
    sheet.note(format!("caches: {}", caches(cpu)));
    sheet.note(format!(
        "kernel: {kernel}; hypervisor: {}; KVM: {}",
        cpu.hypervisor,
        kvm(snapshot)
    ));
    let [total, free, tables] =
        ["MemTotal", "MemAvailable", "PageTables"].map(|name| short(&snapshot.memory.get(name)));
    sheet.note(format!("memory: {total}, {free} available, {tables} of page tables"));
    sheet.note(format!("page kinds: {}", listed(snapshot.page_kinds())));
    sheet.note(format!("THP: {}", thp(&snapshot.thp)));
    sheet.note(format!("hugetlb pools: {}", pool_counts(&snapshot.pools)));
    sheet
}

fn thp(thp: &Reading<Thp>) -> String {
    match thp {
        Reading::Unread(why) => format!("none ({why})"),
        Reading::Known(thp) => format!("enabled {}, defrag {}", chosen(&thp.enabled), chosen(&thp.defrag)),
    }
}

fn pool_counts(pools: &Reading<Vec<Pool>>) -> String {
    let pool = |pool: &Pool| {
        let [nr, free, overcommit] = [&pool.nr, &pool.free, &pool.overcommit].map(short);
        let size = pool.size.exact();
        let of_free = match pool.reserved.known() {
            Some(pages) if *pages > 0 => format!(", {pages} of them reserved"),
            _ => String::new(),
        };
        format!("{nr} pages of {size} ({free} free{of_free}, overcommit {overcommit})")
    };
    match pools {
        Reading::Unread(why) => format!("none ({why})"),
        Reading::Known(pools) => listed(pools.iter().map(pool)),
    }
}

fn listed(items: impl IntoIterator<Item = impl Display>) -> String {
    let items = joined(items, ", ");
    if items.is_empty() { "none".to_owned() } else { items }
}

fn online(topology: &Topology) -> String {
    let cpus = topology.online.as_ref().map(|cpus| cpus.len());
    let (cores, packages) = (topology.cores().len(), topology.packages().len());
    format!(
        "{cpus} online; {} in {}, {}; SMT {}",
        counted(cores, "core"),
        counted(packages, "package"),
        counted(topology.llcs().len(), "last-level cache"),
        yes(&topology.smt)
    )
}

fn yes(reading: &Reading<bool>) -> String {
    reading.as_ref().map(|&yes| if yes { "yes" } else { "no" }).to_string()
}

fn caches(cpu: &Cpu) -> String {
    let caches = cpu.caches.as_ref();
    caches.map(|caches| listed(caches.iter().map(cache))).to_string()
}

fn cache(cache: &Cache) -> String {
    let holds = match cache.holds {
        CacheHolds::Data => "d",
        CacheHolds::Instruction => "i",
        CacheHolds::Unified => "",
    };
    format!("L{}{holds} {}", cache.level, cache.size)
}

fn kvm(snapshot: &Snapshot) -> String {
    let kvm = &snapshot.kvm;
    match &kvm.device {
        Reading::Known(true) => format!("{}, {}", kvm.module, kvm.mmu),
        Reading::Known(false) => "the device is there but cannot be opened".to_owned(),
        Reading::Unread(why) => format!("({why})"),
    }
}

fn pools(pools: &Reading<Vec<Pool>>) -> Sheet {
    let amounts = ["#pages", "#free", "#reserved", "#surplus", "#overcommit"];
    let mut sheet = Sheet::new("hugetlb pools (pages)", ["page", "node"].into_iter().chain(amounts));
    match pools {
        Reading::Unread(why) => sheet.note(format!("none: {why}")),
        Reading::Known(pools) => pools.iter().for_each(|pool| pool_rows(&mut sheet, pool)),
    }
    sheet
}

/// One row for the pool; one more for each node where there are several.
fn pool_rows(sheet: &mut Sheet, pool: &Pool) {
    let [nr, free, reserved, surplus, overcommit] =
        [&pool.nr, &pool.free, &pool.reserved, &pool.surplus, &pool.overcommit].map(ToString::to_string);
    let mut row = |node: String, amounts: [String; 5]| sheet.row([pool.size.exact(), node].into_iter().chain(amounts));
    row("all".to_owned(), [nr, free, reserved, surplus, overcommit]);
    let nodes = pool.nodes.known().map(Vec::as_slice).unwrap_or_default();
    for node in nodes.iter().filter(|_| nodes.len() > 1) {
        let [nr, free, surplus] = [&node.nr, &node.free, &node.surplus].map(ToString::to_string);
        row(node.node.to_string(), [nr, free, String::new(), surplus, String::new()]);
    }
}

fn policy(thp: &Reading<Thp>) -> Sheet {
    let mut sheet = Sheet::new("Transparent huge pages", ["setting", "value"]);
    let thp = match thp {
        Reading::Known(thp) => thp,
        Reading::Unread(why) => {
            sheet.note(format!("none: {why}"));
            return sheet;
        }
    };
    sheet.row(["enabled", &chosen(&thp.enabled)]);
    sheet.row(["defrag", &chosen(&thp.defrag)]);
    sheet.row(["shmem_enabled", &chosen(&thp.shmem_enabled)]);
    sheet.row(["use_zero_page", &yes(&thp.use_zero_page)]);
    sheet.row(["shrink_underused", &yes(&thp.shrink_underused)]);
    for (name, value) in thp.khugepaged.known().into_iter().flat_map(|numbers| numbers.iter()) {
        sheet.row([format!("khugepaged/{name}"), value.to_string()]);
    }
    for file in &thp.unknown {
        sheet.row([
            file.as_str(),
            "not known to this version of hugewise: what it changes is not judged",
        ]);
    }
    sheet
}

fn chosen(choice: &Reading<Choice>) -> String {
    choice.as_ref().map(|choice| choice.chosen.clone()).to_string()
}

/// The sizes with a setting of their own, and what came of them since boot.
fn sizes(thp: &Thp) -> Sheet {
    let fields = columns![|size| &ThpSize;
        "#size" => size.size.exact(), "enabled" => or_none(&size.enabled), "in the end" => thp.policy(size.size),
        "shmem" => or_none(&size.shmem_enabled), "#faults that got one" => stat(size, "anon_fault_alloc"),
        "#faults that fell back" => stat(size, "anon_fault_fallback"), "#pages now" => stat(size, "nr_anon"),
    ];
    let mut sheet = Sheet::of("Transparent huge pages by size (mTHP)", fields, thp.sizes.iter());
    if thp.sizes.is_empty() {
        sheet.note("this kernel has no settings by size (they came with Linux 6.8)");
    }
    sheet
}

fn stat(size: &ThpSize, name: &str) -> String {
    or(size.stats.known().map(|numbers| short(&numbers.get(name))), "?")
}

fn or_none(choice: &Reading<Choice>) -> String {
    or(choice.known().map(|choice| &choice.chosen), "-")
}

fn short<T: Display>(reading: &Reading<T>) -> String {
    or(reading.known(), "-")
}

/// Lines of meminfo and vmstat about page sizes.
const AMOUNTS: [&str; 9] = [
    "MemTotal",
    "MemAvailable",
    "AnonPages",
    "AnonHugePages",
    "ShmemHugePages",
    "FileHugePages",
    "Hugetlb",
    "PageTables",
    "SecPageTables",
];
const COUNTS: [&str; 10] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_split_page",
    "thp_swpout_fallback",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "htlb_buddy_alloc_fail",
];

fn memory(snapshot: &Snapshot) -> Sheet {
    let mut sheet = Sheet::new("Memory", ["what", "#now or since boot"]);
    for name in AMOUNTS {
        sheet.row([name, &short(&snapshot.memory.get(name))]);
    }
    for name in COUNTS {
        sheet.row([name, &short(&snapshot.memory.count(name))]);
    }
    sheet.note("- = this kernel does not report it");
    sheet
}

/// Can the kernel still allocate huge pages? Free blocks of at least the PMD-mapped page, by node and zone.
fn free_blocks(snapshot: &Snapshot) -> Sheet {
    let base = snapshot.base_page();
    let pmd = snapshot.pmd_page().known().copied().unwrap_or(Bytes::mib(2));
    let head = format!("#free blocks of {} or more, as {}", pmd.exact(), pmd.exact());
    let mut sheet = Sheet::new("Free memory in large pieces", ["node", "zone", &head]);
    match (&snapshot.memory.free_blocks, base) {
        (Reading::Unread(why), _) => sheet.note(format!("not known: {why}")),
        (_, Reading::Unread(why)) => sheet.note(format!("not known without the size of base pages: {why}")),
        (Reading::Known(blocks), Reading::Known(base)) => {
            let order = (pmd.0 / base.0.max(1)).max(1).ilog2() as usize;
            for zone in blocks {
                sheet.row([&zone.node.to_string(), &zone.zone, &zone.at_least(order).to_string()]);
            }
        }
    }
    sheet
}

fn settings(snapshot: &Snapshot) -> Sheet {
    let mut sheet = Sheet::new("Settings", ["setting", "value"]);
    for (name, value) in snapshot.sysctls.iter().filter(|(_, value)| value.known().is_some()) {
        sheet.row([name, &value.to_string()]);
    }
    let command_line = &snapshot.kernel.command_line;
    sheet.row(["kernel command line", &command_line.to_string()]);
    let missing = snapshot.sysctls.iter().filter(|(_, value)| value.known().is_none());
    let missing = joined(missing.map(|(name, _)| name), ", ");
    if !missing.is_empty() {
        sheet.note(format!("not read here: {missing}"));
    }
    let ksm = snapshot.ksm.as_ref().map(|ksm| {
        let runs = ksm.get("run").map(|run| run == 1);
        let (runs, shared) = (yes(&runs), short(&ksm.get("pages_sharing")));
        format!("runs: {runs}, pages shared: {shared}")
    });
    sheet.row(["KSM", &ksm.to_string()]);
    let cgroup = &snapshot.cgroup;
    let version = cgroup
        .version
        .as_ref()
        .map(|version| format!("{version:?}").to_lowercase());
    let controller = yes(&cgroup.hugetlb);
    sheet.row(["cgroup", &format!("{version}; hugetlb controller: {controller}")]);
    let mounts = snapshot.mounts.as_ref().map(|mounts| {
        let mounts = mounts.iter();
        listed(mounts.map(|mount| format!("{} ({} {})", mount.target, mount.kind, mount.options.join(","))))
    });
    sheet.row(["hugetlbfs and huge tmpfs mounts", &mounts.to_string()]);
    sheet
}
