//! What depends on the kernel's release, and on the hierarchy of control groups.

use host::{Source, Tree};
use model::plan::{Layer, Plan, Target};

use super::{TWO, after, failed, planned, small, wanted};
use crate::{Facts, Wanted};

/// A limit of the group above counts, whatever the hierarchy; a pod's is its manifest's.
#[test]
fn limits_of_all_groups_of_a_running_program_are_raised() {
    let v1 = "/sys/fs/cgroup/hugetlb/db/hugetlb.2MB";
    let tree = small()
        .file(
            "/proc/self/mounts",
            "cgroup /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\n",
        )
        .line(&format!("{v1}.limit_in_bytes"), 2 << 20)
        .line(&format!("{v1}.rsvd.limit_in_bytes"), 4 << 20)
        .line("/sys/fs/cgroup/hugetlb/kubepods/hugetlb.2MB.limit_in_bytes", 0)
        .file("/srv/postgresql.conf", "shared_buffers = 128MB\n");
    let of_group = |group: &str| {
        let wanted = wanted("postgres:/srv/postgresql.conf,service=none", &[(TWO, 70)]);
        let program = Facts {
            groups: vec![group.to_owned()],
            ..Facts::default()
        };
        planned(
            &Source::from_tree("test", tree.clone()),
            &[Wanted { program, ..wanted }],
        )
    };
    let plan = of_group("/db/server");
    for file in ["limit_in_bytes", "rsvd.limit_in_bytes"] {
        assert_eq!(after(&plan, &format!("{v1}.{file}")), (70_u64 << 21).to_string());
    }
    let pod = of_group("/kubepods/pod1");
    let limit = pod
        .changes
        .iter()
        .find(|change| change.layer == Layer::Cgroup)
        .expect("a step");
    assert!(matches!(limit.target, Target::Instruction { .. }), "{limit:?}");
    assert!(limit.after.to_string().contains("hugepages-2Mi: 140Mi"), "{limit:?}");
}

/// `0:4` is 0 for a kernel that does not know nodes there.
#[test]
fn the_boot_line_names_nodes_only_where_the_kernel_takes_them() {
    let node = |tree: Tree, node: u32| {
        let pool = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB");
        tree.line(&format!("{pool}/nr_hugepages"), 0)
            .line(&format!("{pool}/free_hugepages"), 0)
            .line(&format!("{pool}/surplus_hugepages"), 0)
            .line(&format!("/sys/devices/system/node/node{node}/cpulist"), node)
            .file(
                &format!("/sys/devices/system/node/node{node}/meminfo"),
                format!("Node {node} MemTotal: 4000000 kB\n"),
            )
    };
    let machine = |release: &str| {
        let pool = "/sys/kernel/mm/hugepages/hugepages-1048576kB";
        let counts = ["nr", "free", "resv", "surplus"];
        let tree = counts
            .iter()
            .fold(small(), |tree, name| tree.line(&format!("{pool}/{name}_hugepages"), 0));
        let tree = tree.line("/proc/sys/kernel/osrelease", release);
        Source::from_tree("test", node(node(tree, 0), 1))
    };
    let boot = |release: &str, goal: &str| {
        let plan = planned(&machine(release), &[wanted(goal, &[])]);
        let changes = plan.changes.iter().filter(|change| change.layer == Layer::Boot);
        changes.map(|change| change.after.to_string()).collect::<String>()
    };
    let all = boot("5.16.0", "pool:1G=4");
    assert!(all.contains("hugepagesz=1G hugepages=0:2,1:2"), "{all}");
    for release in ["5.15.0-91-generic", "unknown"] {
        let all = boot(release, "pool:1G=4");
        assert!(
            all.contains("hugepagesz=1G hugepages=4") && !all.contains(':'),
            "{release}: {all}"
        );
    }
    assert!(boot("5.16.0", "pool:1G=4,node=1").contains("hugepages=1:4"));
    assert_eq!(boot("5.15.0", "pool:1G=4,node=1"), "", "a unit does it");
    let plan = planned(&machine("5.15.0"), &[wanted("pool:1G=4,node=1", &[])]);
    assert!(
        after(&plan, "/etc/systemd/system/hugewise-pools.service").contains("node1/hugepages"),
        "{plan:#?}"
    );
}

/// Beside `hugetlb_cma=` the kernel makes no pages of 1G at boot: a unit takes them from that memory.
#[test]
fn pages_of_1g_beside_cma_are_made_by_a_unit() {
    let plan = |line: &str| {
        let pool = "/sys/kernel/mm/hugepages/hugepages-1048576kB";
        let tree = ["nr", "free", "resv", "surplus"]
            .iter()
            .fold(small(), |tree, name| tree.line(&format!("{pool}/{name}_hugepages"), 0));
        let source = Source::from_tree("test", tree.line("/proc/cmdline", line));
        planned(&source, &[wanted("pool:1G=4", &[])])
    };
    let is_of_boot = |plan: &Plan| plan.changes.iter().any(|change| change.layer == Layer::Boot);
    for line in ["quiet", "hugetlb_cma=16G hugetlb_cma_only=1"] {
        assert!(is_of_boot(&plan(line)), "{line}");
    }
    let unit = plan("hugetlb_cma=16G quiet");
    assert!(!is_of_boot(&unit), "{unit:#?}");
    assert!(
        after(&unit, "/etc/systemd/system/hugewise-pools.service").contains("echo 4 > /sys/kernel/mm/hugepages"),
        "{unit:#?}"
    );
}

