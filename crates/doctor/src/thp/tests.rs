//! Each rule of `thp` where it fires and where it must not.

use host::{Source, Tree};
use model::Reading;
use model::findings::Severity;
use programs::{Applied, Evidence};

use crate::machines::*;
use crate::{Verdict, explain};

const NEVER: &str = "always madvise [never]";
const ALWAYS: &str = "[always] madvise never";

fn advised(mib: u64) -> Mapped {
    anonymous(mib).flags("rd wr mr mw me ac hg")
}

#[test]
fn d01_memory_that_asked_in_vain() {
    let solver = || process(20, "solver").area(advised(256));
    found("D01", solver().on(thp(machine(), "enabled", NEVER)));
    clear("D01", solver().on(machine()));
    // Node.js asks for its code, which it leaves alone under that policy.
    let node = |option: &str| process(20, "node").arg(option).area(anonymous(300));
    let finding = found("D01", node("--use-largepages=on").on(thp(machine(), "enabled", NEVER)));
    assert!(finding.consequence.contains("huge pages for its code"), "{finding:?}");
    clear("D01", node("--use-largepages=off").on(thp(machine(), "enabled", NEVER)));
    clear("D01", node("--use-largepages=on").on(machine()));
    clear(
        "D01",
        process(20, "solver")
            .area(anonymous(256))
            .on(thp(machine(), "enabled", NEVER)),
    );
    let small = thp(
        thp(machine(), "enabled", NEVER),
        "hugepages-64kB/enabled",
        "always inherit [madvise] never",
    );
    clear("D01", solver().on(small));
    not_judged(
        "D01",
        solver().on(machine()).without("/sys/kernel/mm/transparent_hugepage"),
        "absent",
    );
    not_judged(
        "D01",
        solver().on(thp(machine(), "enabled", NEVER)).denied("/proc/20/smaps"),
        "denied",
    );
    let other = process(21, "other").on(thp(machine(), "enabled", NEVER));
    let mounts = "proc /proc proc rw,hidepid=invisible 0 0\n";
    let hiding = other.without("/proc/1").file("/proc/self/mounts", mounts);
    not_judged("D01", hiding, "hidepid=invisible");
}

#[test]
fn d02_redis_on_large_pages() {
    let redis = || process(21, "redis-server").area(anonymous(200).thp(100));
    found("D02", redis().on(thp(machine(), "enabled", ALWAYS)));
    clear("D02", redis().on(machine()));
    clear("D02", redis().thp_off().on(thp(machine(), "enabled", ALWAYS)));
    // Nor does D23 keep that policy beside it.
    let never = || {
        let grub = "GRUB_CMDLINE_LINUX=\"transparent_hugepage=never\"\n";
        thp(machine(), "enabled", ALWAYS).file("/etc/default/grub", grub)
    };
    let keeps = |tree| found("D23", tree).fix.iter().any(|fix| fix.starts_with("or to keep"));
    assert!(keeps(never()) && !keeps(redis().on(never())));
    let before = found("D02", redis().on(thp(machine(), "enabled", NEVER)));
    assert!(before.fix[0].starts_with("restart it"), "{before:?}");
    let since = process(21, "redis-server").area(anonymous(200));
    clear("D02", since.on(thp(machine(), "enabled", NEVER)));
    clear(
        "D02",
        process(21, "redis-server")
            .area(anonymous(200))
            .on(thp(machine(), "enabled", ALWAYS)),
    );
}

#[test]
fn d03_mongodb_by_version() {
    let mongo = |version: &str| {
        process(22, "mongod")
            .env(&format!("MONGO_VERSION={version}"))
            .area(anonymous(100))
    };
    let always = || thp(machine(), "enabled", ALWAYS);
    found("D03", mongo("7.0.12").on(always()));
    clear("D03", mongo("7.0.12").on(machine()));
    clear("D03", mongo("7.0.12").on(thp(machine(), "enabled", NEVER)));
    let kept = mongo("7.0.12").area(anonymous(200).thp(100));
    found("D03", kept.on(thp(machine(), "enabled", NEVER)));
    found("D03", mongo("8.0.4").on(machine()));
    let tuned = thp(always(), "defrag", "always defer [defer+madvise] madvise never");
    clear("D03", mongo("8.0.4").on(tuned));
    let packaged = process(22, "mongod").area(anonymous(100)).on(always());
    not_judged("D03", packaged.clone(), "/var/lib/dpkg/status");
    found(
        "D03",
        packaged.file(
            "/var/lib/dpkg/status",
            "Package: mongodb-org-server\nStatus: x\nVersion: 6.0.1\n\nPackage: zlib\n",
        ),
    );
}

