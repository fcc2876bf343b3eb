//! The order in which files hold, and the boot command line as the kernel reads it.

use model::{Bytes, Cause};

use super::boot::Boot;
use super::passed_over::IgnoredWhy;
use super::pool_request::PoolRequest;
use super::{Config, UnheardWhy, memlock_for, unit};
use crate::Limit;
use host::{Snapshot, Source, Tree};

const SIZES: [Bytes; 2] = [Bytes::mib(2), Bytes::gib(1)];

fn boot(line: &str) -> Boot {
    Boot::parse(line, Some(&SIZES))
}

fn read(tree: Tree) -> Config {
    let with_pool =
        |tree: Tree, size| tree.line(&format!("/sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages"), 0);
    let source = Source::from_tree("test", with_pool(with_pool(tree, 2048), 1_048_576));
    Config::read(&source, &Snapshot::take(&source))
}

fn ignored(line: &str) -> Vec<(String, IgnoredWhy)> {
    boot(line)
        .ignored
        .into_iter()
        .map(|ignored| (ignored.parameter, ignored.why))
        .collect()
}

#[test]
fn a_size_behind_its_count_has_none() {
    let lost = [("hugepagesz=1G".to_owned(), IgnoredWhy::CountInFront)];
    assert_eq!(ignored("hugepages=16 hugepagesz=1G quiet"), lost);
    for line in [
        "hugepages=16 default_hugepagesz=1G",
        "hugepages=16 hugepagesz=1G hugepages=4",
        "hugepages=16 hugepagesz=2M",
        "hugepagesz=2M hugepages=4 hugepagesz=1G",
        "hugepagesz=1G",
    ] {
        assert!(ignored(line).is_empty(), "{line}");
    }
    let of_any = Boot::parse("hugepages=16 hugepagesz=512M", None);
    assert!(of_any.ignored.is_empty(), "the default size with base pages of 64K");
}

#[test]
fn pairs_count_and_a_count_alone_is_of_the_default_size() {
    let pairs = boot("quiet hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=0:1,1:3");
    assert_eq!(pairs.pages_of(Bytes::mib(2), None), Some(512));
    assert_eq!(pairs.pages_of(Bytes::gib(1), None), Some(4));
    assert_eq!(pairs.pools[1].pages, PoolRequest::ByNode(vec![(0, 1), (1, 3)]));
    assert!(pairs.is_by_node() && pairs.ignored.is_empty());
    let small = pairs.request_of(Bytes::mib(2), None);
    assert_eq!(small, Some(&PoolRequest::Total(512)), "of this size alone");
    let none = boot("hugetlb_cma=8G hugepagesz=1G hugepages=0").without_gigantic();
    assert!(none.ignored.is_empty(), "no page was asked for");
    let alone = boot("hugepages=8");
    assert_eq!(alone.pages_of(Bytes::mib(2), Some(Bytes::mib(2))), Some(8));
    assert_eq!(alone.pages_of(Bytes::gib(1), Some(Bytes::mib(2))), None);
    let default = boot("default_hugepagesz=1G hugepages=2");
    assert_eq!(default.pages_of(Bytes::gib(1), Some(Bytes::gib(1))), Some(2));
    let both = boot("default_hugepagesz=1G hugepagesz=1G hugepages=4 hugetlb_cma=4G transparent_hugepage=never");
    assert_eq!((both.ignored.len(), both.pages_of(Bytes::gib(1), None)), (0, Some(4)));
    assert_eq!((both.cma.as_deref(), both.thp.as_deref()), (Some("4G"), Some("never")));
    // A part of less than a page is dropped.
    let aside = |cma: &str| boot(&format!("hugetlb_cma={cma}")).cma_bytes();
    assert_eq!(
        [aside("4G"), aside("0:2G,1:512M,2:1G"), aside("512M")],
        [4, 3, 0].map(Bytes::gib)
    );
}

/// /proc/mounts is a link, and the one that people copy.
#[test]
fn mounts_are_read_by_either_name() {
    let mounts = |tree: Tree| read(tree).tmpfs.known().map_or(0, Vec::len);
    let older = Tree::new().line("/proc/mounts", "tmpfs /a tmpfs rw 0 0");
    assert_eq!(mounts(older.clone()), 1);
    let both = older.line("/proc/self/mounts", "proc /proc proc rw 0 0");
    assert_eq!(mounts(both), 0);
}

