//! Each rule of `pools` where it fires and where it must not.

use host::{Source, Tree};
use model::Reading;
use model::findings::Severity;
use programs::{Applied, Evidence};

use crate::machines::*;
use crate::{Verdict, explain};

#[test]
fn a01_a_pool_that_is_shorter_than_asked() {
    let asked = |pages: u64| machine().file("/etc/sysctl.d/50-db.conf", format!("# db\nvm.nr_hugepages = {pages}\n"));
    let finding = found("A01", pool(asked(512), "2048kB", 500, 0, 0));
    assert!(
        finding.consequence.starts_with("12 of 512 pages of 2M"),
        "{}",
        finding.consequence
    );
    assert_eq!(finding.evidence[0].source, "/etc/sysctl.d/50-db.conf:2");
    clear("A01", pool(asked(500), "2048kB", 500, 0, 0));
    let boot = machine().line("/proc/cmdline", "hugepagesz=1G hugepages=4");
    found("A01", pool(boot.clone(), "1048576kB", 3, 3, 0));
    let with_cma = boot
        .clone()
        .line("/proc/cmdline", "hugetlb_cma=4G hugepagesz=1G hugepages=4");
    let skipped = found("A01", pool(with_cma, "1048576kB", 0, 0, 0)).fix;
    assert!(
        skipped[0].starts_with("with hugetlb_cma=4G the kernel makes no pages of 1G at boot"),
        "{skipped:?}"
    );
    clear("A01", pool(boot, "1048576kB", 4, 4, 0));
    let failed = found("A01", vmstat(machine(), &[("htlb_buddy_alloc_fail", 9)]));
    assert_eq!(failed.severity, Severity::Info);
    not_judged("A01", machine().without("/sys/kernel/mm/hugepages"), "absent");
    not_judged("A01", machine().denied("/etc/sysctl.d"), "denied");
    not_judged(
        "A01",
        machine().file("/etc/sysctl.d/x.conf", "vm.nr_hugepages=many\n"),
        "x.conf:1",
    );
}

/// aws/aws-nitro-enclaves-cli#313: 128 GiB of an instance that has twice as much, on two nodes.
#[test]
fn a01_an_enclave_larger_than_a_node() {
    let asked = |mib: u64| {
        let nodes = [0, 1].map(|node| {
            let path = format!("/sys/devices/system/node/node{node}/meminfo");
            (path, format!("Node {node} MemTotal: 131000000 kB\n"))
        });
        let file = format!("---\nmemory_mib: {mib}\ncpu_count: 16\n");
        let tree = machine().line("/sys/devices/system/node/online", "0-1");
        let tree = nodes
            .into_iter()
            .fold(tree, |tree, (path, text)| tree.file(&path, text));
        tree.file("/etc/nitro_enclaves/allocator.yaml", file)
    };
    let finding = found("A01", asked(131_072));
    assert!(finding.consequence.contains("128G from one NUMA node"), "{finding:?}");
    clear("A01", asked(122_880));
}

#[test]
fn a02_a_pool_that_nobody_uses() {
    let finding = found("A02", pool(machine(), "2048kB", 512, 512, 0));
    assert!(
        finding.consequence.starts_with("1G in the pool of 2M pages is idle"),
        "{}",
        finding.consequence
    );
    clear("A02", pool(machine(), "2048kB", 512, 511, 0));
    clear("A02", pool(machine(), "2048kB", 512, 512, 512));
    let booting = pool(machine(), "2048kB", 512, 512, 0).line("/proc/uptime", "30.00 40.00");
    assert_eq!(found("A02", booting).severity, Severity::Info);
    // The boot line asks for just that.
    let asked = found(
        "A02",
        pool(machine().line("/proc/cmdline", "hugepages=64"), "2048kB", 64, 64, 0),
    );
    assert!(
        asked.severity == Severity::Info && !asked.fix.concat().contains("remove it"),
        "{asked:?}"
    );
    let limited = |line: &str| {
        let tree = pool(machine(), "2048kB", 512, 512, 0);
        found("A02", tree.file("/etc/security/limits.conf", line))
            .fix
            .join("\n")
    };
    assert!(limited("db soft memlock 1100000\n").contains("of db, which may lock so much"));
    assert!(limited("@audio - memlock unlimited\n").contains("or free it"));
    not_judged(
        "A02",
        machine().denied("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"),
        "denied",
    );
}

/// A unit of the administrator asks for it, as long as it does not run.
/// A part of it is in use, and programs that start later would have started in a day.
#[test]
fn a02_a_pool_whose_rest_nothing_takes() {
    let with = |holder: &str, free: u64, seconds: u64| {
        let holder = process(9, holder)
            .arg("-D")
            .arg("/data")
            .area(hugetlb(2 * (4096 - free), 2048));
        holder
            .on(pool(machine(), "2048kB", 4096, free, 100))
            .line("/proc/uptime", format!("{seconds}.00 1.00"))
    };
    let finding = found("A02", with("postgres", 2596, 90_000));
    assert!(finding.consequence.contains("2496 of 4096 pages"), "{finding:?}");
    assert!(finding.fix[0].contains("echo 1600 > "), "{finding:?}");
    clear("A02", with("postgres", 600, 90_000));
    clear("A02", with("postgres", 2596, 3600));
    // Guests come and go, and so do pods.
    clear("A02", with("qemu-system-x86_64", 2596, 90_000));
    clear("A02", process(8, "kubelet").on(with("postgres", 2596, 90_000)));
    let in_pod = process(9, "postgres")
        .arg("-D")
        .arg("/data")
        .cgroup("/kubepods.slice/kubepods-pod1.slice")
        .area(hugetlb(3000, 2048));
    clear("A02", in_pod.on(pool(machine(), "2048kB", 4096, 2596, 100)));
}