/// Reclaim of the own node alone, on several nodes; a database's vendor asks for another mode.
#[test]
fn d05_zone_reclaim() {
    let one = |mode: u64| machine().line("/proc/sys/vm/zone_reclaim_mode", mode);
    let two = |mode: u64| one(mode).line("/sys/devices/system/node/node1/cpulist", "4-7");
    let waits = |tree: Tree| vmstat(tree, &[("zone_reclaim_success", 900), ("zone_reclaim_failed", 100)]);
    let alone = found("D05", waits(two(1)));
    assert_eq!(alone.severity, Severity::Info);
    assert_eq!(alone.fix[0], "sysctl -w vm.zone_reclaim_mode=0");
    // The mode alone is a choice, as of tuned's profiles for HPC.
    clear("D05", two(1));
    let tree = process(9, "mongod").on(two(1).file("/etc/sysctl.d/9.conf", "vm.zone_reclaim_mode = 1\n"));
    let database = found("D05", tree);
    assert_eq!(database.severity, Severity::Warning);
    assert!(database.fix[1].contains("/etc/sysctl.d/9.conf:1"), "{database:?}");
    // A package's own profile is left as it is.
    let profile = "[sysctl]\nvm.zone_reclaim_mode=1\n";
    let tuned = waits(two(1)).line("/etc/tuned/active_profile", "hpc-compute");
    let tuned = found("D05", tuned.file("/usr/lib/tuned/hpc-compute/tuned.conf", profile));
    assert!(
        tuned.evidence.iter().any(|seen| seen.source.ends_with("tuned.conf:2")),
        "{tuned:?}"
    );
    assert!(
        tuned.fix[1].contains("vm.zone_reclaim_mode=0 >> /etc/sysctl.d/"),
        "{tuned:?}"
    );
    clear("D05", waits(two(0)));
    clear("D05", waits(one(1)));
}

/// Faults that only show the kernel where a page is used: many, and hardly a page moves by them.
#[test]
fn d05_numa_balancing() {
    let counts = |faults: u64, moved: u64| {
        let tree = vmstat(
            machine(),
            &[("numa_hint_faults", faults), ("numa_pages_migrated", moved)],
        );
        let tree = tree.line("/sys/devices/system/node/node0/cpulist", "0-3");
        let tree = tree.line("/sys/devices/system/cpu/online", "0-7");
        tree.line("/proc/sys/kernel/numa_balancing", 1)
    };
    let two = |tree: Tree| tree.line("/sys/devices/system/node/node1/cpulist", "4-7");
    // 90000 s since boot.
    let (many, few) = (1_440_000_000, 4_000_000);
    let finding = found("D05", two(counts(many, few)));
    assert!(
        finding
            .consequence
            .contains("16000 page faults a second since boot, 2000 on each CPU")
            && finding.consequence.contains("Only 0.3 % of these faults"),
        "{finding:?}"
    );
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.fix[0], "sysctl -w kernel.numa_balancing=0");
    assert!(
        finding.fix[1].contains("/etc/sysctl.d/") && finding.fix[2].contains("numactl"),
        "{finding:?}"
    );
    let tiers = two(counts(many, few)).line("/proc/sys/kernel/numa_balancing", 3);
    assert_eq!(found("D05", tiers).fix[0], "sysctl -w kernel.numa_balancing=2");
    clear("D05", counts(many, few));
    // It moves pages, or is hardly at work.
    clear("D05", two(counts(many, 72_000_000)));
    // A settled host: 2000 a second are 250 on each CPU.
    clear("D05", two(counts(180_000_000, 500_000)));
    for (file, value) in [
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/proc/sys/kernel/numa_balancing", "2"),
        ("/proc/uptime", "900.00 900.00"),
    ] {
        clear("D05", two(counts(many, few)).line(file, value));
    }
}

#[test]
fn d05_faults_that_wait_for_compaction() {
    let always = || thp(machine(), "defrag", "[always] defer defer+madvise madvise never");
    let stalled = |stalls| vmstat(always(), &[("compact_stall", stalls)]);
    assert_eq!(found("D05", stalled(500)).severity, Severity::Info);
    assert_eq!(found("D05", stalled(5000)).severity, Severity::Warning);
    clear("D05", stalled(99));
    clear("D05", machine());
    clear("D05", thp(stalled(5000), "enabled", NEVER));
}

#[test]
fn d06_khugepaged_makes_much_of_little() {
    let greedy = || thp(thp(machine(), "enabled", ALWAYS), "khugepaged/max_ptes_none", 511);
    // The kernel's default, without an effect.
    clear("D06", greedy());
    assert_eq!(
        found("D06", vmstat(greedy(), &[("thp_underused_split_page", 9999)])).severity,
        Severity::Warning
    );
    clear("D06", thp(machine(), "enabled", ALWAYS));
    let asked = found("D06", process(70, "yb-tserver").area(anonymous(64)).on(greedy()));
    assert_eq!(asked.severity, Severity::Warning);
    assert!(asked.fix.join("\n").contains("max_ptes_none=0"), "{asked:?}");
    let keeper = process(71, "clickhouse-keep").area(anonymous(4096).thp(3072));
    let named = found("D06", process(70, "nginx").area(anonymous(64)).on(keeper.on(greedy())));
    assert!(
        named
            .consequence
            .contains("the program with most THP is clickhouse-keep (71): 3G"),
        "{named:?}"
    );
    assert!(
        named
            .fix
            .iter()
            .any(|fix| fix.contains("the vendor of ClickHouse asks for madvise: echo madvise")),
        "{named:?}"
    );
    clear("D06", thp(machine(), "khugepaged/max_ptes_none", 511));
    // What programs gave back of huge pages that they keep in part is charged to them, and in no RSS.
    let listed = |mib: u64| meminfo(machine(), &[("Inactive(anon)", mib << 10)]);
    let waiting = found("D06", listed(3000));
    assert!(
        waiting.consequence.starts_with("2.9G of anonymous memory"),
        "{waiting:?}"
    );
    assert_eq!(waiting.severity, Severity::Info, "what pins it may be something else");
    let fixes = waiting.fix.join("\n");
    assert!(
        fixes.contains("memory.reclaim") && !fixes.contains("echo madvise"),
        "{waiting:?}"
    );
    clear("D06", listed(1000));
}