/// Before 5.8 a default size of 1G leaves no pool of 2M, and before 3.16 a CPU's 1G pages have no pool, unless the boot line names it.
#[test]
fn a_pool_that_the_boot_line_alone_makes_is_planned_there() {
    let machine = |release: &str, size_kb: u64, flags: &str| {
        let pool = format!("/sys/kernel/mm/hugepages/hugepages-{size_kb}kB");
        let counts = ["nr", "free", "resv", "surplus"];
        let tree = Tree::new()
            .line("/proc/sys/kernel/osrelease", release)
            .file(
                "/proc/meminfo",
                format!("MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nHugepagesize: {size_kb} kB\n"),
            )
            .line("/proc/cmdline", "quiet")
            .file(
                "/proc/cpuinfo",
                format!("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: {flags}\n"),
            );
        let tree = counts
            .iter()
            .fold(tree, |tree, name| tree.line(&format!("{pool}/{name}_hugepages"), 0));
        Source::from_tree("test", tree)
    };
    for (release, size_kb, goal, line) in [
        (
            "4.18.0-553.el8_10.x86_64",
            1 << 20,
            "pool:2M=16",
            "hugepagesz=2M hugepages=16",
        ),
        ("2.6.32-754.el6.x86_64", 2048, "pool:1G=4", "hugepagesz=1G hugepages=4"),
    ] {
        let plan = planned(&machine(release, size_kb, "pse pdpe1gb"), &[wanted(goal, &[])]);
        let changes: Vec<String> = plan.changes.iter().map(|change| change.after.to_string()).collect();
        assert!(changes.len() == 1 && changes[0].contains(line), "{goal}: {plan:#?}");
        assert!(
            plan.changes[0].layer == Layer::Boot && plan.changes[0].risk.reboot,
            "{plan:#?}"
        );
        let node = failed(
            &machine(release, size_kb, "pse pdpe1gb"),
            &[wanted(&format!("{goal},node=0"), &[])],
        );
        assert!(node.contains("knows no nodes"), "{node}");
    }
    for (release, size_kb, flags, goal) in [
        ("5.8.0", 1 << 20, "pse pdpe1gb", "pool:2M=16"),
        ("3.16.0", 2048, "pse pdpe1gb", "pool:1G=4"),
        ("2.6.32", 2048, "pse", "pool:1G=4"),
        ("4.18.0", 1 << 20, "pse pdpe1gb", "pool:32M=16"),
    ] {
        let why = failed(&machine(release, size_kb, flags), &[wanted(goal, &[])]);
        assert!(why.contains("this kernel has no pool of pages of"), "{release}: {why}");
    }
}

/// Once the boot line names one THP size, the others are `never` and follow the general policy no more.
#[test]
fn a_policy_is_in_effect_for_the_pmd_size_too() {
    let captured = |name: &str| {
        let path = format!("{}/../../fixtures/kernels/{name}.tree", env!("CARGO_MANIFEST_DIR"));
        host::Source::open(std::path::Path::new(&path)).expect("a capture")
    };
    let own = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    for name in ["debian-6.12-sizes", "debian-7.2-sizes"] {
        for goal in ["thp=madvise", "jvm:heap=64m,pages=thp"] {
            let plan = planned(&captured(name), &[wanted(goal, &[])]);
            assert_eq!(after(&plan, own), "inherit", "{name}: {goal}");
        }
    }
    for (name, goal) in [
        ("debian-6.1-sizes", "thp=madvise"),
        ("debian-7.2-busy", "thp=madvise"),
        ("debian-7.2-sizes", "thp=never"),
        ("debian-7.2-sizes", "redis"),
    ] {
        let plan = planned(&captured(name), &[wanted(goal, &[])]);
        let touched = plan.changes.iter().any(|change| change.target.path() == Some(own));
        assert!(!touched, "{name}: {goal}");
    }
    let plan = planned(
        &captured("debian-7.2-sizes"),
        &[wanted("thp=madvise,mthp-2M=always", &[])],
    );
    assert_eq!(after(&plan, own), "always");
    // Another goal sets the switch itself.
    let both = [
        wanted("thp=madvise,mthp-2M=always", &[]),
        wanted("jvm:heap=64m,pages=thp", &[]),
    ];
    assert_eq!(after(&planned(&captured("debian-7.2-sizes"), &both), own), "always");
}