#[test]
fn pages_of_pf_ring_are_summed_over_nodes() {
    let lines = read(Tree::new().line("/etc/hostname", "a").file(
        "/etc/pf_ring/hugepages.conf",
        "# ZC\nnode=0 hugepagenumber=1024 gid=1002\nnode=1 hugepages=512\n",
    ));
    let lines = lines.pool_lines.known().cloned().expect("lines");
    let found: Vec<_> = lines
        .iter()
        .map(|line| (line.place.as_str(), line.size, line.pages))
        .collect();
    assert_eq!(found, [("/etc/pf_ring/hugepages.conf:3", None, 1536)]);
}

/// Of profiles in force the front one has its say on a name, even by a variable.
#[test]
fn a_profile_of_tuned_has_each_setting_once() {
    let own = "[main]\ninclude=base\n[sysctl]\nvm.swappiness=1\nvm/swappiness=2\nvm.nr_hugepages=${n}\n";
    let base = "[sysctl]\nvm.swappiness=9\nvm.nr_hugepages=8\nvm.hugetlb_shm_group=7\n";
    let config = read(
        Tree::new()
            .line("/etc/tuned/active_profile", "own")
            .file("/etc/tuned/own/tuned.conf", own)
            .file("/usr/lib/tuned/profiles/base/tuned.conf", base),
    );
    let sysctl = config.sysctl.known().cloned().expect("settings");
    let mut pairs: Vec<_> = sysctl.pairs().collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [("vm.hugetlb_shm_group", "7"), ("vm.swappiness", "2")]);
}

#[test]
fn what_the_kernel_passes_over_says_why() {
    use IgnoredWhy::{
        CountTwice, DefaultTwice, FollowsIgnored, InOneWord, Misspelt, NotACount, SizeTwice, UnsupportedSize,
    };
    let parameter = |text: &str, why| (text.to_owned(), why);
    assert_eq!(
        ignored("hugepagesz=3M hugepages=4"),
        [
            parameter("hugepagesz=3M", UnsupportedSize),
            parameter("hugepages=4", FollowsIgnored)
        ]
    );
    assert_eq!(
        ignored("hugepages=256 hugepagesz=2M hugepages=512"),
        [parameter("hugepages=512", CountTwice)]
    );
    assert_eq!(
        ignored("hugepagesz=1G hugepages=1 hugepagesz=1G hugepages=2"),
        [
            parameter("hugepagesz=1G", SizeTwice),
            parameter("hugepages=2", FollowsIgnored)
        ]
    );
    assert_eq!(ignored("hugepages=many"), [parameter("hugepages=many", NotACount)]);
    for name in ["hugepagesz", "default_hugepagesz"] {
        let word = format!("{name}=1G,hugepages=16");
        assert_eq!(ignored(&word), [parameter("hugepages=16", InOneWord)], "{word}");
    }
    assert_eq!(
        ignored("hugepagesz=2M HUGEPAGES=16"),
        [parameter("HUGEPAGES=16", Misspelt("hugepages"))]
    );
    assert_eq!(
        ignored("default_hugepagesz=1G default_hugepagesz=2M hugepages=16"),
        [
            parameter("default_hugepagesz=2M", DefaultTwice),
            parameter("hugepages=16", FollowsIgnored)
        ]
    );
    assert!(
        Boot::parse("hugepagesz=3M", None).ignored.is_empty(),
        "without sizes none is unsupported"
    );
}