#[test]
fn d08_faults_that_fell_back() {
    let finding = found(
        "D08",
        vmstat(machine(), &[("thp_fault_alloc", 1000), ("thp_fault_fallback", 1000)]),
    );
    assert!(finding.consequence.contains("50 %"), "{}", finding.consequence);
    clear(
        "D08",
        vmstat(machine(), &[("thp_fault_alloc", 10), ("thp_fault_fallback", 10)]),
    );
    clear("D08", machine());
    let size = |tree, kib: u32, got, refused| {
        let at = |name: &str| format!("hugepages-{kib}kB/stats/anon_fault_{name}");
        thp(thp(tree, &at("alloc"), got), &at("fallback"), refused)
    };
    let both = size(size(machine(), 64, 500, 4500), 512, 8000, 2000);
    let both = vmstat(both, &[("thp_fault_alloc", 10), ("thp_fault_fallback", 10)]);
    // One thing to do is one finding, which names the sizes.
    assert_eq!(
        verdict("D08", both.clone()),
        Verdict::Found(vec![found("D08", both.clone())])
    );
    let finding = found("D08", both);
    assert!(
        finding
            .consequence
            .ends_with("90 % of those for 64K, 20 % of those for 512K"),
        "{}",
        finding.consequence
    );
    assert_eq!(finding.evidence.len(), 4, "{finding:?}");
}

#[test]
fn d09_memory_in_small_pieces() {
    let blocks = |large: u64| {
        machine().file(
            "/proc/buddyinfo",
            format!("Node 0, zone Normal 900000 9 9 9 9 9 9 9 9 0 {large}\n"),
        )
    };
    found("D09", blocks(0));
    clear("D09", blocks(500));
    clear(
        "D09",
        machine().file("/proc/buddyinfo", "Node 0, zone Normal 9 9 9 9 9 9 9 9 9 0 0\n"),
    );
    not_judged("D09", machine().denied("/proc/buddyinfo"), "denied");
}

#[test]
fn d10_large_mappings_that_may_not() {
    let of = |release: &str| thp(machine().line("/proc/sys/kernel/osrelease", release), "enabled", ALWAYS);
    let always = || of("6.18.2");
    let with = |area: Mapped| process(23, "app").area(area);
    assert_eq!(
        found("D10", with(anonymous(100).not_eligible()).on(always())).severity,
        Severity::Warning
    );
    // Nothing shows why: an older kernel, or one whose other memory gets THP without advice.
    clear("D10", with(anonymous(100).not_eligible()).on(of("5.14.0")));
    let beside = with(anonymous(100).not_eligible()).area(anonymous(100).thp(100));
    clear("D10", beside.on(always()));
    let refused = anonymous(100).not_eligible().flags("rd wr nh");
    assert_eq!(found("D10", with(refused).on(always())).severity, Severity::Info);
    clear("D10", with(anonymous(100)).on(always()));
    clear("D10", with(anonymous(100).not_eligible()).on(machine()));
    clear("D10", with(anonymous(10).not_eligible()).on(always()));
}

#[test]
fn d11_a_tree_without_transparent_pages() {
    let child = |tree| process(31, "solver").parent(30).thp_off().area(anonymous(200)).on(tree);
    let launcher = process(30, "launcher").thp_off().area(anonymous(2));
    let finding = found("D11", child(launcher.on(machine())));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.consequence.contains("inherited from launcher (30)"),
        "{}",
        finding.consequence
    );
    assert!(
        finding.fix[1].starts_with("or start solver from something else than launcher"),
        "{finding:?}"
    );
    assert!(!finding.fix.concat().contains("MemoryTHP"), "{finding:?}");
    let by_bun = found(
        "D11",
        child(process(30, "bun").thp_off().area(anonymous(2)).on(machine())),
    );
    assert!(by_bun.fix[0].contains("MIMALLOC_ALLOW_THP=1"), "{by_bun:?}");
    let own = found("D11", child(process(30, "launcher").area(anonymous(2)).on(machine())));
    assert_eq!(own.severity, Severity::Info);
    // A fork of it is more of the same program.
    let fork = found(
        "D11",
        child(process(30, "solver").thp_off().area(anonymous(2)).on(machine())),
    );
    assert_eq!(fork.severity, Severity::Info, "{fork:?}");
    // Ruby switches it off for itself; what it starts has that against its will.
    let puma = || process(30, "puma").thp_off().area(anonymous(200));
    let worker = |tree| process(32, "ruby").parent(30).thp_off().area(anonymous(200)).on(tree);
    clear("D11", worker(puma().on(machine())));
    let job = found("D11", child(worker(puma().on(machine()))));
    assert!(job.consequence.contains("for 1 process with"), "{job:?}");
    let started = found(
        "D11",
        child(process(30, "ruby").thp_off().area(anonymous(2)).on(machine())),
    );
    assert!(
        started.fix[0].starts_with("ruby switches it off for itself"),
        "{started:?}"
    );
    clear("D11", process(31, "solver").area(anonymous(200)).on(machine()));
    // It calls prctl itself.
    clear(
        "D11",
        process(31, "ceph-osd").thp_off().area(anonymous(200)).on(machine()),
    );
    clear(
        "D11",
        process(31, "redis-server").thp_off().area(anonymous(200)).on(machine()),
    );
}

#[test]
fn d12_services_that_have_it_where_they_ask() {
    let service = |release: &str, value: &str| {
        let tree = machine().line("/proc/sys/kernel/osrelease", release);
        let unit = tree.file(
            "/etc/systemd/system/app.service",
            format!("[Service]\nMemoryTHP={value}\n"),
        );
        process(32, "app")
            .cgroup("/system.slice/app.service")
            .area(anonymous(100))
            .on(unit)
    };
    found("D12", service("6.18.1", "madvise"));
    clear("D12", service("6.17.0", "madvise"));
    clear("D12", service("6.18.1", "inherit"));
}