/// ZGC takes pages as its heap grows, and reserves none.
#[test]
fn a02_a_pool_that_a_heap_grows_into() {
    let with = |most: &str| {
        let zgc = process(9, "java")
            .arg("-XX:+UseZGC")
            .arg("-XX:+UseLargePages")
            .arg("-Xms1g")
            .arg(most)
            .arg("Main")
            .area(
                hugetlb(1024, 2048)
                    .named("/memfd:java_heap.hugetlb (deleted)")
                    .perms("rw-s")
                    .at(4 << 40, 0),
            );
        zgc.on(pool(machine(), "2048kB", 4096, 3584, 0))
    };
    clear("A02", with("-Xmx6g"));
    let finding = found("A02", with("-Xmx2g"));
    let keep = finding.fix[0].split(' ').skip_while(|word| *word != "echo").nth(1);
    let keep: u64 = keep.and_then(|pages| pages.parse().ok()).expect("pages");
    assert!((1024..1200).contains(&keep), "{finding:?}");
    assert!(finding.fix[0].contains("heaps grow into"), "{finding:?}");
}

#[test]
fn a01_the_same_memory_in_pages_beside_those_that_are_there() {
    let line = "w /sys/kernel/mm/hugepages/hugepages-32768kB/nr_hugepages - - - - 4\n";
    let tree = pool(machine(), "2048kB", 10, 10, 0).file("/etc/tmpfiles.d/huge.conf", line);
    let fix = found("A01", tree).fix.join("\n");
    assert!(fix.contains("64 beside the 10 that are there: echo 74 > "), "{fix}");
}

#[test]
fn a02_pages_of_1g_beside_a_miner() {
    let beside = |option: &str| {
        let miner = process(9, "xmrig").arg(option).area(hugetlb(600, 2048));
        let tree = pool(pool(machine(), "2048kB", 300, 0, 0), "1048576kB", 4, 4, 0);
        found("A02", miner.on(tree)).fix.concat()
    };
    assert!(beside("--threads=4").contains("let xmrig (9) use them: --randomx-1gb-pages"));
    assert!(!beside("--randomx-1gb-pages").contains("let xmrig"));
}

#[test]
fn a02_a_pool_for_a_unit() {
    const OWN: &str = "/etc/systemd/system/app.service";
    let text = "[Service]\nUser=app\nExecStart=/usr/bin/java -XX:+UseLargePages $HEAP -jar a.jar\n";
    let severity = |tree: Tree| found("A02", pool(tree, "2048kB", 512, 512, 0)).severity;
    let sized = |heap: &str| text.replace("$HEAP", heap);
    assert_eq!(severity(machine().file(OWN, sized("-Xmx900m"))), Severity::Info);
    let drop_in = "[Service]\nEnvironment=HEAP=-Xmx900m\n";
    let with_drop_in = machine()
        .file(OWN, text)
        .file("/etc/systemd/system/app.service.d/heap.conf", drop_in);
    assert_eq!(severity(with_drop_in), Severity::Info);
    let app = process(70, "java")
        .area(anonymous(64))
        .cgroup("/system.slice/app.service");
    let packaged = machine()
        .file("/usr/lib/systemd/system/app.service", sized("-Xmx900m"))
        .link(OWN, "/usr/lib/systemd/system/app.service");
    for tree in [
        machine().file(OWN, sized("-Xmx100m")),
        machine().file(OWN, sized("-Xmx900m").replace("+Use", "-Use")),
        app.on(machine().file(OWN, sized("-Xmx900m"))),
        packaged,
    ] {
        let finding = found("A02", pool(tree, "2048kB", 512, 512, 0));
        assert_eq!(finding.severity, Severity::Warning, "{finding:?}");
    }
}

#[test]
fn a03_a_pool_that_starves_the_rest() {
    let starved = |tree| meminfo(tree, &[("MemAvailable", 200 << 10)]);
    found("A03", starved(pool(machine(), "2048kB", 4096, 4000, 0)));
    clear("A03", starved(pool(machine(), "2048kB", 4096, 10, 0)));
    clear("A03", pool(machine(), "2048kB", 4096, 4000, 0));
    // A twentieth of a large host is more than its programs need, unless they are in swap.
    let large = |swap_free: u64| {
        let text = format!(
            "MemTotal: 268435456 kB\nMemFree: 4194304 kB\nMemAvailable: 8388608 kB\nSwapTotal: 8388608 kB\nSwapFree: {swap_free} kB\nHugepagesize: 2048 kB\n"
        );
        pool(machine(), "1048576kB", 240, 240, 0).file("/proc/meminfo", text)
    };
    clear("A03", large(8 << 20));
    found("A03", large(1 << 20));
    not_judged("A03", machine().without("/proc/meminfo"), "meminfo");
}

/// Guests that come later take the pages that are free now.
#[test]
fn a_pool_of_guests_keeps_all_but_what_the_host_lacks() {
    let tree = meminfo(pool(machine(), "2048kB", 7000, 6000, 0), &[("MemAvailable", 200 << 10)]);
    let guest = process(70, "qemu-system-x86").area(hugetlb(2000, 2048));
    assert!(found("A03", tree.clone()).fix[0].starts_with("echo 1000 >"));
    let fix = found("A03", guest.on(tree)).fix;
    // 7000 and 100 that are left, less a twentieth of 16G.
    assert!(fix[0].starts_with("echo 6690 >"), "{fix:?}");
}

/// One program gives way where it has nearly all of the pool; several do not, each for all.
#[test]
fn a_pool_that_several_hold_gets_no_number() {
    let meminfo = "MemTotal: 16777216 kB\nMemFree: 204800 kB\nMemAvailable: 204800 kB\nShmem: 4096 kB\nSwapCached: 0 kB\n\
                   AnonPages: 4096 kB\nSwapTotal: 8388608 kB\nSwapFree: 4194304 kB\nHugepagesize: 2048 kB\n";
    let full = || pool(machine(), "2048kB", 5000, 0, 0).file("/proc/meminfo", meminfo);
    let guest = |pid, size| process(pid, "qemu-system-x86").area(hugetlb(size, 2048));
    let alone = found("A03", guest(70, 10_000).on(full())).fix;
    assert!(
        alone[0].starts_with("give qemu-system-x86 (70) less memory: ") && alone[1].starts_with("then echo "),
        "{alone:?}"
    );
    let shared = found("A03", guest(71, 4000).on(guest(70, 6000).on(full()))).fix;
    assert!(
        shared.len() == 1 && shared[0].starts_with("stop or move a program"),
        "{shared:?}"
    );
}