#[test]
fn policies_and_sizes_of_thp_are_taken_whole_or_refused() {
    let taken = |value: &str| boot(&format!("thp_anon={value}")).thp_sizes;
    for value in [
        "2M:always",
        "64K:always;2048K:never",
        "16K,2M:inherit",
        "\"64K-4M:madvise\"",
        "0x200000:never",
    ] {
        let sizes = taken(value);
        assert!(sizes.iter().any(|sizes| sizes.names(Bytes::mib(2))), "{value}");
    }
    assert!(!taken("64K-1M:always")[0].names(Bytes::mib(2)));
    for value in [
        "2M",
        "2M:",
        "2M:alway",
        "2M:always;",
        "2:always",
        "8K:always",
        "96K:always",
        "2M-64K:always",
        "64K-:always",
        "1G:always",
        "2M:within_size",
        ",2M:always",
    ] {
        let ignored = ignored(&format!("thp_anon={value}"));
        assert_eq!((taken(value).len(), ignored.len()), (0, 1), "{value}");
        assert_eq!(ignored[0].0, format!("thp_anon={value}"));
    }
    let shared = boot("thp_shmem=8K:advise;2M:within_size thp_shmem=2M:madvise");
    assert_eq!((shared.thp_sizes.len(), shared.ignored.len()), (1, 1));
    let of_all = "transparent_hugepage_shmem=force transparent_hugepage_tmpfs=advise";
    assert!(ignored(of_all).is_empty());
    let wrong = "transparent_hugepage=on transparent_hugepage_shmem=madvise transparent_hugepage_tmpfs=force";
    assert_eq!(ignored(wrong).len(), 3);
}

#[test]
fn sizes_of_thp_are_those_of_the_kernel_that_runs() {
    let words = "thp_anon=64K:always;4M:inherit thp_anon=2M:inherit";
    let (page, pmd) = (Bytes::kib(4), Bytes::mib(2));
    let here = boot(words).with_thp_sizes(page, pmd);
    assert_eq!((here.thp_sizes.len(), here.ignored.len()), (1, 1));
    let large = boot(words).with_thp_sizes(Bytes::kib(64), Bytes::mib(512));
    assert_eq!(large.ignored.len(), 1, "64K is a base page there");
    assert_eq!(boot(words).without_thp_sizes().thp_sizes, []);
    let old = boot("thp_anon=64K:alway").without_thp_sizes();
    assert!(old.ignored.is_empty(), "such a kernel does not know the parameter");
}

#[test]
fn memory_for_pages_of_run_time_holds_a_page_at_least() {
    let pages = |words: &str| {
        let boot = boot(&format!("{words} hugepagesz=1G hugepages=4")).without_gigantic();
        boot.pages_of(Bytes::gib(1), None)
    };
    for at_run_time in [
        "4G",
        "1024M",
        "0:512M,1:1G",
        "4G hugetlb_cma_only=off",
        "4G hugetlb_cma_only=f",
        "4G hugetlb_cma_only=",
    ] {
        assert_eq!(pages(&format!("hugetlb_cma={at_run_time}")), None, "{at_run_time}");
    }
    for at_boot in [
        "0",
        "0M",
        "512M",
        "0:512M,1:512M",
        "4G hugetlb_cma_only=on",
        "4G hugetlb_cma_only=1",
        "4G hugetlb_cma_only=y hugetlb_cma_only=",
    ] {
        assert_eq!(pages(&format!("hugetlb_cma={at_boot}")), Some(4), "{at_boot}");
    }
}

#[test]
fn sysctl_on_the_boot_line_is_applied_last_and_not_before_5_8() {
    let line = "hugepages=8 hugepagesz=1G hugepages=2 sysctl.vm.nr_hugepages=64";
    let pages = |boot: &Boot, size| boot.pages_of(size, Some(Bytes::mib(2)));
    let new = boot(line).with_sysctl(true, None);
    assert_eq!(
        (pages(&new, Bytes::mib(2)), pages(&new, Bytes::gib(1))),
        (Some(64), Some(2))
    );
    let old = boot(line).with_sysctl(false, None);
    assert_eq!(pages(&old, Bytes::mib(2)), Some(8));
    assert_eq!((old.ignored[0].why, &old.sysctl), (IgnoredWhy::SysctlTooOld, &None));
    let garbled = boot("sysctl.vm.nr_hugepages=64 sysctl.vm.nr_hugepages=many").with_sysctl(true, None);
    assert_eq!(pages(&garbled, Bytes::mib(2)), Some(64), "the kernel keeps the first");
    let other = boot("hugepagesz=2M hugepages=8 sysctl.vm.nr_hugepages=4").with_sysctl(true, Some(Bytes::mib(512)));
    assert_eq!(other.pages_of(Bytes::mib(2), Some(Bytes::mib(512))), Some(8));
    assert_eq!(other.pages_of(Bytes::mib(512), Some(Bytes::mib(512))), Some(4));
    let machine = |release: &str| {
        read(
            Tree::new()
                .line("/proc/cmdline", line)
                .line("/proc/sys/kernel/osrelease", release),
        )
    };
    for (release, expected) in [("5.4.0", 8), ("5.10.0", 64), ("6.12.1", 64)] {
        let boot = machine(release).boot;
        assert_eq!(
            pages(boot.known().expect("a line"), Bytes::mib(2)),
            Some(expected),
            "{release}"
        );
    }
}