#[test]
fn d14_glibc_that_asks_by_itself_on_arm() {
    let arm = |glibc: &str| {
        let library = anonymous(2).named("/usr/lib/libc.so.6").perms("r-xp");
        let tree = machine().file(
            "/proc/cpuinfo",
            "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n",
        );
        let tree = tree.file(
            "/usr/lib/libc.so.6",
            format!("\u{7f}ELF GNU C Library (GNU libc) stable release version {glibc}.\n"),
        );
        process(33, "daemon").area(library).area(anonymous(90).thp(40)).on(tree)
    };
    found("D14", arm("2.43"));
    clear("D14", arm("2.42"));
    clear("D14", thp(arm("2.43"), "enabled", NEVER));
    clear("D14", machine());
}

fn tuned(tunables: &str) -> Process {
    process(34, "app").env(&format!("GLIBC_TUNABLES={tunables}"))
}

#[test]
fn d15_malloc_that_was_told_to_use_an_empty_pool() {
    let two = || tuned("glibc.malloc.hugetlb=2").area(anonymous(100));
    found("D15", two().on(machine()));
    clear("D15", two().on(pool(machine(), "2048kB", 100, 100, 0)));
    clear(
        "D15",
        two().area(hugetlb(64, 2048)).on(pool(machine(), "2048kB", 32, 0, 0)),
    );
    clear("D15", tuned("glibc.malloc.hugetlb=1").on(machine()));
    partly("D15", two().on(machine()).denied("/proc/34/environ"), "denied");
    // Other allocators that are told to take a pool's pages.
    let with = |variable: &str| process(34, "api").env(variable).area(anonymous(2048));
    let reserve = || with("MIMALLOC_RESERVE_HUGE_OS_PAGES=4");
    let finding = found("D15", reserve().on(pool(machine(), "1048576kB", 3, 3, 0)));
    assert!(
        finding.consequence.contains("4 pages of 1G, and 3 can be had"),
        "{finding:?}"
    );
    assert!(finding.fix[0].starts_with("1 more page of 1G: "), "{finding:?}");
    assert!(finding.fix[0].contains("hugepagesz=1G hugepages=4"), "{finding:?}");
    clear("D15", reserve().on(pool(machine(), "1048576kB", 4, 4, 0)));
    clear("D15", with("MIMALLOC_RESERVE_HUGE_OS_PAGES=0").on(machine()));
    let files = || with("TCMALLOC_MEMFS_MALLOC_PATH=/dev/hugepages/tc");
    found("D15", files().on(machine()));
    // .NET that runs has a limit of its heap, and its pages, wherever they are set.
    let dotnet = process(35, "dotnet").env("DOTNET_GCLargePages=1").area(anonymous(512));
    clear("D15", dotnet.on(machine()));
    clear("D15", files().on(pool(machine(), "2048kB", 32, 32, 0)));
    // oneTBB's allocator advises nothing: it has THP under `always` alone.
    let with_code = |variable, file| with(variable).area(anonymous(1).named(file).perms("r-xp"));
    let tbb = || with_code("TBB_MALLOC_USE_HUGE_PAGES=1", "/usr/lib/libtbbmalloc.so.2");
    let finding = found("D15", tbb().on(machine()));
    assert!(
        finding.fix.join("\n").contains("or use THP: the policy `always`"),
        "{finding:?}"
    );
    clear("D15", tbb().on(thp(machine(), "enabled", ALWAYS)));
    clear("D15", tbb().on(pool(machine(), "2048kB", 32, 32, 0)));
    let python = with_code("PYTHON_PYMALLOC_HUGEPAGES=1", "/usr/bin/python3.15").on(machine());
    let python = found("D15", python);
    assert!(python.consequence.starts_with("pymalloc of api"), "{python:?}");
    // A shell or a server that was handed the variable does not read it.
    clear(
        "D15",
        with_code("PYTHON_PYMALLOC_HUGEPAGES=1", "/usr/sbin/nginx").on(machine()),
    );
}

/// Pages of another size are of no use to what takes those of the default size, or of a size that it names.
#[test]
fn d15_pages_of_another_size_do_not_serve_malloc() {
    let one_gib = || pool(machine(), "1048576kB", 4, 4, 0);
    let asking = |value: &str| tuned(&format!("glibc.malloc.hugetlb={value}")).area(anonymous(100));
    let finding = found("D15", asking("2").on(one_gib()));
    assert!(
        finding
            .consequence
            .contains("take pages of 2M, the default size, and 0 can be had"),
        "{finding:?}"
    );
    assert!(finding.fix[0].contains("fill the pool of 2M"), "{finding:?}");
    // The idle pool is not its only fault.
    clear("A24", asking("2").area(anonymous(4096)).on(one_gib()));
    clear("D15", asking("1073741824").on(one_gib()));
    found("D15", asking("1073741824").on(pool(machine(), "2048kB", 64, 64, 0)));
}