/// An instance that cannot be read may need all of the pool.
#[test]
fn a_pool_is_lowered_to_no_number_where_instances_are_not_read() {
    let tree = meminfo(pool(machine(), "2048kB", 5000, 5000, 0), &[("MemAvailable", 200 << 10)]);
    let tree = tree.file("/etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 9000\n");
    assert!(found("A03", tree.clone()).fix[0].starts_with("echo 0 >"));
    // Each instance takes pages of its own.
    let dbs = |sid: &str| format!("/u01/app/oracle/product/19/home/dbs/init{sid}.ora");
    let both = tree
        .clone()
        .file(&dbs("A"), "sga_target=1G\n")
        .file(&dbs("B"), "sga_target=512M\n");
    let fix = found("A03", both).fix.join("\n");
    assert!(
        fix.contains("lower the request in /etc/sysctl.d/50-db.conf:1 to 776"),
        "{fix}"
    );
    let fix = found("A03", tree.denied("/u01/app/oracle/product")).fix.join("\n");
    assert!(
        fix.starts_with("read what Oracle's instances have") && !fix.contains("echo "),
        "{fix}"
    );
}

#[test]
fn a_count_that_was_meant_for_pages_of_2m_keeps_its_memory() {
    let power = |pages: u64| {
        let tree = meminfo(pool(machine(), "16384kB", 0, 0, 0), &[("Hugepagesize", 16 << 10)]);
        tree.file("/etc/sysctl.conf", format!("vm.nr_hugepages = {pages}\n"))
    };
    let fix = |tree| found("A01", tree).fix.join("\n");
    let meant = fix(power(1500));
    assert!(
        meant.contains("/etc/sysctl.conf:1 to 188: 1500 was meant for pages of 2M, and the default size here is 16M"),
        "{meant}"
    );
    assert!(!fix(power(500)).contains("was meant"));
    // A default size that was chosen is counted in.
    let chosen = power(1500).line("/proc/cmdline", "default_hugepagesz=16M");
    assert!(!fix(chosen).contains("was meant"));
}

#[test]
fn a_pool_gets_one_direction_of_advice() {
    let asked = |left: u64| {
        let tree = meminfo(pool(machine(), "2048kB", 4096, 4096, 0), &[("MemAvailable", left)]);
        tree.file("/etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 9000\n")
    };
    let starved = found("A01", asked(200 << 10)).fix;
    assert_eq!(starved, found("A03", asked(200 << 10)).fix);
    assert!(
        starved[0].starts_with("echo 0 >") && starved[1].ends_with("50-db.conf:1 to 0"),
        "{starved:?}"
    );
    clear("A02", asked(200 << 10));
    // So does a request that the machine could take.
    let small = asked(200 << 10).file("/etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 5000\n");
    assert_eq!(found("A01", small).fix, starved);
    // 8G there and 2G that programs leave, less a tenth of 16G.
    let fix = found("A01", asked(2 << 20)).fix.join("\n");
    assert!(fix.contains("at most 4300 pages of 2M"), "{fix}");
    let fix = found(
        "A01",
        meminfo(pool(asked(1 << 20), "2048kB", 0, 0, 0), &[("MemAvailable", 1 << 20)]),
    )
    .fix;
    assert!(
        fix.len() == 1 && fix[0].contains("no page of 2M leaves a tenth"),
        "{fix:?}"
    );
}

#[test]
fn a04_a_segment_that_does_not_fit() {
    let database = |size| process(70, "ora_pmon_ORCL").area(shared(size, "/SYSV00000000 (deleted)"));
    let machine = || pool(machine(), "2048kB", 100, 100, 0);
    let finding = found("A04", database(1024).on(machine()));
    assert!(finding.fix[0].contains("it needs 512 pages"), "{:?}", finding.fix);
    clear("A04", database(128).on(machine()));
    // A full pool is too small for what is left of a program that has it, and the segment of its processes is one.
    let full = |pid| {
        let held = hugetlb(200, 2048).named("/SYSV00000001 (deleted)").perms("rw-s");
        let process = process(pid, "db2sysc").area(held);
        process.area(shared(178, "/SYSV00000000 (deleted)"))
    };
    let all_used = || pool(crate::machines::machine(), "2048kB", 100, 0, 0);
    let mut all = crate::judge(&evidence(full(71).on(full(70).on(all_used())))).findings;
    all.retain(|finding| ["A04", "D23"].contains(&finding.id.as_str()));
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].fix[0].contains("89 pages of 2M beside those in use: echo 189"),
        "{all:?}"
    );
    assert!(
        all[1].fix[0].contains("vm.nr_hugepages=189"),
        "no other number: {all:?}"
    );
    clear("A04", database(178).on(all_used()));
    clear("A04", machine());
    not_judged("A04", database(1024).on(machine()).denied("/proc/70/smaps"), "denied");
}

#[test]
fn a05_a_default_size_without_pages() {
    found("A05", pool(machine(), "1048576kB", 4, 4, 0));
    clear("A05", pool(machine(), "1048576kB", 4, 2, 0));
    clear("A05", pool(pool(machine(), "1048576kB", 4, 4, 0), "2048kB", 10, 10, 0));
}

#[test]
fn a06_free_pages_that_are_promised() {
    found("A06", pool(machine(), "2048kB", 100, 40, 40));
    clear("A06", pool(machine(), "2048kB", 100, 40, 39));
    clear("A06", pool(machine(), "2048kB", 100, 0, 0));
    // One program alone looks for no free page; guests of one name are several.
    let promised = || pool(machine(), "2048kB", 100, 40, 40);
    let guest = |pid| process(pid, "qemu-system-x86").area(hugetlb(60, 2048));
    let server = |pid| process(pid, "postgres").area(hugetlb(120, 2048).perms("rw-s"));
    clear("A06", guest(70).on(promised()));
    clear("A06", guest(71).parent(70).on(guest(70).on(promised())));
    clear("A06", server(71).on(server(70).on(promised())));
    found("A06", guest(71).on(guest(70).on(promised())));
    found("A06", guest(70).on(promised()).denied("/proc/70/smaps"));
}

