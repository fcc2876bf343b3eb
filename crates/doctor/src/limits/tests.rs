//! Each rule of `limits` where it fires and where it must not.

use host::Tree;
use model::findings::Severity;

use crate::Verdict;
use crate::machines::*;

fn with_pool() -> Tree {
    pool(machine(), "2048kB", 512, 512, 0)
}

fn j9() -> Process {
    instance(40)
}

fn instance(pid: u32) -> Process {
    process(pid, "java")
        .arg("-Xlp:objectheap:pagesize=2M")
        .arg("-Xmx512m")
        .arg("Main")
        .area(anonymous(512))
        .memlock("unlimited")
}

#[test]
fn b01_segments_that_need_a_group_or_a_capability() {
    let finding = found("B01", j9().on(with_pool()));
    assert!(finding.consequence.contains("EPERM"), "{}", finding.consequence);
    clear("B01", j9().locks().on(with_pool()));
    let group = with_pool().line("/proc/sys/vm/hugetlb_shm_group", 2000);
    clear("B01", j9().groups("1000 2000").on(group.clone()));
    found("B01", j9().groups("1000 3000").on(group.clone()));
    let fixes = |groups: &str, tree: Tree| found("B01", j9().groups(groups).on(tree)).fix.join("\n");
    let own = fixes(
        "100 54321",
        with_pool().file("/etc/group", "users:x:100:\nnogroup:x:1000:\ndba:x:54321:\n"),
    );
    assert!(own.contains("sysctl -w vm.hugetlb_shm_group=54321"), "{own}");
    // Another program may count on the group that is set.
    let set = fixes("1000", group.clone().file("/etc/group", "huge:x:2000:\n"));
    assert!(
        set.starts_with("usermod -aG huge ") && set.contains("log in again") && !set.contains("sysctl -w"),
        "{set}"
    );
    let new = fixes("100", with_pool().file("/etc/group", "users:x:100:\nnogroup:x:1000:\n"));
    assert!(
        new.starts_with("groupadd -f hugetlb") && new.contains("log in again"),
        "{new}"
    );
    // The kernel takes one group: a second one would undo the first.
    let both = |groups: &str| {
        let tree = instance(41)
            .groups(groups)
            .on(with_pool().file("/etc/group", "users:x:1000:\ndba:x:54321:\ndevs:x:60000:\n"));
        let Verdict::Found(two) = verdict("B01", j9().groups("54321").on(tree)) else {
            panic!("not found");
        };
        assert_eq!(two.len(), 2, "{two:?}");
        two.into_iter()
            .flat_map(|finding| finding.fix)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (apart, shared) = (both("60000"), both("60000 54321"));
    assert!(
        apart.contains("groupadd") && !apart.contains("sysctl -w vm.hugetlb_shm_group=5"),
        "{apart}"
    );
    assert!(shared.contains("=54321") && !shared.contains("groupadd"), "{shared}");
    // A group of a directory may be the one that is set.
    let elsewhere = fixes("1000", group.file("/etc/group", "dba:x:1000:\n"));
    assert!(
        elsewhere.contains("if the group 2000 exists") && !elsewhere.contains("=1000"),
        "{elsewhere}"
    );
    clear("B01", j9().on(with_pool().line("/proc/sys/kernel/osrelease", "5.15.0")));
    clear("B01", j9().on(machine()));
    let hotspot = process(40, "java")
        .arg("-XX:+UseLargePages")
        .arg("Main")
        .area(anonymous(512));
    clear("B01", hotspot.on(with_pool()));
    not_judged("B01", with_pool().denied("/proc/sys/vm/hugetlb_shm_group"), "denied");
}

#[test]
fn b02_memory_that_has_to_be_locked() {
    let old = || with_pool().line("/proc/sys/kernel/osrelease", "5.10.0");
    found("B02", j9().memlock("65536").on(old()));
    clear("B02", j9().on(old()));
    clear("B02", j9().memlock("65536").on(with_pool()));
    let guest = |memlock| {
        process(50, "qemu-system-x86_64")
            .arg("-device")
            .arg("vfio-pci,host=01:00.0")
            .area(anonymous(1024))
            .memlock(memlock)
    };
    found("B02", guest("8388608").on(machine()));
    clear("B02", guest("2147483648").on(machine()));
    let mediated = |memlock| {
        process(51, "qemu-system-x86_64")
            .arg("-m")
            .arg("8192")
            .arg("-device")
            .arg("vfio-pci,sysfsdev=/sys/bus/mdev/devices/a297db4a-f4c2-11e6-90f6-d3b88d6c9525")
            .cgroup("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope")
            .area(anonymous(1024))
            .memlock(memlock)
    };
    let finding = found("B02", mediated("65536").on(machine()));
    assert!(finding.consequence.contains("a mediated device"), "{finding:?}");
    assert!(
        finding.fix[0].contains("<hostdev>") && finding.fix[1].contains("<hard_limit unit='GiB'>10<"),
        "{finding:?}"
    );
    clear("B02", mediated("67108864").on(machine()));
    clear("B02", mediated("65536").locks().on(machine()));
    let numbered = |pid, memlock| {
        process(pid, "xhpl")
            .cgroup("/system.slice/slurmd.service")
            .area(anonymous(1024))
            .area(anonymous(1).named("/dev/infiniband/uverbs0").perms("-w-s"))
            .memlock(memlock)
    };
    let rank = |memlock| numbered(70, memlock);
    let finding = found("B02", rank("65536").on(machine()));
    assert!(
        finding.fix[0].starts_with("systemctl edit slurmd.service"),
        "{finding:?}"
    );
    assert!(finding.consequence.ends_with("registration may fail"), "{finding:?}");
    let Verdict::Found(two) = verdict("B02", numbered(71, "65536").on(rank("65536").on(machine()))) else {
        panic!("not found");
    };
    assert!(
        two.len() == 1 && two[0].consequence.starts_with("xhpl (70) and 1 more like it register"),
        "{two:?}"
    );
    assert!(two[0].fix[4].starts_with("start the job again"), "{two:?}");
    clear("B02", rank("unlimited").on(machine()));
    // One that could not register at start has stayed small.
    let small = process(72, "hello").memlock("65536");
    let device = || anonymous(1).named("/dev/infiniband/uverbs0").perms("-w-s");
    found("B02", small.area(device()).on(machine()));
    clear(
        "B02",
        process(72, "hello").memlock("65536").area(anonymous(1)).on(machine()),
    );
    // What it registers fits into the limit, as its pinned memory shows.
    clear("B02", rank("8388608").pinned(4).on(machine()));
    found("B02", rank("8388608").on(machine()));
    clear("B02", rank("65536").locks().on(machine()));
}

/// A file of which the beginning is locked, up to the limit: no setting says that it is to be.
#[test]
fn b02_a_part_that_is_locked() {
    let part = |size: u64, start: u64, flags| {
        shared(size, "/home/dev/model.gguf")
            .perms("r--s")
            .flags(flags)
            .at(start, 0)
    };
    let app = |locked: u64, memlock: &str| {
        process(72, "python")
            .area(part(1000, 0x7a00_0000_0000, "rd mr me ms lo sd"))
            .area(part(600, 0x7a00_0000_0000 + (1000 << 20), "rd mr me ms sd"))
            .locked(locked)
            .memlock(memlock)
    };
    let finding = found("B02", app(1000, "1073741824").on(machine()));
    assert!(
        finding
            .consequence
            .contains("the last 600M of /home/dev/model.gguf are not locked"),
        "{finding:?}"
    );
    assert!(finding.fix[0].contains("/etc/security/limits.d"), "{finding:?}");
    // It has room below its limit, may lock anything, or locks nothing.
    clear("B02", app(1000, "17179869184").on(machine()));
    clear("B02", app(1000, "1610612736").on(machine()));
    clear("B02", app(1000, "unlimited").on(machine()));
    clear("B02", app(1000, "1073741824").locks().on(machine()));
    clear("B02", app(0, "65536").on(machine()));
}

/// Old versions of Elasticsearch name their file by another option, and a limit for the init script is none of the unit.
#[test]
fn b02_a_limit_for_an_init_script() {
    let node = process(73, "java")
        .arg("-Xms2g")
        .arg("-Xmx2g")
        .arg("-Des.path.home=/usr/share/elasticsearch")
        .arg("-Des.default.path.conf=/etc/elasticsearch")
        .arg("org.elasticsearch.bootstrap.Elasticsearch")
        .area(anonymous(2048))
        .memlock("65536")
        .cgroup("/system.slice/elasticsearch.service");
    let with = |text: &str| {
        node.on(machine())
            .file("/etc/elasticsearch/elasticsearch.yml", text)
            .file(
                "/etc/default/elasticsearch",
                "ES_HEAP_SIZE=2g\nMAX_LOCKED_MEMORY=unlimited\n",
            )
    };
    let finding = found("B02", with("bootstrap.mlockall: true\n"));
    assert!(finding.consequence.contains("is to lock 2G"), "{finding:?}");
    assert!(
        finding.fix[0].starts_with("MAX_LOCKED_MEMORY of /etc/default/elasticsearch:2 is for an init script"),
        "{finding:?}"
    );
    assert!(
        finding.fix[2..4] == ["[Service]", "LimitMEMLOCK=infinity"],
        "{finding:?}"
    );
    clear("B02", with("bootstrap.mlockall: false\n"));
}

fn service(limits: &str, unit: &str) -> Tree {
    machine()
        .file(
            "/etc/passwd",
            "root:x:0:0::/:/bin/sh\npostgres:x:1000:1000::/:/bin/sh\n",
        )
        .file("/etc/security/limits.conf", limits)
        .file("/etc/systemd/system/db.service", unit)
}

fn database(memlock: &str) -> Process {
    process(60, "postgres")
        .cgroup("/system.slice/db.service")
        .area(anonymous(100))
        .memlock(memlock)
}

#[test]
fn b03_limits_conf_is_not_for_services() {
    let conf = "# x\npostgres soft memlock unlimited\n";
    let finding = found("B03", database("8388608").on(service(conf, "[Service]\n")));
    assert_eq!(finding.evidence[0].source, "/etc/security/limits.conf:2");
    assert!(
        finding.fix[0].starts_with("systemctl edit db.service"),
        "{:?}",
        finding.fix
    );
    clear("B03", database("unlimited").on(service(conf, "[Service]\n")));
    clear(
        "B03",
        database("8388608").on(service(conf, "[Service]\nLimitMEMLOCK=8M\n")),
    );
    clear(
        "B03",
        database("8388608").on(service("other soft memlock unlimited\n", "")),
    );
    clear(
        "B03",
        database("8388608")
            .cgroup("/user.slice/user-1000.slice/session-1.scope")
            .on(service(conf, "")),
    );
    // A default of all services is no limit that this one was given.
    let default = |limit: &str| {
        let text = format!("[Manager]\nDefaultLimitMEMLOCK={limit}\n");
        database("65536").on(service(conf, "[Service]\n").file("/etc/systemd/system.conf.d/50-mem.conf", &text))
    };
    found("B03", default("64K"));
    clear("B04", default("64K"));
    not_judged(
        "B03",
        database("8388608").on(service(conf, "")).denied("/etc/passwd"),
        "denied",
    );
}

#[test]
fn b04_a_unit_that_says_more_than_the_service_has() {
    let unit = "[Service]\nLimitMEMLOCK=infinity\n";
    found("B04", database("8388608").on(service("", unit)));
    clear("B04", database("unlimited").on(service("", unit)));
    clear("B04", database("8388608").on(service("", "")));
    let drop_in = service("", "").file("/etc/systemd/system/db.service.d/10.conf", unit);
    found("B04", database("8388608").on(drop_in));
    // clearlinux/distribution#2372: a default of all services, written after they had started.
    let default = |limit| {
        let text = format!("[Manager]\nDefaultLimitMEMLOCK={limit}\n");
        service("", "").file("/etc/systemd/system.conf", &text)
    };
    let finding = found("B04", database("8388608").on(default("infinity")));
    assert!(finding.fix[0].contains("daemon-reexec"), "{finding:?}");
    clear("B04", database("8388608").on(default("8M")));
    let finding = found("I01", database("8388608").on(default("unlimited")));
    assert!(
        finding
            .consequence
            .contains("DefaultLimitMEMLOCK: `unlimited` is not `infinity`"),
        "{finding:?}"
    );
    assert!(finding.fix[0].contains("systemctl daemon-reexec"), "{finding:?}");
}

#[test]
fn b05_limits_of_segments_below_the_pool() {
    let small = |tree: Tree| tree.line("/proc/sys/kernel/shmmax", 33_554_432);
    assert_eq!(found("B05", small(with_pool())).severity, Severity::Warning);
    assert_eq!(found("B05", j9().on(small(with_pool()))).severity, Severity::Error);
    found("B05", with_pool().line("/proc/sys/kernel/shmall", 1000));
    clear("B05", with_pool());
    clear("B05", small(machine()));
    // PostgreSQL takes pages by mmap; what has segments, or may by its release, does not.
    let postgres = |tree| process(61, "postgres").area(hugetlb(8, 2048)).on(tree);
    clear("B05", postgres(small(with_pool())));
    found(
        "B05",
        process(62, "oninit")
            .area(shared(64, "/SYSV00000000 (deleted)"))
            .on(postgres(small(with_pool()))),
    );
    found("B05", process(62, "mysqld").on(postgres(small(with_pool()))));
}

#[test]
fn b05_each_limit_is_judged_by_what_it_needs() {
    // Without sysfs, meminfo shows the pool of the default size; without its size a base page has 4K at least.
    let pool = "MemTotal: 16777216 kB\nHugePages_Total: 1024\nHugePages_Free: 1024\nHugePages_Rsvd: 0\nHugepagesize: 2048 kB\n";
    let bare = || Tree::new().file("/proc/meminfo", pool).dir("/etc/sysctl.d");
    let one = |tree: Tree, bytes: u64| tree.line("/proc/sys/kernel/shmmax", bytes);
    let all = |tree: Tree, pages: u64| tree.line("/proc/sys/kernel/shmall", pages);
    let low = found("B05", all(one(bare(), 2_726_298), 524_288));
    assert!(low.consequence.ends_with("kernel.shmmax allows 2.6M"), "{low:?}");
    assert!(found("B05", one(bare(), 2_726_298)).severity == Severity::Warning);
    clear("B05", all(one(bare(), 2 << 30), 524_288));
    not_judged("B05", all(one(bare(), 2 << 30), 524_287), "base pages");
    not_judged("B05", one(bare(), 2 << 30), "shmall");
    let named = |tree: Tree| tree.line("/proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    let low = found("B05", named(all(bare(), 524_287)));
    assert!(low.consequence.contains("kernel.shmall allows"), "{low:?}");
}

#[test]
fn b06_a_group_that_is_not_there() {
    let group = |gid: u32| machine().line("/proc/sys/vm/hugetlb_shm_group", gid);
    found("B06", group(4711));
    clear("B06", group(4711).file("/etc/group", "root:x:0:\nhugetlb:x:4711:db\n"));
    clear("B06", group(0));
    // One that a process has exists somewhere; where containers run, an image may have it.
    clear("B06", process(60, "mysqld").groups("4711").on(group(4711)));
    let beside = found("B06", process(61, "kubelet").on(group(4711)));
    assert!(
        beside.severity == Severity::Info && !beside.fix.concat().contains("groupadd"),
        "{beside:?}"
    );
    not_judged("B06", group(4711).without("/etc/group"), "/etc/group");
}