#[test]
fn d15_a_page_size_that_sglang_names() {
    let with = |size: &str| {
        process(34, "sglang::schedul")
            .env(&format!("SGLANG_HUGEPAGE_SIZE={size}"))
            .area(shared(2048, "/dev/zero (deleted)"))
            .area(anonymous(2).named("/usr/bin/python3.12").perms("r-xp"))
    };
    let two = || pool(machine(), "2048kB", 2048, 2048, 0);
    let finding = found("D15", with("1GB").on(two()));
    assert!(
        finding.consequence.contains("pages of 1G, and 0 can be had"),
        "{finding:?}"
    );
    assert!(
        finding.fix.join("\n").contains("SGLANG_HUGEPAGE_SIZE=2MB"),
        "{finding:?}"
    );
    // The idle pool is not its only fault.
    clear("A24", with("1GB").on(two()));
    clear("D15", with("2MB").on(two()));
    clear("D15", with("").on(two()));
    // A machine that has no pages of 1G, and nothing else to name.
    let lacking = machine().without("/sys/kernel/mm/hugepages/hugepages-1048576kB");
    let fix = found("D15", with("1GB").on(lacking)).fix.join("\n");
    assert!(
        fix.contains("this machine has no pages of 1G, and has those of 2M") && !fix.contains("hugepagesz=1G"),
        "{fix}"
    );
}

#[test]
fn d16_malloc_with_a_gap_in_the_middle() {
    found(
        "D16",
        tuned("glibc.malloc.hugetlb=1")
            .area(anonymous(200).thp(20))
            .on(machine()),
    );
    clear(
        "D16",
        tuned("glibc.malloc.hugetlb=1")
            .area(anonymous(200).thp(180))
            .on(machine()),
    );
    let all = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=67108864";
    clear("D16", tuned(all).area(anonymous(200).thp(20)).on(machine()));
}

#[test]
fn d18_morecore_after_its_end() {
    let app = |library: &str| {
        process(35, "app")
            .env("HUGETLB_MORECORE=yes")
            .area(anonymous(2).named(library).perms("r-xp"))
    };
    let modern = || {
        machine().file(
            "/lib/libc.so.6",
            "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n",
        )
    };
    found("D18", app("/lib/libc.so.6").on(modern()));
    clear("D18", app("/lib/libc-2.31.so").on(machine()));
    clear("D18", app("/lib/libc.so.6").area(hugetlb(64, 2048)).on(modern()));
    partly("D18", app("/lib/libc.so.6").on(machine()), "libc.so.6");
    let preload = process(35, "app")
        .env("LD_PRELOAD=/usr/lib/libhugetlbfs.so")
        .area(anonymous(2).named("/lib/libc.so.6"));
    found("D18", preload.on(modern()));
}

#[test]
fn d18_a_page_size_that_the_kernel_has_not() {
    let mpi = |size: &str| {
        process(35, "hello")
            .env(&format!("HUGETLB_DEFAULT_PAGE_SIZE={size}"))
            .area(anonymous(100))
            .area(anonymous(2).named("/usr/lib64/libhugetlbfs.so").perms("r-xp"))
    };
    let filled = || pool(machine(), "2048kB", 100, 100, 0);
    let finding = found("D18", mpi("8M").on(filled()));
    assert!(finding.consequence.contains("huge pages of 2M and 1G"), "{finding:?}");
    assert!(
        finding.fix[0].starts_with("HUGETLB_DEFAULT_PAGE_SIZE=2M"),
        "{finding:?}"
    );
    clear("D18", mpi("2M").on(filled()));
    clear(
        "D18",
        mpi("8M")
            .area(hugetlb(64, 2048))
            .on(pool(machine(), "2048kB", 100, 68, 0)),
    );
}

#[test]
fn d18_a_variable_that_no_jemalloc_reads() {
    let server = || {
        process(36, "server")
            .env("MALLOC_CONF=background_thread:true,thp:always")
            .area(anonymous(2).named("/usr/lib/libc.so.6").perms("r-xp"))
    };
    let finding = found("D18", server().area(anonymous(200)).on(machine()));
    assert!(finding.fix.join("\n").contains("_RJEM_MALLOC_CONF"), "{finding:?}");
    assert_eq!(finding.severity, Severity::Warning);
    clear("D18", server().area(advised(200)).on(machine()));
    clear("D18", server().area(anonymous(20)).on(machine()));
    let library = anonymous(2).named("/usr/lib/libjemalloc.so.2").perms("r-xp");
    clear("D18", server().area(anonymous(200)).area(library).on(machine()));
    clear(
        "D18",
        server().area(anonymous(200)).on(thp(machine(), "enabled", ALWAYS)),
    );
}

#[test]
fn d21_shared_memory_on_base_pages() {
    let much = |policy: &str| {
        let tree = meminfo(machine(), &[("Shmem", 4 << 20)]);
        thp(tree, "shmem_enabled", policy)
    };
    let never = "always within_size advise [never] deny force";
    assert_eq!(found("D21", much(never)).severity, Severity::Info);
    let guest = process(36, "qemu-system-x86_64").area(shared(2048, "/memfd:ram (deleted)"));
    assert_eq!(found("D21", guest.on(much(never))).severity, Severity::Warning);
    // PostgreSQL advises none of its shared memory.
    let server = process(37, "postgres").arg("-D").arg("/data");
    let server = server.area(shared(3000, "/dev/zero (deleted)"));
    clear("D21", server.on(much(never)));
    clear("D21", much("always within_size [advise] never deny force"));
    clear("D21", thp(machine(), "shmem_enabled", never));
}

