//! Plans for machines of every age: pools, policies, mounts, applications, and what stands in the way.

use std::path::Path;

use host::{Source, Tree};
use model::Bytes;
use model::plan::{Change, Layer, Plan, Value};

use super::goal::{Goal, Want};
use super::{Facts, Host, Need, Wanted, plan};

mod databases;
mod kernels;
mod shares;

pub(super) fn fixture(name: &str) -> Source {
    let path = format!("{}/../../fixtures/machines/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    Source::open(Path::new(&path)).expect("a machine")
}

pub(super) fn wanted(goal: &str, needs: &[(Bytes, u64)]) -> Wanted {
    let need = |&(page, pages): &(Bytes, u64)| Need {
        page,
        node: None,
        pages,
        how: format!("{pages} needed"),
        own: 0,
        asks: false,
    };
    Wanted::new(goal.parse().expect(goal), needs.iter().map(need).collect())
}

impl Wanted {
    /// Of a program of which nothing is known.
    pub(super) fn new(goal: Goal, needs: Vec<Need>) -> Self {
        let program = Facts::default();
        Self { goal, needs, program }
    }
}

pub(super) fn planned(source: &Source, wanted: &[Wanted]) -> Plan {
    plan(&Host::look(source), wanted).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn failed(source: &Source, wanted: &[Wanted]) -> String {
    plan(&Host::look(source), wanted).expect_err("no plan").to_string()
}

/// The change of that path, or the instruction of that id.
pub(super) fn change<'p>(plan: &'p Plan, place: &str) -> &'p Change {
    let is_it = |change: &&Change| change.target.path() == Some(place) || change.id == place;
    plan.changes
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {place} in {plan:#?}"))
}

pub(super) fn after(plan: &Plan, place: &str) -> String {
    change(plan, place).after.text().expect("a value")
}

pub(super) const TWO: Bytes = Bytes::mib(2);

/// A small modern machine with one node, a pool of 2M, and systemd.
pub(super) fn small() -> Tree {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    Tree::new()
        .line("/proc/sys/kernel/osrelease", "6.18.0")
        .file(
            "/proc/meminfo",
            "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nHugepagesize: 2048 kB\n",
        )
        .line("/proc/cmdline", "quiet")
        .file("/proc/self/mounts", "proc /proc proc rw 0 0\n")
        .line("/proc/sys/vm/hugetlb_shm_group", 0)
        .line("/proc/sys/kernel/shmmax", u64::MAX - (1 << 24))
        .line("/proc/sys/kernel/shmall", u64::MAX - (1 << 24))
        .line(&format!("{pool}/nr_hugepages"), 10)
        .line(&format!("{pool}/free_hugepages"), 6)
        .line(&format!("{pool}/resv_hugepages"), 1)
        .line(&format!("{pool}/surplus_hugepages"), 2)
        .line("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
        .file("/etc/systemd/system.conf", "")
        .file("/etc/sysctl.d/99-site.conf", "vm.nr_hugepages = 64\n")
}

#[test]
fn a_pool_is_what_the_goal_says_and_what_is_there_is_not_told_twice() {
    let source = Source::from_tree("test", small());
    let plan = planned(&source, &[wanted("pool:2M=16", &[])]);
    let pool = change(&plan, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    assert_eq!(
        (pool.before.known(), &pool.after),
        (Some(&Value::Pages(8)), &Value::Pages(16)),
        "without the surplus"
    );
    assert_eq!(
        pool.also_written_by,
        ["/etc/sysctl.d/99-site.conf:1: vm.nr_hugepages = 64"]
    );
    assert_eq!(pool.risk.takes.as_ref().map(|taken| taken.bytes), Some(Bytes::mib(16)));
    assert_eq!(after(&plan, "/etc/sysctl.d/60-hugewise.conf"), "vm.nr_hugepages = 16\n");
    assert_eq!(plan.changes.len(), 2);
    let there = planned(&source, &[wanted("pool:2M=8", &[])]);
    assert_eq!(there.changes.len(), 1, "only the file: {there:#?}");
    assert!(
        there
            .notes
            .iter()
            .any(|note| note.ends_with("is set as requested already (8)")),
        "{:?}",
        there.notes
    );
}

#[test]
fn applications_share_a_pool_and_pages_in_use_stay() {
    let source = Source::from_tree("test", small());
    let both = [wanted("jvm:heap=1g", &[(TWO, 600)]), wanted("vm:1G", &[(TWO, 512)])];
    let plan = planned(&source, &both);
    let pool = change(&plan, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    // 10 pages, 6 of them free, 1 of those promised: 5 are in use, and a file asks for 64.
    assert_eq!(pool.after, Value::Pages(64 + 600 + 512));
    let sum = "600 needed; 512 needed + 64 that /etc/sysctl.d/99-site.conf:1 asks for, for which there is no plan on record = 1176";
    assert!(pool.why.contains(sum), "{}", pool.why);
}

#[test]
fn a_pool_whose_pages_in_use_cannot_be_read_is_not_planned_as_if_none_were() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    for file in ["free_hugepages", "resv_hugepages"] {
        let source = Source::from_tree("test", small().file(&format!("{pool}/{file}"), "garbled\n"));
        let why = failed(&source, &[wanted("vm:1G", &[(TWO, 512)])]);
        assert!(why.contains("in use could not be read") && why.contains(file), "{why}");
        let all = planned(&source, &[wanted("pool:2M=1027", &[])]);
        let change = change(&all, &format!("{pool}/nr_hugepages"));
        assert_eq!(
            change.after,
            Value::Pages(1027),
            "what is asked for in all needs no such number"
        );
        let says = change.why.contains("in use now could not be read");
        assert!(says, "{}", change.why);
    }
}

#[test]
fn nodes_get_equal_parts_and_a_unit_fills_them_at_boot() {
    let plan = planned(&fixture("two-node-smt"), &[wanted("pool:2M=1027", &[])]);
    for (node, pages) in [(0, 514), (1, 513)] {
        let path = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
        assert_eq!(change(&plan, &path).after, Value::Pages(pages));
        let unit = after(&plan, "/etc/systemd/system/hugewise-pools.service");
        assert!(
            unit.contains(&format!("ExecStart=/bin/sh -c 'echo {pages} > {path} && ")),
            "{unit}"
        );
        assert!(unit.contains("Before=sysinit.target"), "{unit}");
    }
    let wants = after(&plan, "/etc/systemd/system/sysinit.target.d/60-hugewise.conf");
    assert_eq!(wants, "[Unit]\nWants=hugewise-pools.service\n");
    let one = planned(&fixture("two-node-smt"), &[wanted("pool:2M=16,node=1", &[])]);
    assert!(
        one.changes
            .iter()
            .all(|change| !change.target.to_string().contains("node0")),
        "{one:#?}"
    );
    assert!(failed(&fixture("two-node-smt"), &[wanted("pool:2M=16,node=7", &[])]).contains("there is 0, 1"));
}

#[test]
fn pages_of_1g_are_asked_for_at_boot_too() {
    let plan = planned(
        &fixture("pool-1g"),
        &[wanted("vm:20G,pages=1G", &[(Bytes::gib(1), 20)])],
    );
    let boot = plan
        .changes
        .iter()
        .find(|change| change.layer == Layer::Boot)
        .expect("boot");
    assert!(
        boot.risk.reboot && boot.after.to_string().contains("hugepagesz=1G hugepages="),
        "{boot:?}"
    );
    assert!(after(&plan, "libvirt-xml").contains("<page size='1048576' unit='KiB'/>"));
    let debian = small()
        .line("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
        .file("/etc/os-release", "ID=debian\n")
        .file("/etc/default/grub.d/init.cfg", "");
    let plan = planned(&Source::from_tree("test", debian), &[wanted("pool:1G=4", &[])]);
    let grub = after(&plan, "/etc/default/grub.d/60-hugewise.cfg");
    assert_eq!(
        grub,
        "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages=4\"\n"
    );
    assert_eq!(after(&plan, "update-grub"), "update-grub\nreboot");
    let proxmox = small()
        .line("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
        .line("/proc/sys/kernel/osrelease", "6.8.12-4-pve")
        .line("/proc/cmdline", "initrd=\\EFI\\proxmox\\initrd.img boot=zfs")
        .line("/etc/kernel/cmdline", "boot=zfs")
        .file("/etc/os-release", "ID=debian\n")
        .file("/etc/default/grub.d/init.cfg", "");
    let plan = planned(&Source::from_tree("test", proxmox), &[wanted("pool:1G=4", &[])]);
    assert_eq!(
        after(&plan, "/etc/kernel/cmdline"),
        "boot=zfs hugepagesz=1G hugepages=4\n"
    );
    assert_eq!(after(&plan, "proxmox-boot-tool"), "proxmox-boot-tool refresh\nreboot");
}

/// microsoft/WSL#4232: without systemd no file of sysctl.d is read.
#[test]
fn a_setting_is_kept_where_something_reads_it() {
    let wsl = |init: &str| {
        let tree = small()
            .line("/proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2")
            .line("/proc/1/comm", init);
        planned(&Source::from_tree("test", tree), &[wanted("pool:2M=16", &[])])
    };
    assert!(after(&wsl("init"), "sysctl").starts_with("kernelCommandLine=sysctl.vm.nr_hugepages=16 below [wsl2]"));
    assert_eq!(
        after(&wsl("systemd"), "/etc/sysctl.d/60-hugewise.conf"),
        "vm.nr_hugepages = 16\n"
    );
}

/// rpm-ostree#1942, xmrig#2970, WSL#14004: no tool of GRUB's is there.
#[test]
fn the_boot_line_is_written_by_what_starts_the_machine() {
    let how = |release: &str, line: &str| {
        let tree = small()
            .line("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
            .line("/proc/sys/kernel/osrelease", release)
            .line("/proc/cmdline", line)
            .line("/etc/kernel/cmdline", "quiet")
            .file("/etc/os-release", "ID=debian\n")
            .file("/etc/default/grub.d/init.cfg", "");
        let plan = planned(&Source::from_tree("test", tree), &[wanted("pool:1G=4", &[])]);
        after(&plan, "boot-pool-1g")
    };
    let ostree = how("4.18.0-372.el8", "BOOT_IMAGE=/ostree/vmlinuz ostree=/ostree/boot.1/x/0");
    assert!(
        ostree.starts_with("rpm-ostree kargs --append=hugepagesz=1G --append=hugepages=4 && ") && !ostree.contains('('),
        "{ostree}"
    );
    assert!(!ostree.contains("cmdline"));
    let pi = how("6.1.21-v8+", "coherent_pool=1M vc_mem.mem_base=0x3ec00000 console=tty1");
    assert!(pi.contains("/boot/firmware/cmdline.txt"), "{pi}");
    let wsl = how("5.15.90.1-microsoft-standard-WSL2", "initrd=\\initrd.img panic=-1");
    assert!(
        wsl.starts_with("kernelCommandLine=hugepagesz=1G hugepages=4 below [wsl2]"),
        "{wsl}"
    );
}

#[test]
fn a_policy_is_set_now_and_at_boot_if_the_kernel_offers_it() {
    let source = Source::from_tree("test", small());
    let plan = planned(&source, &[wanted("thp=madvise", &[])]);
    let policy = change(&plan, "/sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(policy.before.known(), Some(&Value::Text("always".to_owned())));
    let tmpfiles = after(&plan, "/etc/tmpfiles.d/60-hugewise.conf");
    assert_eq!(
        tmpfiles,
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"
    );
    let why = failed(&source, &[wanted("thp=sometimes", &[])]);
    assert!(
        why.contains("`thp:sometimes`") && why.contains("always, madvise, never"),
        "{why}"
    );
    assert!(failed(&source, &[wanted("thp=madvise,defrag=defer", &[])]).contains("has no /sys"));
    let service = planned(&source, &[wanted("thp=never,service=redis", &[])]);
    assert_eq!(
        after(&service, "/etc/systemd/system/redis.service.d/60-hugewise.conf"),
        "[Service]\nMemoryTHP=disable\n"
    );
}

#[test]
fn a_mount_is_made_now_and_by_a_unit() {
    let source = Source::from_tree(
        "test",
        small().file("/etc/passwd", "").file("/etc/group", "kvm:x:36:\n"),
    );
    let plan = planned(&source, &[wanted("pool:2M=16,group=kvm,mount=/mnt/huge-2M", &[])]);
    let options = "pagesize=2M,uid=0,gid=36,mode=0770";
    assert_eq!(after(&plan, "/mnt/huge-2M"), options);
    let unit = after(&plan, r"/etc/systemd/system/mnt-huge\x2d2M.mount");
    assert!(
        unit.contains("Where=/mnt/huge-2M\n") && unit.contains(&format!("Options={options}\n")),
        "{unit}"
    );
    assert!(
        after(&plan, "/etc/systemd/system/local-fs.target.d/60-hugewise.conf").contains(r"Wants=mnt-huge\x2d2M.mount")
    );
    assert!(failed(&source, &[wanted("pool:2M=16,mount=/etc/huge", &[])]).contains("hugetlbfs goes on"));
    // The directory of units is one of the store, which is read-only.
    let nixos = Source::from_tree("test", small().file("/etc/os-release", "ID=nixos\n"));
    let plan = planned(&nixos, &[wanted("pool:2M=16,mount=/mnt/huge-2M", &[])]);
    let asked: Vec<String> = plan.changes.iter().filter_map(|change| change.after.text()).collect();
    let unit = r"have the machine's configuration make mnt-huge\x2d2M.mount:";
    assert!(asked.iter().any(|text| text.starts_with(unit)), "{asked:#?}");
    let is_unit = |change: &Change| change.target.path().is_some_and(|path| path.contains("/systemd/"));
    assert!(!plan.changes.iter().any(is_unit), "{plan:#?}");
    let is_of_etc = |change: &Change| {
        let path = change.target.path();
        path.is_some_and(|path| path.starts_with("/etc/")) || change.target.to_string().contains("/etc/")
    };
    for (os, words) in [
        (
            "ID=nixos\n",
            "systemd.tmpfiles.rules = [ \"w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\" ];",
        ),
        (
            "ID=talos\n",
            "set kernel.mm.transparent_hugepage.enabled: \"madvise\" below machine.sysfs of its configuration",
        ),
        (
            "ID=bottlerocket\n",
            "enabled = \"madvise\" below [settings.kernel.hugepages.transparent] of its settings",
        ),
    ] {
        let whole = Source::from_tree("test", small().file("/etc/os-release", os));
        let plan = planned(&whole, &[wanted("thp=madvise", &[])]);
        assert!(!plan.changes.iter().any(is_of_etc), "{plan:#?}");
        let mut texts = plan.changes.iter().filter_map(|change| change.after.text());
        assert!(texts.any(|text| text.starts_with(words)), "{plan:#?}");
    }
}

/// Of two files of sysctl.d the later one wins. Talos and Bottlerocket have neither an rc.local nor an fstab.
#[test]
fn what_the_next_boot_brings_is_known() {
    let on = |os: &str, goal: &str| {
        let tree = small()
            .line("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
            .line("/proc/cmdline", "hugetlb_cma=8G")
            .file("/etc/os-release", os);
        planned(&Source::from_tree("test", tree), &[wanted(goal, &[])])
    };
    let notes = |goal: &str| on("ID=debian\n", goal).notes;
    let wins = "/etc/sysctl.d/99-site.conf:1 is read after /etc/sysctl.d/60-hugewise.conf: change its vm.nr_hugepages = 64 too";
    assert!(notes("pool:2M=16").iter().any(|note| note.starts_with(wins)));
    assert!(!notes("pool:2M=64").iter().any(|note| note.starts_with(wins)));
    let nixos = after(&on("ID=nixos\n", "pool:2M=16"), "sysctl");
    assert!(
        nixos.starts_with("boot.kernel.sysctl.\"vm.nr_hugepages\" = 16;"),
        "{nixos}"
    );
    for (os, words) in [
        (
            "ID=talos\n",
            "set kernel.mm.hugepages.hugepages-1048576kB.nr_hugepages: \"4\" below machine.sysfs",
        ),
        (
            "ID=bottlerocket\n",
            "count = \"4\" below [settings.kernel.hugepages.static.\"1Gi\"]",
        ),
    ] {
        let how = after(&on(os, "pool:1G=4"), "pools-kept");
        assert!(how.starts_with(words), "{how}");
        let plan = on(os, "pool:2M=16,mount=/mnt/huge-2M");
        let texts: Vec<String> = plan.changes.iter().filter_map(|change| change.after.text()).collect();
        let says = |words: &str| texts.iter().any(|text| text.starts_with(words));
        assert!(says("no file below /etc lasts here"), "{texts:#?}");
    }
}

#[test]
fn a_service_s_limit_of_pool_pages_is_raised_where_it_is_too_low() {
    let group = "/sys/fs/cgroup/system.slice/app.service/hugetlb.2MB.max";
    let tree = |limit: &str| {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        small()
            .file("/proc/self/mounts", mounts)
            .line("/sys/fs/cgroup/cgroup.controllers", "memory hugetlb")
            .line(group, limit)
    };
    let low = planned(
        &Source::from_tree("test", tree("2097152")),
        &[wanted("jvm:heap=1g,service=app", &[(TWO, 600)])],
    );
    assert_eq!(after(&low, group), (600u64 << 21).to_string());
    let free = planned(
        &Source::from_tree("test", tree("max")),
        &[wanted("jvm:heap=1g,service=app", &[(TWO, 600)])],
    );
    assert!(free.changes.iter().all(|change| change.layer != Layer::Cgroup));
}

#[test]
fn a_service_is_placed_by_lines_of_its_unit_on_cpus_and_nodes_that_are_there() {
    let mut machine = small().line("/sys/devices/system/cpu/online", "0-3");
    for cpu in 0..4 {
        let core = format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_id");
        machine = machine.line(&core, cpu);
    }
    let machine = machine
        .line("/sys/devices/system/node/node0/cpulist", "0-1")
        .line("/sys/devices/system/node/node1/cpulist", "2-3");
    let source = Source::from_tree("test", machine);
    let drop_in = "/etc/systemd/system/app.service.d/60-hugewise.conf";
    let plan = planned(&source, &[wanted("placement:app,cpus=0+2-3,memory=1", &[])]);
    assert_eq!(
        after(&plan, drop_in),
        "[Service]\nCPUAffinity=0,2-3\nNUMAPolicy=bind\nNUMAMask=1\n"
    );
    assert_eq!(plan.applicable().count(), 1);
    // Three lines, one restart.
    assert_eq!(
        plan.changes[0].risk.restart,
        ["systemctl daemon-reload && systemctl restart app.service"]
    );
    let node = planned(&source, &[wanted("placement:app,memory=1", &[])]);
    assert!(after(&node, drop_in).contains("CPUAffinity=2-3\n"));
    for (goal, part) in [
        ("placement:app,cpus=999", "CPU 999 is not online"),
        ("placement:app,memory=7", "no node 7"),
        ("placement:app,cpus=0,by=cpuset", "version 2"),
    ] {
        let why = failed(&source, &[wanted(goal, &[])]);
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn what_this_host_cannot_do_comes_out_as_instructions() {
    let source = Source::from_tree("test", small());
    let plan = planned(&source, &[wanted("vm:1900G,pages=1G,hypervisor=esx,name=big", &[])]);
    assert_eq!(plan.applicable().count(), 0);
    let vmx = after(&plan, "vmx");
    assert!(
        vmx.contains("sched.mem.lpage.enable1GPage = \"TRUE\"") && vmx.contains("memSize = \"1945600\""),
        "{vmx}"
    );
    assert!(after(&plan, "esx-advanced").contains("/Mem/AllocGuestLargePage -i 1"));
    let node = planned(&source, &[wanted("kubernetes:2M=512", &[])]);
    assert!(
        after(&node, "pod").contains("hugepages-2Mi: 1024Mi") && after(&node, "pod").contains("medium: HugePages-2Mi")
    );
}

#[test]
fn what_a_machine_cannot_give_is_said_with_the_goal() {
    for (name, goal, part) in [
        ("no-hugetlb", "pool:2M=16", "no pool"),
        ("kernel-5.10", "pool:1G=4", "it has 2M"),
        ("no-thp", "thp=madvise", "this kernel has no"),
        ("kernel-5.10", "pool:2M=100000", "in all"),
    ] {
        let why = failed(&fixture(name), &[wanted(goal, &[])]);
        assert!(why.contains(part) && why.starts_with("goal `"), "{name}: {why}");
    }
}

/// Docker and Kubernetes mount /sys read-only, and /proc/sys apart from /proc.
#[test]
fn a_container_is_offered_no_plan_that_writes_the_host_s_settings() {
    let inside = |mounts: &str| Source::from_tree("test", small().file("/proc/self/mounts", mounts));
    let container = inside("proc /proc proc rw 0 0\nsysfs /sys sysfs ro,nosuid 0 0\n");
    for goal in ["pool:2M=16", "thp=madvise", "vm:1G"] {
        let why = failed(&container, &[wanted(goal, &[(TWO, 512)])]);
        assert!(
            why.contains("/sys is mounted read-only here, as in a container") && why.contains("the host's"),
            "{goal}: {why}"
        );
    }
    let old = Tree::new()
        .line("/proc/sys/kernel/osrelease", "2.6.18-53.el5")
        .file("/proc/meminfo", "MemTotal: 8000000 kB\nHugepagesize: 2048 kB\n")
        .line("/proc/sys/vm/nr_hugepages", 0)
        .file(
            "/proc/self/mounts",
            "proc /proc proc rw 0 0\nproc /proc/sys proc ro 0 0\n",
        );
    let why = failed(&Source::from_tree("test", old), &[wanted("pool:2M=16", &[])]);
    assert!(why.contains("/proc/sys is mounted read-only"), "{why}");
    let image = inside("erofs / erofs ro 0 0\nproc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n");
    let why = failed(&image, &[wanted("pool:2M=16", &[])]);
    assert!(
        why.contains("/etc/sysctl.d/60-hugewise.conf") && why.contains("its image"),
        "{why}"
    );
    // Of two mounts at one place the later one is on top; what needs no file of the host is planned.
    let above = inside("sysfs /sys sysfs ro 0 0\nsysfs /sys sysfs rw 0 0\n");
    assert_eq!(planned(&above, &[wanted("pool:2M=16", &[])]).changes.len(), 2);
    let esx = planned(&container, &[wanted("vm:1900G,pages=1G,hypervisor=esx,name=big", &[])]);
    assert_eq!(esx.applicable().count(), 0);
}

#[test]
fn a_pool_without_a_directory_of_its_own_gets_smaller_as_any_other() {
    let old = |pages: u64| {
        let tree = Tree::new()
            .line("/proc/sys/kernel/osrelease", "2.6.18-53.el5")
            .file("/proc/meminfo", "MemTotal: 16000000 kB\nHugepagesize: 2048 kB\n")
            .line("/proc/sys/vm/nr_hugepages", pages);
        let plan = planned(&Source::from_tree("test", tree), &[wanted("pool:2M=16", &[])]);
        plan.changes[0].risk.clone()
    };
    let less = old(3182);
    assert!(less.takes.is_none(), "{less:?}");
    assert!(
        format!("{less:?}").contains("the pool gets smaller: 3182 pages (the pool now) become 16"),
        "{less:?}"
    );
    assert_eq!(old(4).takes.map(|taken| taken.bytes), Some(Bytes::mib(24)));
}

#[test]
fn every_machine_gets_a_plan_that_may_be_applied_or_a_reason() {
    let goals = [
        "pool:2M=16",
        "thp=madvise",
        "jvm:heap=1g",
        "redis",
        "kubernetes:2M=16",
        "vm:1G,hypervisor=qemu",
        "placement:app,cpus=0",
    ];
    let directory = format!("{}/../../fixtures/machines", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(directory).expect("machines").flatten() {
        if entry.path().extension().is_none_or(|kind| kind != "tree") {
            continue;
        }
        let source = Source::open(&entry.path()).expect("a machine");
        for goal in goals {
            if let Ok(plan) = plan(&Host::look(&source), &[wanted(goal, &[])]) {
                assert_eq!(plan.check(), Ok(()), "{:?} {goal}", entry.path());
            }
            assert_eq!(
                goal.parse::<Goal>().expect(goal).text.split([':', '=']).next(),
                goal.split([':', '=']).next()
            );
        }
    }
}

#[test]
fn two_goals_that_contradict_each_other_are_refused_by_their_names() {
    let source = Source::from_tree("test", small());
    let goals = |texts: [&str; 2]| texts.map(|text| wanted(text, &[]));
    for (texts, about) in [
        (["thp=always", "thp=never"], "transparent_hugepage/enabled"),
        (["thp=madvise,defrag=defer", "thp=madvise,defrag=never"], "defrag"),
        (["pool:2M=16", "pool:2M=32"], "the pool of 2M"),
        (["pool:2M=16", "kubernetes:2M=32"], "the pool of 2M"),
        (["pool:2M=16,node=0", "pool:2M=16"], "the pool of 2M"),
        (
            ["postgres:/etc/pg.conf", "postgres:/etc/pg.conf,pages=1G"],
            "one server",
        ),
        (["jvm:heap=1g,service=a", "jvm:heap=2g,service=a"], "one service"),
        (["vm:64G,name=a", "vm:32G,name=a"], "one guest"),
        (["placement:a,cpus=0", "placement:a,cpus=1"], "one service"),
        (["redis", "thp=always"], "enabled=always"),
        (["thp=never", "jvm:heap=1g,pages=thp"], "enabled=never"),
    ] {
        for texts in [texts, [texts[1], texts[0]]] {
            let why = failed(&source, &goals(texts));
            let named = [texts[0], texts[1], about].map(|part| part.replacen("thp=", "", 1));
            assert!(named.iter().all(|part| why.contains(part)), "{texts:?}: {why}");
        }
    }
    for texts in [
        ["thp=always", "thp=never,service=a"],
        ["pool:2M=16", "pool:2M=16"],
        ["thp=always", "jvm:heap=1g,pages=thp"],
        ["thp=madvise", "redis"],
        ["jvm:heap=1g,user=a", "jvm:heap=2g,user=a"],
    ] {
        planned(&source, &goals(texts));
    }
}

/// It has no prealloc=, and only a zone of its memory can be bound to a node.
#[test]
fn cloud_hypervisor_gets_options_that_it_has() {
    let options = |node: &str| {
        let goal = format!("vm:1G,hypervisor=cloud-hypervisor{node}");
        let plan = planned(&Source::from_tree("test", small()), &[wanted(&goal, &[(TWO, 512)])]);
        after(&plan, "cloud-hypervisor-arguments")
    };
    let pages = "size=1G,hugepages=on,hugepage_size=2M,prefault=on";
    assert_eq!(options(""), format!("--memory {pages}"));
    let zone = format!("--memory size=0 --memory-zone id=mem0,{pages},host_numa_node=0");
    assert_eq!(options(",node=0"), zone);
}

#[test]
fn zgc_has_pages_of_2m_where_the_default_is_another_size() {
    let of_1g = small().file(
        "/proc/meminfo",
        "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nHugepagesize: 1048576 kB\n",
    );
    let page = |tree: Tree, goal: &str| {
        let source = Source::from_tree("test", tree);
        let Want::Jvm(jvm) = wanted(goal, &[]).goal.want else {
            panic!("a JVM")
        };
        jvm.page_on(&Host::look(&source))
    };
    let zgc = "jvm:heap=1g,collector=zgc";
    assert_eq!(page(of_1g.clone(), zgc), Ok(Some(TWO)));
    assert_eq!(page(of_1g.clone(), "jvm:heap=1g"), Ok(Some(Bytes::gib(1))));
    assert_eq!(page(small(), &format!("{zgc},jdk=17")), Ok(Some(TWO)));
    let refused = page(of_1g.clone(), &format!("{zgc},jdk=17")).expect_err("no 2M");
    assert!(refused.contains("1G here") && refused.contains("JDK 18"), "{refused}");
    // JDK 11 takes no size by name.
    let named = |jdk: u32| page(small(), &format!("jvm:heap=1g,pages=1G,jdk={jdk}"));
    assert_eq!(named(17), Ok(Some(Bytes::gib(1))));
    let refused = named(11).expect_err("the default size alone");
    assert!(
        refused.contains("2M here") && refused.contains("default_hugepagesz=1G"),
        "{refused}"
    );
    let source = Source::from_tree("test", of_1g);
    let options = after(&planned(&source, &[wanted(zgc, &[(TWO, 600)])]), "jvm-options");
    assert!(options.contains("-XX:LargePageSizeInBytes=2m"), "{options}");
}