#[test]
fn a07_surplus_above_what_is_allowed() {
    let surplus = |allowed| {
        let tree = pool_line(pool(machine(), "2048kB", 30, 0, 0), "2048kB", "surplus_hugepages", 20);
        pool_line(tree, "2048kB", "nr_overcommit_hugepages", allowed)
    };
    found("A07", surplus(0));
    let asked = surplus(0).file("/etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 64\n");
    assert!(
        found("A07", asked).fix[0].starts_with("echo 64 >"),
        "as many as are asked for"
    );
    clear("A07", surplus(20));
}

#[test]
fn a08_a_pool_that_only_grows_on_demand() {
    let demand = |nr| {
        pool_line(
            pool(machine(), "2048kB", nr, nr, 0),
            "2048kB",
            "nr_overcommit_hugepages",
            64,
        )
    };
    assert_eq!(found("A08", demand(0)).severity, Severity::Info);
    let failed = vmstat(demand(0), &[("htlb_buddy_alloc_fail", 3)]);
    assert_eq!(found("A08", failed).severity, Severity::Warning);
    clear("A08", demand(1));
    let in_use = pool_line(demand(1), "2048kB", "surplus_hugepages", 1);
    clear("A08", in_use);
}

#[test]
fn a12_places_that_disagree_about_a_pool() {
    let file = |name: &str, pages: u64| {
        (
            format!("/etc/sysctl.d/{name}.conf"),
            format!("vm/nr_hugepages={pages}\n"),
        )
    };
    let with = |tree: Tree, (path, text): (String, String)| tree.file(&path, text);
    let two = |pages| with(with(machine(), file("10-a", 100)), file("90-b", pages));
    let finding = found("A12", two(200));
    assert!(finding.fix[0].contains("90-b.conf:1"), "{:?}", finding.fix);
    clear("A12", two(100));
    found(
        "A12",
        with(machine().line("/proc/cmdline", "hugepages=512"), file("10-a", 100)),
    );
    // A package's profile of tuned, which no file of its name in sysctl.d hides.
    let tuned = with(machine(), file("10-a", 100))
        .file("/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n")
        .file("/etc/tuned/active_profile", "oracle\n")
        .file("/usr/lib/tuned/oracle/tuned.conf", "[sysctl]\nvm.nr_hugepages = 64\n");
    let fix = found("A12", tuned).fix;
    assert!(
        fix[0].contains("include=oracle") && !fix.join("\n").contains("sysctl.d/tuned.conf"),
        "{fix:?}"
    );
}

#[test]
fn a12_a_pool_that_changed_after_hugewise_set_it() {
    let at = |directory: &str, value: &str| {
        let mut evidence = Evidence::gather(&Source::from_tree("test", pool(machine(), "2048kB", 100, 0, 0)));
        let path = format!("{directory}/hugepages/hugepages-2048kB/nr_hugepages");
        evidence.applied = Reading::Known(vec![Applied {
            path,
            value: value.to_owned(),
            at: 100.0,
        }]);
        explain("A12").expect("a rule").judge(&evidence)
    };
    for directory in ["/sys/kernel/mm", "/sys/devices/system/node/node0"] {
        assert!(matches!(at(directory, "64"), Verdict::Found(_)));
        assert_eq!(at(directory, "100"), Verdict::Clear);
    }
    assert_eq!(at("/sys/devices/system/node/node7", "64"), Verdict::Clear);
}

#[test]
fn a13_and_a14_parameters_without_effect() {
    let boot = |line: &str| machine().line("/proc/cmdline", line);
    let instead = found("A13", boot("hugepagesz=3M hugepages=4")).fix;
    assert!(
        instead[0].contains("`hugepagesz=2M hugepages=6` in place of `hugepagesz=3M hugepages=4`"),
        "{instead:?}"
    );
    clear("A13", boot("hugepagesz=2M hugepages=4 hugepagesz=1G hugepages=1"));
    not_judged("A13", machine().denied("/proc/cmdline"), "denied");
    let meminfo = "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 6291456 kB\nShmem: 0 kB\n";
    let xen = |line: &str| {
        boot(line)
            .without("/sys/kernel/mm/hugepages")
            .file("/proc/meminfo", meminfo)
    };
    let finding = found("A13", xen("ro hugepages=1024"));
    assert!(
        finding.consequence.contains("this kernel has no hugetlb pages"),
        "{finding:?}"
    );
    clear("A13", xen("ro quiet"));
    let finding = found("A14", boot("hugepages=256 hugepagesz=2M hugepages=512"));
    assert!(
        finding.consequence.contains("`hugepages=512`"),
        "{}",
        finding.consequence
    );
    found("A14", boot("hugepagesz=2M hugepages=1 hugepagesz=2M hugepages=2"));
    found("A14", boot("hugepagesz=2M hugepages=0:x"));
    // The size that the count in front is for is the machine's own.
    let of_64k =
        |line: &str| crate::machines::meminfo(pool(boot(line), "524288kB", 4, 4, 0), &[("Hugepagesize", 512 << 10)]);
    clear("A14", of_64k("hugepages=4 hugepagesz=512M"));
    for line in [
        "hugepages=4 hugepagesz=2M",
        "hugepages=4 hugepagesz=512M hugepages=8",
        "hugepages=4 hugepagesz=1G",
    ] {
        found("A14", of_64k(line));
    }
    clear("A14", of_64k("hugepages=4 hugepagesz=2M hugepages=8"));
    let by_node = boot("default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=0:5,1:6");
    clear("A14", node_pool(by_node.clone(), 1, "2048kB", 6, 0));
    let finding = found("A14", by_node);
    assert!(
        finding.consequence.contains("this machine has no NUMA node 1"),
        "{finding:?}"
    );
    clear("A14", boot("hugepagesz=3M hugepages=4"));
    // Which pools there are, and with the file alone the running line, is not needed.
    let bare = |line: &str| host::Tree::new().line("/proc/cmdline", line);
    found("A14", bare("ro transparent_hugepages=never"));
    clear("A14", bare("ro hugepagesz=3M hugepages=4 hugepagesz=3M hugepages=4"));
    let grub = "GRUB_CMDLINE_LINUX=\"transparent_hugepages=never\"\n";
    let alone = host::Tree::new().file("/etc/default/grub", grub);
    found("A14", alone.clone());
    not_judged(
        "A14",
        alone.file("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n"),
        "cmdline",
    );
}