#[test]
fn d21_shared_memory_on_thp_beside_a_policy_of_never() {
    let with = |enabled: &str, shared_gib: u64| {
        let tree = meminfo(machine(), &[("ShmemHugePages", shared_gib << 20)]);
        let tree = thp(tree, "shmem_enabled", "[always] within_size advise never deny force");
        let cache = process(36, "cachesrv").area(shared(2048, "/dev/zero (deleted)").thp(2048));
        cache.on(thp(tree, "enabled", enabled))
    };
    let finding = found("D21", with(NEVER, 2));
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.consequence.contains("2G of it in cachesrv (36)"), "{finding:?}");
    assert!(
        finding.fix[0].contains("echo never > ") && finding.fix[0].ends_with("/shmem_enabled"),
        "{finding:?}"
    );
    clear("D21", with(ALWAYS, 2));
    clear("D21", with(NEVER, 0));
}

#[test]
fn d29_a_policy_that_a_vendor_advises_against() {
    let server = |name: &str| process(70, name).area(anonymous(4096).thp(2048));
    let always = || thp(machine(), "enabled", ALWAYS);
    let finding = found("D29", server("clickhouse-serv").on(always()));
    assert!(
        finding.consequence.contains("vendor of ClickHouse asks for madvise"),
        "{finding:?}"
    );
    found("D29", server("clickhouse-keep").on(always()));
    // Each product has its own page, and none another's.
    assert!(finding.link.contains("clickhouse.com"), "{finding:?}");
    let hana = found("D29", server("hdbindexserver").on(always()));
    assert!(hana.link.ends_with("2131662"), "{hana:?}");
    let couchbase = found("D29", server("beam.smp").arg("/opt/couchbase/lib").on(always()));
    assert!(couchbase.link.contains("couchbase.com"), "{couchbase:?}");
    for name in ["ns-slapd", "cockroach", "doris_be", "arangod", "nuodb"] {
        found("D29", server(name).on(always()));
    }
    clear("D29", server("beam.smp").on(always()));
    clear("D29", server("clickhouse-serv").on(machine()));
    clear("D29", process(70, "tikv-server").area(anonymous(64)).on(always()));
    // Oracle's memory is in many processes; Vertica asks for `always` where it runs on Red Hat's 7.
    let session = |pid, thp| process(pid, "oracle_1_orcl").area(anonymous(1024).thp(thp));
    let sessions = |thp| session(72, thp).on(session(71, thp).on(always()));
    let finding = found("D29", sessions(700));
    assert!(
        finding.consequence.contains("2 processes of Oracle Database have 1.4G"),
        "{finding:?}"
    );
    clear("D29", sessions(300));
    // One that could not be read hides nothing of what the others have, and leaves the question open where they have little.
    let and_denied = |thp| {
        session(73, 1)
            .on(sessions(thp))
            .denied("/proc/73/smaps")
            .denied("/proc/73/smaps_rollup")
    };
    found("D29", and_denied(700));
    not_judged("D29", and_denied(300), "denied");
    // Pages that they share count for none; another product's agent is none of them.
    let sharing = |pid| process(pid, "oracle_1_orcl").area(shared(1024, "/SYSV00000000 (deleted)").thp(1000));
    clear("D29", sharing(72).on(sharing(71).on(always())));
    clear("D29", server("oracle-cloud-ag").on(always()));
    let on = |release: &str| server("vertica").on(always().line("/proc/sys/kernel/osrelease", release));
    found("D29", on("4.18.0-553.el8.x86_64"));
    clear("D29", on("3.10.0-1160.el7.x86_64"));
    // A short name needs more to show the product.
    let named = |argument: &str| server("asd").arg(argument).on(always());
    found("D29", named("/etc/aerospike/aerospike.conf"));
    clear("D29", named("/etc/asd.conf"));
}

/// A vendor that asks for `never` gets it, unless THP is for another program; and what was to set it is named.
#[test]
fn d29_never_and_what_did_not_set_it() {
    let always = || thp(machine(), "enabled", ALWAYS);
    let server = |tree: Tree| process(70, "splunkd").area(anonymous(4096).thp(2048)).on(tree);
    let fix = |tree: Tree| found("D29", server(tree)).fix.join("\n");
    let alone = fix(always());
    assert!(
        alone.contains("thp=never") && alone.contains("echo never") && alone.contains("then restart Splunk"),
        "{alone}"
    );
    let beside = fix(process(71, "sqlservr").area(anonymous(4096)).on(always()));
    assert!(
        beside.contains("echo madvise") && !beside.contains("echo never"),
        "{beside}"
    );
    let advises = fix(process(71, "solver").area(advised(256)).on(always()));
    assert!(
        advises.contains("echo madvise") && !advises.contains("echo never"),
        "{advises}"
    );

    let script = "echo never > /sys/kernel/mm/transparent_hugepage/enabled\n";
    let init = always().file("/etc/init.d/disable-thp", script);
    let unlinked = fix(init.clone());
    assert!(
        unlinked.contains("update-rc.d disable-thp defaults && service disable-thp start"),
        "{unlinked}"
    );
    let redhat = fix(init.clone().line("/etc/os-release", "ID=rhel"));
    assert!(redhat.contains("chkconfig --add disable-thp"), "{redhat}");
    let linked = fix(init.file("/etc/rc2.d/S01disable-thp", script));
    assert!(!linked.contains("disable-thp"), "{linked}");
    let local = fix(always().file("/etc/rc.local", script));
    assert!(local.contains("chmod +x /etc/rc.local"), "{local}");
}