#[test]
fn sysctl_files_hold_by_name_and_hide_each_other() {
    let config = read(
        Tree::new()
            .file("/usr/lib/sysctl.d/50-a.conf", "vm.nr_hugepages = 1\n")
            .file("/usr/lib/sysctl.d/60-b.conf", "vm.nr_hugepages = 2\n")
            .file(
                "/etc/sysctl.d/50-a.conf",
                "; hides the one in /usr\n-vm/nr_hugepages=3\n",
            )
            .file("/etc/sysctl.d/README", "vm.nr_hugepages = 9\n"),
    );
    let files = config.sysctl.known().expect("files");
    let values: Vec<&str> = files.all("vm.nr_hugepages").map(|line| line.value.as_str()).collect();
    assert_eq!(values, ["3", "2"]);
    assert_eq!(
        files.last("vm.nr_hugepages").map(|line| line.place.as_str()),
        Some("/usr/lib/sysctl.d/60-b.conf:1")
    );
    let linked = read(
        Tree::new()
            .file("/etc/sysctl.conf", "vm.nr_hugepages=7\n")
            .link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf"),
    );
    assert_eq!(
        linked.sysctl.known().map(|files| files.all("vm.nr_hugepages").count()),
        Some(1)
    );
}

#[test]
fn a_capture_without_its_configuration_is_absent_and_a_denied_file_is_denied() {
    let cause = |tree| read(tree).sysctl.unread().map(|why| why.unread);
    assert_eq!(cause(Tree::new().line("/proc/cmdline", "")), Some(Cause::Absent));
    assert_eq!(cause(Tree::new().denied("/etc/sysctl.d/1.conf")), Some(Cause::Denied));
    assert_eq!(
        cause(Tree::new().denied("/etc/sysctl.conf").line("/etc/x", "")),
        Some(Cause::Denied)
    );
    assert_eq!(cause(Tree::new().line("/etc/os-release", "ID=x")), None);
}

#[test]
fn a_command_of_wsl_may_apply_sysctl_settings() {
    let why = |conf: &str| {
        let config = read(
            Tree::new()
                .line("/proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2")
                .line("/proc/1/comm", "init")
                .file("/etc/wsl.conf", conf)
                .file("/etc/sysctl.d/60-h.conf", "vm.nr_hugepages = 64\n"),
        );
        let why = config.unheard.first().map(|unheard| unheard.why.clone());
        assert_eq!(config.is_sysctl_unread, why.is_some(), "{conf}");
        why
    };
    for applies in ["service procps start", "\"sysctl --system\""] {
        assert_eq!(why(&format!("[user]\ndefault=me\n[boot]\ncommand = {applies}\n")), None);
    }
    assert_eq!(
        why("[boot]\ncommand=/etc/start.sh\n"),
        Some(UnheardWhy::PerhapsByCommand)
    );
    for none in [
        "[boot]\n# command=sysctl --system\n",
        "[user]\ncommand=sysctl --system\n",
        "[boot]\ncommand=\n",
    ] {
        assert_eq!(why(none), Some(UnheardWhy::NoSystemd), "{none}");
    }
}

#[test]
fn the_closest_line_of_limits_conf_holds() {
    let config = read(
        Tree::new()
            .file(
                "/etc/security/limits.conf",
                "* soft memlock 64\n@dba - memlock 1024 # x\n",
            )
            .file(
                "/etc/security/limits.d/9.conf",
                "oracle soft memlock unlimited\noracle hard memlock 5\n",
            ),
    );
    let lines = config.limits.known().expect("limits");
    let limit = |user: &str, groups: &[&str]| {
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        memlock_for(lines, user, &groups).map(|(limit, _)| limit)
    };
    assert_eq!(
        limit("oracle", &["dba"]),
        Some(Limit::Bytes(5 << 10)),
        "no more than the hard one"
    );
    assert_eq!(limit("scott", &["dba"]), Some(Limit::Bytes(1 << 20)));
    assert_eq!(limit("anna", &[]), Some(Limit::Bytes(64 << 10)));
    assert_eq!(limit("root", &[]), None, "`*` is not for root");
}