#[test]
fn a15_pages_of_1g_on_a_cpu_without() {
    let old = || {
        machine()
            .file(
                "/proc/cpuinfo",
                "vendor_id\t: GenuineIntel\nflags\t\t: pae pse nx hypervisor\n",
            )
            .without("/sys/kernel/mm/hugepages/hugepages-1048576kB")
    };
    found("A15", old().line("/proc/cmdline", "hugepagesz=1G hugepages=4"));
    let java = process(8, "java")
        .arg("-XX:+UseLargePages")
        .arg("-XX:LargePageSizeInBytes=1g")
        .arg("Main");
    found("A15", java.on(old()));
    let miner = || process(9, "xmrig").arg("--randomx-1gb-pages");
    let finding = found("A15", miner().on(old()));
    assert!(!finding.fix.join("\n").contains("hugepagesz"), "{finding:?}");
    clear("A15", miner().on(machine()));
    clear("A15", process(9, "xmrig").on(old()));
    not_judged("A15", miner().on(old()).denied("/proc/9/cmdline"), "denied");
    clear("A15", old());
    clear("A15", machine().line("/proc/cmdline", "hugepagesz=1G hugepages=4"));
}

/// With a kubelet that has 4 pages of 1G for pods.
fn of_pods(tree: Tree) -> Tree {
    tree.line("/sys/fs/cgroup/kubepods.slice/hugetlb.1GB.max", 4_u64 << 30)
}

#[test]
fn a02_a_pool_of_a_kubelet() {
    let idle = || pool(machine(), "1048576kB", 4, 4, 0);
    assert_eq!(found("A02", idle()).severity, Severity::Warning);
    let finding = found("A02", of_pods(idle()));
    assert_eq!(finding.severity, Severity::Info);
    assert!(!finding.fix.concat().contains("free it"), "{finding:?}");
}

/// What shows a pool where sysfs is not known.
const MEMINFO: &str = "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nHugePages_Total: 100\nHugePages_Free: 100\nHugePages_Rsvd: 0\n\
                       Hugepagesize: 2048 kB\n";

#[test]
fn a01_a_pool_that_meminfo_alone_shows() {
    let asks = |pages: u64| {
        let bare = host::Tree::new().file("/proc/meminfo", MEMINFO);
        bare.line("/etc/sysctl.conf", format!("vm.nr_hugepages = {pages}"))
    };
    let short = found("A01", asks(128));
    assert!(short.consequence.starts_with("28 of 128 pages of 2M"), "{short:?}");
    assert!(short.evidence[1].source == "/proc/meminfo", "{short:?}");
    // Pools of other sizes are not known.
    not_judged("A01", asks(100), "/sys/kernel/mm/hugepages");
}

#[test]
fn a18_a_pool_without_a_mount() {
    let idle = || pool(machine(), "1048576kB", 4, 4, 0);
    assert_eq!(found("A18", idle()).severity, Severity::Info);
    let switch = process(5, "ovs-vswitchd").on(idle());
    assert_eq!(found("A18", switch).severity, Severity::Error);
    // One that holds pages of another size asks for no others.
    let settled = process(5, "ovs-vswitchd").area(hugetlb(64, 2048)).on(idle());
    assert_eq!(found("A18", settled).severity, Severity::Info);
    // A kubelet mounts what a pod asks for.
    clear("A18", of_pods(idle()));
    clear("A18", pool(machine(), "2048kB", 4, 4, 0));
    clear("A18", pool(machine(), "1048576kB", 4, 0, 0));
    let without_mount = || pool(machine(), "2048kB", 100, 40, 0).file("/proc/self/mounts", "proc /proc proc rw 0 0\n");
    let moved = || process(5, "solver").env("HUGETLB_ELFMAP=R");
    let library = anonymous(1).named("/usr/lib64/libhugetlbfs.so").perms("r-xp");
    let loaded = found("A18", moved().area(library).on(without_mount()));
    assert!(loaded.consequence.contains("such as solver (5)"), "{loaded:?}");
    clear("A18", moved().on(without_mount()));
    // What nothing else uses is where most programs look.
    let bare = found(
        "A18",
        without_mount()
            .without("/sys/kernel/mm/hugepages")
            .file("/proc/meminfo", MEMINFO),
    );
    assert!(bare.fix[0].ends_with("none /dev/hugepages"), "{bare:?}");
    assert!(bare.evidence[0].field == "HugePages_Total", "{bare:?}");
}

#[test]
fn a20_pages_that_no_process_maps() {
    let held = |free| pool(machine(), "2048kB", 100, free, 0);
    let segment = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
                   0 5 600 209715200 10 10 0 0 0 0 0 0 0 0 209715200 0\n";
    let finding = found("A20", held(0).file("/proc/sysvipc/shm", segment));
    assert!(
        finding.fix.iter().any(|fix| fix.contains("ipcrm -m 5")),
        "{:?}",
        finding.fix
    );
    let file = held(50).file("/dev/hugepages/rtemap_0", "");
    assert!(found("A20", file).fix.iter().any(|fix| fix.contains("rtemap_0")));
    clear("A20", held(100));
    clear("A20", process(9, "db").area(hugetlb(200, 2048)).on(held(0)));
    // Two processes map the same pages.
    let both = |pid| process(pid, "db").area(hugetlb(100, 2048).perms("rw-s"));
    found("A20", both(9).on(both(10).on(held(0))));
    clear("A20", both(9).on(both(10).on(held(50))));
}