#[test]
fn d29_a_policy_that_takes_thp_from_a_product_that_is_to_have_it() {
    let never = || thp(machine(), "enabled", NEVER);
    let server = || process(70, "sqlservr").area(anonymous(4096));
    let finding = found("D29", server().on(never()));
    assert!(
        finding.consequence.contains("vendor of SQL Server asks for always"),
        "{finding:?}"
    );
    clear("D29", server().on(machine()));
    clear("D29", process(70, "sqlservr").area(anonymous(64)).on(never()));
    let vertica = |release: &str| {
        let tree = never().line("/proc/sys/kernel/osrelease", release);
        process(70, "vertica").area(anonymous(4096)).on(tree)
    };
    found("D29", vertica("3.10.0-1160.el7.x86_64"));
    clear("D29", vertica("4.18.0-553.el8.x86_64"));
}

/// Two products on one machine: the fix for one of them is no fault of the other.
#[test]
fn always_is_not_advised_beside_a_product_that_must_not_have_it() {
    let beside = |own: Process, other: Process| {
        own.area(anonymous(4096))
            .on(other.area(anonymous(100)).on(thp(machine(), "enabled", NEVER)))
    };
    let sql = |other| found("D29", beside(process(70, "sqlservr"), other)).fix.join("\n");
    let alone = sql(process(71, "nginx"));
    assert!(alone.contains("thp=always") && !alone.contains("madvise"), "{alone}");
    let secret = beside(process(70, "sqlservr"), process(71, "memcached")).denied("/proc/71/cmdline");
    let unknown = found("D29", secret).fix.join("\n");
    for fix in [
        sql(process(71, "clickhouse-serv")),
        sql(process(71, "redis-server")),
        sql(process(71, "mongod").env("MONGO_VERSION=7.0.12")),
        unknown,
    ] {
        assert!(fix.contains("thp=madvise") && !fix.contains("echo always"), "{fix}");
    }
    // A Redis that has switched THP off for itself.
    let fix = sql(process(71, "redis-server").thp_off());
    assert!(fix.contains("thp=always"), "{fix}");
    // MongoDB 8 has no other policy.
    let mongo = |other| {
        found("D03", beside(process(70, "mongod").env("MONGO_VERSION=8.0.4"), other))
            .fix
            .join("\n")
    };
    assert!(mongo(process(71, "nginx")).contains("thp=always"));
    let apart = mongo(process(71, "clickhouse-serv"));
    assert!(apart.starts_with("run it apart from clickhouse-serv (71)"), "{apart}");
}

/// The option of a tmpfs: in vain, too generous, or not there.
#[test]
fn d28_huge_of_a_tmpfs() {
    let policy = |chosen: &str| {
        let all = "always within_size advise never deny force";
        thp(machine(), "shmem_enabled", all.replace(chosen, &format!("[{chosen}]")))
    };
    let mounts = |tree: Tree, lines: &str| tree.file("/proc/self/mounts", lines);
    let run = "tmpfs /run tmpfs rw,size=524288k,huge=always 0 0\n";
    let finding = found("D28", mounts(policy("never"), run));
    assert!(finding.consequence.contains("256 small files fill /run"), "{finding:?}");
    let finding = found("D28", mounts(policy("deny"), run));
    assert!(finding.consequence.contains("has no effect"), "{finding:?}");
    let shm = "tmpfs /dev/shm tmpfs rw,nosuid 0 0\n";
    clear("D28", mounts(policy("never"), shm));
    let guest = || process(61, "qemu-system-x86_64").area(shared(2048, "/dev/shm/vm1"));
    let finding = found("D28", mounts(guest().on(policy("always")), shm));
    assert!(finding.consequence.contains("mounted without huge="), "{finding:?}");
    // Not asked for, or not decided by the mount.
    clear("D28", mounts(guest().on(policy("never")), shm));
    clear("D28", mounts(guest().on(policy("force")), shm));
    clear(
        "D28",
        mounts(
            guest().on(policy("always")),
            "tmpfs /dev/shm tmpfs rw,huge=advise 0 0\n",
        ),
    );
    let java = process(62, "java")
        .arg("-XX:+UseTransparentHugePages")
        .arg("-XX:AllocateHeapAt=/dev/shm")
        .arg("Main");
    found(
        "D28",
        mounts(java.area(shared(2048, "/dev/shm/jvmheap.x")).on(policy("never")), shm),
    );
    not_judged("D28", policy("never").without("/proc/self/mounts"), "mounts");
    // What the mounts show is found, and the program that may not be looked at is named.
    let guest_denied = guest().on(policy("always")).denied("/proc/61/smaps");
    let judged = verdict("D28", mounts(guest_denied, &format!("{run}{shm}")));
    let is_both = matches!(&judged, Verdict::Partly(found, not) if found.len() == 1 && not.reason.contains("denied"));
    assert!(is_both, "{judged:?}");
}

#[test]
fn d22_and_d23_places_that_set_the_policy() {
    let boot = |value: &str| machine().line("/proc/cmdline", format!("transparent_hugepage={value}"));
    let file = |tree: Tree, value: &str| {
        tree.file(
            "/etc/tmpfiles.d/thp.conf",
            format!("w /sys/kernel/mm/transparent_hugepage/enabled - - - - {value}\n"),
        )
    };
    found("D22", file(boot("never"), "madvise"));
    clear("D22", file(boot("madvise"), "madvise"));
    clear("D22", machine());
    let profile = "[main]\ninclude=base\n[vm]\ntransparent_hugepages=never\n";
    let tuned = |tree: Tree| {
        tree.line("/etc/tuned/active_profile", "mine")
            .file("/etc/tuned/mine/tuned.conf", profile)
    };
    found("D22", tuned(file(machine(), "madvise")));
    // tuned gives way to the command line.
    clear("D22", tuned(boot("madvise")));
    found("D23", boot("never"));
    clear("D23", boot("madvise"));
    let unit = "[Service]\nExecStart=/bin/sh -c 'echo never > /sys/kernel/mm/transparent_hugepage/enabled'\n";
    found("D23", machine().file("/etc/systemd/system/disable-thp.service", unit));
}