#[test]
fn drop_ins_hold_over_the_unit_and_templates_have_units_too() {
    let source = Source::from_tree(
        "test",
        Tree::new()
            .file(
                "/usr/lib/systemd/system/db@.service",
                "[Service]\nLimitMEMLOCK=64K\nMemoryTHP=disable\n",
            )
            .file(
                "/etc/systemd/system/db@.service.d/10-x.conf",
                "[Service]\nLimitMEMLOCK=infinity:infinity\n",
            ),
    );
    let unit = unit::read(&source, "db@15.service");
    let unit = unit.known().expect("a unit");
    assert_eq!(unit.memlock.as_ref().map(|(limit, _)| *limit), Some(Limit::Unlimited));
    assert_eq!(unit.thp.as_ref().map(|(value, _)| value.as_str()), Some("disable"));
}

#[test]
fn segments_and_files_of_hugetlbfs_are_listed() {
    let header = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n";
    let tree = Tree::new()
        .file(
            "/proc/sysvipc/shm",
            format!("{header}0 32769 1640 4194304 10 11 2 1000 1000 0 0 1 0 1 2097152 0\n"),
        )
        .file("/proc/self/mounts", "none /mnt/huge hugetlbfs rw,pagesize=2M 0 0\n")
        .file("/mnt/huge/rtemap_0", "")
        .file("/mnt/huge/libvirt/qemu", "");
    let config = read(tree.clone());
    let segment = &config.segments.known().expect("segments")[0];
    assert_eq!(
        (segment.id, segment.size, segment.attached, segment.creator),
        (32769, Bytes::mib(4), 2, 10)
    );
    assert_eq!(
        config.hugetlb_files.known().expect("files"),
        &["/mnt/huge/libvirt/qemu", "/mnt/huge/rtemap_0"]
    );
    let garbled = read(tree.file("/proc/sysvipc/shm", format!("{header}x y\n"))).segments;
    assert!(
        garbled
            .unread()
            .is_some_and(|why| why.to_string().contains("/proc/sysvipc/shm:2: shmid")),
        "{garbled:?}"
    );
}

#[test]
fn commands_at_start_request_pools_and_the_last_write_to_a_file_holds() {
    let node = |node: u32| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let whole = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    let unit = format!(
        "[Service]\nExecStart=/bin/sh -c \"echo 9 > {0}; echo 10 > {0} && echo 5 | tee {1}\"\n",
        node(0),
        node(1)
    );
    let script = format!(
        "#!/bin/sh\n# echo 7 > {whole}\necho 2 > {whole}\necho never > /sys/kernel/mm/transparent_hugepage/enabled\n"
    );
    let tree = Tree::new()
        .line("/etc/hostname", "a")
        .file("/etc/systemd/system/hugepages.service", unit)
        .file("/etc/rc.local", script);
    let lines = read(tree).pool_lines;
    let lines = lines.known().expect("lines").iter();
    let lines: Vec<_> = lines.map(|line| (line.size, line.pages, line.is_by_node)).collect();
    assert_eq!(
        lines,
        [(Some(Bytes::mib(2)), 15, true), (Some(Bytes::gib(1)), 2, false)]
    );
}

/// Without that node the kernel has no such file; a capture without nodes does not show which there are.
#[test]
fn pages_of_a_node_that_is_not_there_are_not_requested() {
    const PF_RING: (&str, &str) = (
        "/etc/pf_ring/hugepages.conf",
        "node=0 hugepagenumber=4\nnode=1 hugepagenumber=8\n",
    );
    let file = |node: u32| format!("devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages");
    let lines = [0, 1].map(|node| format!("{} = {}\n", file(node), node + 1)).concat();
    let tree = Tree::new().file("/etc/sysfs.conf", lines).file(PF_RING.0, PF_RING.1);
    let asked = |tree: Tree| {
        let config = read(tree);
        let lines = config.pool_lines.known().expect("lines").iter();
        let pages: Vec<u64> = lines.map(|line| line.pages).collect();
        let places: Vec<String> = config.refused.into_iter().map(|why| why.place).collect();
        (pages, places)
    };
    assert_eq!(asked(tree.clone()), (vec![3, 12], Vec::new()));
    let one = tree.line("/sys/devices/system/node/node0/cpulist", "0-7");
    let refused = ["/etc/pf_ring/hugepages.conf:2", "/etc/sysfs.conf:2"].map(str::to_owned);
    let (pages, mut places) = asked(one);
    places.sort();
    assert_eq!((pages, places), (vec![1, 4], refused.to_vec()));
}