#[test]
fn a23_memory_spent_on_page_tables() {
    found("A23", meminfo(machine(), &[("PageTables", 1 << 20)]));
    clear("A23", meminfo(machine(), &[("PageTables", 100 << 10)]));
    let of = |name| {
        let segment = || shared(100, "/dev/zero (deleted)");
        let two = process(9, name)
            .area(segment())
            .on(process(10, name).area(segment()).on(pool(machine(), "2048kB", 4, 4, 0)));
        found("A23", meminfo(two, &[("PageTables", 1 << 20)]))
    };
    let server = of("postgres");
    assert_eq!(server.evidence[1].field, "postgres: VmPTE of 2 processes");
    assert_eq!(
        server.fix[0],
        "put the memory of postgres on hugetlb pages: huge_pages = on"
    );
    assert!(of("worker").fix[0].ends_with("its own option for huge pages, if it has one"));
    let alone = process(9, "worker").area(shared(100, "/dev/zero (deleted)"));
    let alone = found(
        "A23",
        meminfo(alone.on(pool(machine(), "2048kB", 4, 4, 0)), &[("PageTables", 1 << 20)]),
    );
    assert!(!alone.fix.concat().contains("hugetlb"), "{alone:?}");
}

/// Its servers map the SGA one by one, and are known by their arguments.
#[test]
fn a23_an_sga_on_base_pages() {
    let with = |memlock| {
        let sga = process(8, "ora_pmon_cen")
            .memlock(memlock)
            .area(shared(2048, "/SYSV1 (deleted)"));
        let tree = sga.on(machine().line("/proc/sys/kernel/osrelease", "4.1.12"));
        let server = |pid| process(pid, "oraclecen").arg("(LOCAL=NO)");
        let tree = server(9).on(server(10).on(tree));
        let fix = found("A23", meminfo(tree, &[("PageTables", 1 << 20)])).fix;
        fix.join("\n")
    };
    let low = with("65536");
    assert!(
        low.contains("use_large_pages=ONLY") && low.contains("needs 1028 pages of 2M"),
        "{low}"
    );
    assert!(
        low.contains("memlock") && !with("unlimited").contains("memlock"),
        "{low}"
    );
}

#[test]
fn a24_a_program_beside_its_pool() {
    let beside = |name| process(9, name).area(anonymous(1024));
    let idle = || pool(machine(), "2048kB", 512, 512, 0);
    let finding = found("A24", beside("solver").on(idle()));
    assert!(finding.consequence.contains("solver (9)"), "{}", finding.consequence);
    let larger = process(10, "model")
        .area(anonymous(3000))
        .on(beside("solver").on(idle()));
    let finding = found("A24", larger.clone());
    assert!(finding.consequence.contains("model (10)"), "{}", finding.consequence);
    assert_eq!(evidence(larger).programs.known().map(Vec::len), Some(3));
    assert!(
        finding.fix[1].contains("988 pages more in the pool: its mapping of 2.9G needs 1500"),
        "{finding:?}"
    );
    clear("A24", beside("hugewise").on(idle()));
    clear("A24", beside("solver").on(machine()));
    clear("A24", process(9, "solver").area(anonymous(32)).on(idle()));
    clear("A24", beside("java").arg("Main").on(idle()));
}

#[test]
fn a24_a_miner_and_the_pool_of_the_default_size() {
    let miner = found(
        "A24",
        process(11, "xmrig")
            .area(anonymous(2336))
            .on(pool(machine(), "2048kB", 1011, 1011, 0)),
    );
    assert!(
        miner
            .consequence
            .contains("gets none, as its mapping of 2.3G needs 1168 pages"),
        "{miner:?}"
    );
    assert!(
        miner.fix[0].contains("pool:2M=1168") && miner.fix[1].contains("157 pages of 2M are missing"),
        "{miner:?}"
    );
    // Its pool is full, and another one idle: what it asks of is the pool of the default size.
    let full = || pool(machine(), "2048kB", 12, 0, 0);
    let in_part = || process(11, "xmrig").area(anonymous(2336)).area(hugetlb(24, 2048));
    let miner = found("A24", in_part().on(pool(full(), "1048576kB", 3, 3, 0)));
    let fix = miner.fix.join("\n");
    assert!(fix.contains("pool:2M=1180") && fix.contains("1gb-pages"), "{miner:?}");
    assert!(!found("A24", in_part().on(full())).fix.join("\n").contains("1gb-pages"));
    clear("A24", in_part().on(machine()));
}