#[test]
fn d23_a_pool_that_a_reboot_changes() {
    let pool_of = |nr| pool(machine(), "2048kB", nr, 0, 0);
    assert_eq!(found("D23", pool_of(64)).severity, Severity::Info);
    let asked = |nr| pool_of(nr).file("/etc/sysctl.d/1.conf", "vm.nr_hugepages=64\n");
    assert_eq!(found("D23", asked(100)).severity, Severity::Warning);
    clear("D23", asked(64));
    not_judged("D23", machine().denied("/etc/tmpfiles.d"), "denied");
}

/// Beside `hugetlb_cma=` the kernel passes over counts of 1G on the boot line.
#[test]
fn a_pool_of_1g_beside_cma_is_kept_by_a_unit() {
    let kept = |line: &str| {
        let tree = machine().line("/proc/cmdline", line);
        found("D23", pool(tree, "1048576kB", 4, 4, 0)).fix.join("\n")
    };
    assert!(kept("quiet").contains("hugepagesz=1G hugepages=4"));
    let fix = kept("hugetlb_cma=16G quiet");
    let file = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    assert!(
        fix.contains(&format!(
            "a unit has to fill the pool at each boot, before the programs: echo 4 > {file}"
        )),
        "{fix}"
    );
    assert!(!fix.contains("hugepagesz="), "{fix}");
}

#[test]
fn d24_a_program_older_than_the_policy() {
    let judged = |at: f64| {
        let tree = process(37, "app").area(anonymous(200)).on(machine());
        let mut evidence = Evidence::gather(&Source::from_tree("test", tree));
        let path = "/sys/kernel/mm/transparent_hugepage/enabled".to_owned();
        evidence.applied = Reading::Known(vec![Applied {
            path,
            value: "always".to_owned(),
            at,
        }]);
        explain("D24").expect("a rule").judge(&evidence)
    };
    assert!(matches!(judged(60.0), Verdict::Found(_)));
    assert_eq!(judged(40.0), Verdict::Clear);
    not_judged("D24", machine(), "journal");
}

#[test]
fn d25_memory_that_waits_for_khugepaged() {
    let large = |eligible: bool| {
        let area = if eligible {
            advised(10_240)
        } else {
            anonymous(10_240).not_eligible()
        };
        process(38, "app").area(area)
    };
    let finding = found("D25", large(true).on(machine()));
    assert!(finding.consequence.contains("2 h"), "{}", finding.consequence);
    clear("D25", large(false).on(machine()));
    clear(
        "D25",
        large(true).on(thp(machine(), "khugepaged/scan_sleep_millisecs", 10)),
    );
    not_judged("D25", large(true).on(machine()).denied("/proc/38/smaps"), "denied");
}

#[test]
fn d27_base_pages_of_64k() {
    let large = |policy: &str| {
        let tree = thp(
            machine().line("/hugewise/page_size", 65536),
            "hpage_pmd_size",
            512 << 20,
        );
        thp(tree, "hugepages-2048kB/enabled", policy)
    };
    let never = || large("always inherit madvise [never]");
    let solver = |area| process(20, "solver").area(area);
    found("D27", solver(advised(256)).on(never()));
    clear("D27", solver(advised(256)).on(large("always inherit [madvise] never")));
    // Where no program advises its memory, that setting changes nothing.
    clear("D27", solver(anonymous(256)).on(never()));
    clear("D27", never());
    not_judged(
        "D27",
        solver(advised(256)).on(never()).denied("/proc/20/smaps"),
        "denied",
    );
}

#[test]
fn d32_code_that_cannot_be_aligned() {
    let code = |offset| {
        process(39, "clang").area(
            anonymous(64)
                .named("/usr/bin/clang")
                .perms("r-xp")
                .at(0x5500_0000_0000, offset),
        )
    };
    found("D32", code(0x1000).on(machine()));
    clear("D32", code(0x20_0000).on(machine()));
}

#[test]
fn d33_a_value_between_none_and_all_where_smaller_sizes_are_collapsed() {
    let with = |release: &str, none: u64, policy: &str| {
        let tree = thp(
            machine().line("/proc/sys/kernel/osrelease", release),
            "khugepaged/max_ptes_none",
            none,
        );
        thp(tree, "hugepages-64kB/enabled", policy)
    };
    let on = "[always] inherit madvise never";
    found("D33", with("7.2.0", 64, on));
    clear("D33", with("7.2.0", 0, on));
    clear("D33", with("7.2.0", 511, on));
    clear("D33", with("7.2.0", 64, "always inherit madvise [never]"));
    for release in [
        "4.18.0-553.el8.x86_64",
        "5.14.0-427.el9",
        "6.1.0",
        "6.8.0-31",
        "6.12.10",
        "6.18.44",
        "7.1.9",
    ] {
        clear("D33", with(release, 64, on));
    }
    let always = |release: &str| {
        let tree = thp(with(release, 511, on), "enabled", "[always] madvise never");
        let tree = vmstat(tree, &[("thp_collapse_alloc", 60_000)]);
        found("D06", tree).fix.join("\n")
    };
    assert!(always("6.18.44").contains("max_ptes_none=64") && always("7.2.1").contains("max_ptes_none=0"));
}