/// Page size, unless it is the default, and number of each request of these files.
fn requests(files: &[(&str, &str)]) -> Vec<(Option<Bytes>, u64)> {
    let tree = Tree::new().line("/etc/hostname", "a");
    let tree = files.iter().fold(tree, |tree, (path, text)| tree.file(path, *text));
    let lines = read(tree).pool_lines.known().cloned().unwrap_or_default();
    lines.iter().map(|line| (line.size, line.pages)).collect()
}

#[test]
fn what_a_unit_does_when_it_stops_is_no_request() {
    const UNIT: &str = "/etc/systemd/system/hugepages.service";
    let file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let stop = "ExecReload=/bin/sh -c 'echo 3 > FILE'\nExecStop=/bin/sh -c '\\\n echo 0 > FILE'\n";
    for start in [
        "ExecStart=/bin/sh -c 'echo 10 > FILE'\n",
        "ExecStartPre=/bin/sh -c '\\\n echo 10 > FILE'\nExecStart=/bin/true\n",
        // Of a capture that left the first line out.
        "Type=oneshot\n echo 10 > FILE'\n",
    ] {
        let unit = format!("[Service]\n{start}{stop}").replace("FILE", file);
        assert_eq!(requests(&[(UNIT, &unit)]), [(Some(Bytes::mib(2)), 10)], "{unit}");
    }
    let unit = format!("[Service]\nExecStart=/bin/true\n{stop}").replace("FILE", file);
    assert!(requests(&[(UNIT, &unit)]).is_empty(), "{unit}");
}

#[test]
fn scripts_at_boot_request_the_pool_of_the_default_size() {
    for line in [
        "echo 10 > /proc/sys/vm/nr_hugepages",
        "echo 10 | tee /proc/sys/vm/nr_hugepages",
        "sysctl -w vm.nr_hugepages=10",
        "sh -c 'sysctl -w vm.nr_hugepages=10'",
        "test -f /x && /sbin/sysctl -q -w vm.swappiness=1 vm.nr_hugepages=\"10\"",
    ] {
        for path in ["/etc/rc.local", "/etc/rc.d/rc.local"] {
            let script = format!("#!/bin/sh\n{line}\n");
            assert_eq!(requests(&[(path, &script)]), [(None, 10)], "{path}: {line}");
        }
    }
    for line in [
        "# sysctl -w vm.nr_hugepages=10",
        "echo vm.nr_hugepages=10",
        "echo 10 > /proc/sys/vm/swappiness",
    ] {
        assert!(requests(&[("/etc/rc.local", line)]).is_empty(), "{line}");
    }
    // Red Hat has a link.
    let both = [
        ("/etc/rc.local", "sysctl vm.nr_hugepages=10"),
        ("/etc/rc.d/rc.local", "sysctl vm.nr_hugepages=10"),
    ];
    assert_eq!(requests(&both), [(None, 10)]);
}

#[test]
fn a_file_beside_the_homes_of_oracle_hides_no_instance() {
    let product = "/u01/app/oracle/product";
    let tree = Tree::new()
        .line("/etc/hostname", "a")
        .file(&format!("{product}/README"), "x\n")
        .file(&format!("{product}/19.3.0/notes"), "x\n")
        .file(
            &format!("{product}/19.3.0/dbhome_1/dbs/initORCL.ora"),
            "*.sga_target=16384M\n*.use_large_pages='ONLY'\n",
        );
    let instances = read(tree).instances;
    let all: Vec<Bytes> = instances
        .known()
        .expect("instances")
        .iter()
        .filter_map(|one| Some(one.instance()?.sga))
        .collect();
    assert_eq!(all, [Bytes::gib(16)]);
}