#[test]
fn a24_names_the_option_of_the_program_and_malloc_s_where_it_reaches() {
    let beside = |name| process(9, name).area(anonymous(1024));
    let idle = || pool(machine(), "2048kB", 512, 512, 0);
    let dotnet = found("A24", beside("dotnet").on(idle())).fix.join("\n");
    assert!(
        dotnet.contains("DOTNET_GCLargePages=1") && !dotnet.contains("GLIBC_TUNABLES"),
        "{dotnet}"
    );
    for name in ["beam.smp", "node"] {
        let fix = found("A24", beside(name).on(idle())).fix.join("\n");
        assert!(fix.contains("no pages of a pool") && !fix.contains("hugetlb="), "{fix}");
    }
    // malloc's tunables do not reach memory of shmget, and what is larger than the pool is A04's.
    let server = |size| process(9, "oninit").area(shared(size, "/SYSV52564801 (deleted)"));
    let diagnosis = crate::judge(&evidence(server(900).on(idle())));
    let fixes = |id| {
        diagnosis
            .of(id)
            .flat_map(|finding| finding.fix.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(
        fixes("A24").contains("RESIDENT -1") && !fixes("A24").contains("GLIBC_TUNABLES"),
        "{diagnosis:#?}"
    );
    assert!(!fixes("A02").contains("free it"), "{diagnosis:#?}");
    clear("A24", server(1100).on(idle()));
    // Of two idle pools the larger one counts.
    let two = || pool(pool(machine(), "2048kB", 600, 600, 0), "1048576kB", 1, 1, 0);
    let larger = found("A24", server(1100).on(two())).fix.join("\n");
    assert!(larger.contains("RESIDENT -1"), "{larger}");
    let code = anonymous(60).named("/usr/bin/etcd").perms("r-xp");
    let of_go = found("A24", beside("etcd").area(code).on(idle())).fix.join("\n");
    assert!(!of_go.contains("GLIBC_TUNABLES"), "{of_go}");
}

#[test]
fn a24_what_a_program_is_told_by_its_environment() {
    let filled = || pool(machine(), "2048kB", 1024, 1024, 0);
    let train = |variable: &str| {
        process(41, "train")
            .env(variable)
            .area(anonymous(2048))
            .area(anonymous(2).named("/opt/efa/libfabric.so.1").perms("r-xp"))
    };
    let finding = found("A24", train("FI_EFA_USE_HUGE_PAGE=0").on(filled()));
    let fix = finding.fix.join("\n");
    assert!(fix.contains("leave FI_EFA_USE_HUGE_PAGE out"), "{fix}");
    let finding = found("A24", train("FI_EFA_USE_HUGE_PAGE=1").on(filled()));
    assert!(!finding.fix.join("\n").contains("libfabric"), "{finding:?}");
    // A program that takes nothing of a pool that has room: it may have started before.
    let asking = |mib| {
        let code = anonymous(2).named("/usr/lib/libc.so.6").perms("r-xp");
        let app = process(41, "app").env("GLIBC_TUNABLES=glibc.malloc.hugetlb=2");
        app.area(anonymous(mib)).area(code)
    };
    let fix = found("A24", asking(2048).on(filled())).fix.join("\n");
    assert!(
        fix.contains("restart it: GLIBC_TUNABLES") && !fix.contains("or start it with"),
        "{fix}"
    );
    let larger = found("A24", asking(3000).on(filled())).fix.join("\n");
    assert!(
        larger.contains("476 pages more in the pool") && larger.contains("restart it with a larger pool"),
        "{larger}"
    );
    assert!(
        !larger.contains("free the pool") && !larger.contains("does not read"),
        "{larger}"
    );
    // Of musl, which has no such tunable.
    let musl = process(41, "app")
        .env("GLIBC_TUNABLES=glibc.malloc.hugetlb=2")
        .area(anonymous(2048))
        .area(anonymous(2).named("/lib/ld-musl-x86_64.so.1").perms("r-xp"));
    let fix = found("A24", musl.on(filled())).fix.join("\n");
    assert!(fix.contains("it maps no glibc") && !fix.contains("restart it"), "{fix}");
    // A glibc that has no such tunable.
    let old = process(41, "app")
        .area(anonymous(2048))
        .area(anonymous(2).named("/usr/lib64/libc-2.17.so").perms("r-xp"));
    let fix = found("A24", old.on(filled())).fix.join("\n");
    assert!(
        fix.contains("glibc 2.17 has no tunable") && !fix.contains("hugetlb=2"),
        "{fix}"
    );
}

#[test]
fn a25_memory_that_is_registered_in_a_program_that_may_fork() {
    let old = || pool(machine(), "2048kB", 2048, 1024, 0).line("/proc/sys/kernel/osrelease", "4.18.0-147.el8.x86_64");
    let rank = |variable: &str| {
        process(51, "rank")
            .env(variable)
            .area(hugetlb(2048, 2048))
            .area(anonymous(2).named("/usr/lib64/libibverbs.so.1").perms("r-xp"))
    };
    let finding = found("A25", rank("RDMAV_FORK_SAFE=1").on(old()));
    assert!(finding.fix[0].starts_with("RDMAV_HUGEPAGES_SAFE=1"), "{finding:?}");
    clear("A25", rank("RDMAV_FORK_SAFE=1").env("RDMAV_HUGEPAGES_SAFE=1").on(old()));
    clear("A25", rank("UCX_TLS=rc").on(old()));
    // A fork copies what is registered.
    clear(
        "A25",
        rank("RDMAV_FORK_SAFE=1").on(pool(machine(), "2048kB", 2048, 1024, 0)),
    );
}

#[test]
fn a25_a_heap_that_parent_and_child_share() {
    let on = |variables: &[&str], perms: &'static str| {
        let heap = || {
            hugetlb(64, 2048)
                .named("/dev/hugepages/tc.Xa81Qz (deleted)")
                .perms(perms)
        };
        let with = |one| variables.iter().fold(one, |one: Process, variable| one.env(variable));
        let parent = with(process(61, "matcher")).area(heap());
        let child = with(process(62, "matcher").parent(61)).area(heap());
        child.on(parent.on(pool(machine(), "2048kB", 64, 32, 0)))
    };
    let path = "TCMALLOC_MEMFS_MALLOC_PATH=/dev/hugepages/tc";
    let finding = found("A25", on(&[path], "rw-s"));
    assert!(finding.consequence.contains("one heap of 64M"), "{finding:?}");
    clear("A25", on(&[path], "rw-p"));
    clear("A25", on(&[], "rw-s"));
}

#[test]
fn a21_descriptors_of_a_large_pool() {
    let with = |pages, on: u64| {
        let large = meminfo(pool(machine(), "2048kB", pages, 0, 0), &[("MemTotal", 512 << 20)]);
        large.line("/proc/sys/vm/hugetlb_optimize_vmemmap", on)
    };
    let finding = found("A21", with(65_536, 0));
    assert!(
        finding.consequence.starts_with("1.8G of memory describes"),
        "{finding:?}"
    );
    clear("A21", with(65_536, 1));
    clear("A21", with(1024, 0));
    // A kernel that cannot do without them.
    clear("A21", pool(machine(), "2048kB", 65_536, 0, 0));
}

#[test]
fn what_grub_s_defaults_ask_for_and_the_running_kernel_does_not_have() {
    let grub = |text: &str| machine().file("/etc/default/grub", text);
    let more = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=50\"\n";
    let drop_in = grub("GRUB_CMDLINE_LINUX=\"quiet\"\n").file("/etc/default/grub.d/60-pages.cfg", more);
    let finding = found("A01", drop_in);
    let seen = &finding.evidence[0];
    assert_eq!(seen.source, "/etc/default/grub.d/60-pages.cfg:1", "{finding:?}");
    assert!(finding.fix.join("\n").contains("update-grub && reboot"), "{finding:?}");
    // Kernels of their own entries do not take it from there.
    let entries = grub(more).file("/boot/loader/entries/1.conf", "options quiet\n");
    clear("A01", entries);
    found("A14", grub("GRUB_CMDLINE_LINUX=\"transparent_hugepages=never\"\n"));
    found("A14", machine().line("/proc/cmdline", "transparent_hugepage=on"));
    let drift = found("D23", grub("GRUB_CMDLINE_LINUX=\"transparent_hugepage=never\"\n"));
    assert!(
        drift.consequence.contains("the running kernel was started without it"),
        "{drift:?}"
    );
    assert!(drift.fix[0].contains("update-grub && reboot"), "{drift:?}");
    // What a kernel without such a pool was not started with.
    let larger = grub("GRUB_CMDLINE_LINUX=\"hugepagesz=1G hugepages=8\"\n");
    let text = found("A01", larger.without("/sys/kernel/mm/hugepages/hugepages-1048576kB")).consequence;
    assert!(text.contains("8 pages of 1G"), "{text}");
    let file = "w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 4\n";
    let short = found("A01", machine().file("/etc/tmpfiles.d/pages.conf", file));
    assert!(short.consequence.contains("4 of 4 pages of 1G"), "{short:?}");
    let profile = machine().line("/etc/tuned/active_profile", "own").file(
        "/etc/tuned/own/tuned.conf",
        "[sysctl]\nvm.nr_hugepages = 0x40 # pages\n",
    );
    assert!(
        found("A01", profile).consequence.contains("64 of 64"),
        "octal and hex as the kernel takes them"
    );
}

#[test]
fn sysctl_settings_on_the_boot_line() {
    let with = |release: &str, nr| {
        pool(machine(), "2048kB", nr, 0, 0)
            .line("/proc/sys/kernel/osrelease", release)
            .line("/proc/cmdline", "quiet sysctl.vm.nr_hugepages=64")
    };
    clear("D23", with("6.1.0", 64));
    let short = found("A01", with("6.1.0", 32));
    assert_eq!(short.evidence[0].field, "sysctl.vm.nr_hugepages", "{short:?}");
    clear("A01", with("5.4.0", 0));
    let old = found("A14", with("5.4.0", 0)).consequence;
    assert!(old.contains("Linux before 5.8"), "{old}");
}

#[test]
fn a01_a_size_of_which_the_kernel_has_no_pool() {
    let tree = |release: &str| {
        let cpu = "vendor_id\t: GenuineIntel\nflags\t\t: pse pdpe1gb\n";
        let line = "default_hugepagesz=1G hugepagesz=1G hugepages=2";
        let own = pool(machine(), "1048576kB", 2, 2, 0).file("/proc/cpuinfo", cpu);
        meminfo(own, &[("Hugepagesize", 1 << 20)])
            .without("/sys/kernel/mm/hugepages/hugepages-2048kB")
            .line("/proc/cmdline", line)
            .line("/proc/sys/kernel/osrelease", release)
    };
    let mount = "none /dev/hugepages2M hugetlbfs pagesize=2M 0 0\n";
    let by_mount = found("A01", tree("5.4.0").file("/etc/fstab", mount));
    assert!(
        by_mount.consequence.contains("the mount of /dev/hugepages2M fails"),
        "{by_mount:?}"
    );
    assert!(by_mount.fix[0].contains("hugepagesz=2M hugepages=0"), "{by_mount:?}");
    assert!(
        by_mount.consequence.ends_with("and the boot may stop for it"),
        "{by_mount:?}"
    );
    for option in ["nofail", "x-systemd.automount"] {
        let optional = mount.replace("pagesize=2M", &format!("{option},pagesize=2M"));
        let optional = found("A01", tree("5.4.0").file("/etc/fstab", optional));
        assert!(!optional.consequence.contains("boot may stop"), "{optional:?}");
    }
    let unknown = mount.replace("pagesize=2M", "pagesize=16M");
    let unknown = found("A01", tree("5.4.0").file("/etc/fstab", unknown));
    assert!(unknown.fix[0].starts_with("name a size in /etc/fstab:1"), "{unknown:?}");
    let late = mount.replace("pagesize=2M", "noauto,pagesize=2M");
    clear("A01", tree("5.4.0").file("/etc/fstab", late));
    let write = "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 64\n";
    let written = |release| found("A01", tree(release).file("/etc/tmpfiles.d/pages.conf", write));
    let old = written("5.4.0");
    assert!(old.fix[0].starts_with("Linux before 5.8 makes this pool"), "{old:?}");
    // Newer kernels have that pool whatever the boot line names: without it, something else is wrong.
    let new = written("6.1.0");
    assert!(!new.fix.concat().contains("Linux before"), "{new:?}");
}

#[test]
fn a12_a_unit_that_gives_pages_of_the_boot_line_back() {
    let unit = |pages: u64| {
        let text = format!(
            "[Service]\nExecStart=/bin/sh -c 'echo {pages} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'\n"
        );
        pool(machine(), "2048kB", 64, 64, 0)
            .line("/proc/cmdline", "hugepages=512")
            .file("/etc/systemd/system/hugepages.service", text)
    };
    let finding = found("A12", unit(64));
    assert!(
        finding.consequence.contains("leaves 64 of the 512 pages of 2M"),
        "{finding:?}"
    );
    clear("A01", unit(64));
    clear("A02", unit(64));
    // The pool is short for another reason.
    clear("A12", unit(100));
    found("A01", unit(100));
}
