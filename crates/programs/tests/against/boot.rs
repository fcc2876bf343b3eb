//! Boot lines against what mm/hugetlb.c of Linux 5.16 and later takes of them on x86-64 (hugepages_setup(), hugepagesz_setup(),
//! default_hugepagesz_setup(), memparse() and next_arg(), followed by hand over each line).

use host::{Snapshot, Source, Tree};
use model::Bytes;
use programs::config::{Boot, IgnoredWhy};

/// A line, and the pages of 2M and of 1G that the kernel asks for.
const LINES: [(&str, u64, u64); 46] = [
    ("hugepagesz=1G hugepages=4", 0, 4),
    ("hugepagesz=1GB default_hugepagesz=1GB hugepages=6", 0, 6),
    ("default_hugepagesz=1GB hugepagesz=1G hugepages=4G", 0, 4),
    ("hugepages=6550 hugepagesz=2M", 6550, 0),
    (
        "default_hugepagesz=1G hugepagesz=1G hugepages=80 hugepagesz=2M hugepages=1024",
        1024,
        80,
    ),
    ("hugepages=1024", 1024, 0),
    ("hugepages=1024 default_hugepagesz=1G", 0, 1024),
    ("default_hugepagesz=1G hugepages=16", 0, 16),
    ("hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=4", 512, 4),
    ("hugepagesz=1G hugepages=4 hugepages=512", 0, 4),
    ("hugepages=4 hugepagesz=1G hugepagesz=2M hugepages=512", 4, 0),
    ("hugepagesz=1024M hugepages=4", 0, 4),
    ("hugepagesz=1048576k hugepages=4", 0, 4),
    ("hugepagesz=2048 hugepages=512", 0, 0),
    ("hugepagesz=2048kB hugepages=512", 512, 0),
    ("hugepagesz=2048K hugepages=512", 512, 0),
    ("hugepagesz=2MB hugepages=3072 transparent_hugepages=never", 3072, 0),
    ("hugepagesz=1g hugepages=4", 0, 4),
    ("hugepagesz=4M hugepages=512", 0, 0),
    ("hugepagesz=1G hugepages=0:2,1:2", 0, 4),
    (
        "hugepagesz=1G hugepages=0:16,1:16 hugepagesz=2M hugepages=0:512",
        512,
        32,
    ),
    ("hugepagesz=1G hugepages=2 hugepagesz=1G hugepages=8", 0, 2),
    ("hugepagesz=1G hugepages=12,", 0, 12),
    ("hugepages=1024M", 1024, 0),
    ("hugepagesz=1G hugepages=16GB", 0, 16),
    ("hugepagesz=1G  hugepages=8 default_hugepagesz=2M hugepages=256", 256, 8),
    ("default_hugepagesz=2M hugepagesz=1G hugepages=8 hugepages=256", 0, 8),
    ("hugepagesz=1G hugepages=\"8\"", 0, 8),
    ("hugepagesz=1G hugepages=0x10", 0, 0),
    ("hugepagesz=1G hugepages=1_000", 0, 1),
    ("default_hugepagesz=1G default_hugepagesz=2M hugepages=100", 0, 0),
    ("hugepagesz=2M hugepagesz=1G hugepages=4", 0, 4),
    ("hugepages=100 hugepages=200", 100, 0),
    ("hugepagesz=1G hugepages=4 hugepages_alloc_threads=4", 0, 4),
    ("hugepages=1:4", 4, 0),
    ("hugepagesz=1G,hugepages=4", 0, 0),
    ("hugepagesz=1G hugepages=-4", 0, 0),
    ("hugepagesz=1G hugepages=4 -- hugepages=9", 0, 4),
    ("HUGEPAGESZ=1G HUGEPAGES=4", 0, 0),
    ("hugepagesz=1G hugepages=+4", 0, 0),
    ("hugepagesz=1G hugepages= 4", 0, 0),
    ("hugepagesize=1G hugepages=4", 4, 0),
    ("default_hugepages=1G hugepages=4", 4, 0),
    ("hugepagesz=1Gi hugepages=4", 0, 4),
    ("hugepagesz=0x40000000 hugepages=4", 0, 4),
    ("hugepagesz=2097152 hugepages=512", 512, 0),
];

#[test]
fn lines_are_taken_as_the_kernel_takes_them() {
    let sizes = [Bytes::mib(2), Bytes::gib(1)];
    for (line, small, large) in LINES {
        let boot = Boot::parse(line, Some(&sizes));
        let pages = sizes.map(|size| boot.pages_of(size, Some(Bytes::mib(2))).unwrap_or(0));
        assert_eq!(pages, [small, large], "{line}: {boot:?}");
    }
}

#[test]
fn what_a_count_loses_and_what_a_name_should_be_is_said() {
    let boot = Boot::parse("hugepagesz=1G hugepages=16GB", None);
    assert_eq!(
        (boot.digits[0].parameter.as_str(), boot.digits[0].pages),
        ("hugepages=16GB", 16)
    );
    assert!(Boot::parse("hugepages=16", None).digits.is_empty());
    for (line, meant) in [
        ("transparent_hugepages=never", "transparent_hugepage"),
        ("hugepagesize=1G hugepages=4", "hugepagesz"),
        ("default_hugepages=1G", "default_hugepagesz"),
        ("nr_hugepages=4", "hugepages"),
    ] {
        let ignored = Boot::parse(line, None).ignored;
        assert_eq!(ignored.len(), 1, "{line}");
        assert_eq!(ignored[0].why, IgnoredWhy::Misspelt(meant), "{line}");
        assert!(ignored[0].why.text().contains(&format!("`{meant}=`")), "{line}");
    }
    let known = "transparent_hugepage=never hugepagesz=2M hugepages=3 default-hugepagesz=2M hugetlb_cma=1G quiet root=UUID=1 hugepages_treat_as_movable=1";
    assert_eq!(Boot::parse(known, None).ignored, []);
    let old = Boot::parse("hugepagesz=1G hugepages=0:16,1:16 hugepagesz=2M hugepages=3:4", None).without_nodes();
    assert_eq!(
        (old.pages_of(Bytes::gib(1), None), old.pages_of(Bytes::mib(2), None)),
        (Some(0), Some(3))
    );
    assert_eq!(old.ignored[0].why, IgnoredWhy::NodesTooOld);
    // It drops a list with a node that is not online.
    let node = |node: u32| format!("/sys/devices/system/node/node{node}/cpulist");
    let tree = Tree::new().line(&node(0), 0).line(&node(2), 1);
    let topology = Snapshot::take(&Source::from_tree("test", tree)).topology;
    let some = Boot::parse("hugepagesz=1G hugepages=0:16,1:8,2:4", None).on_nodes(&topology);
    assert_eq!(some.pages_of(Bytes::gib(1), None), Some(0));
    let last = some.ignored.last().expect("what follows");
    assert_eq!(
        (&*last.parameter, last.why),
        ("0:16,1:8,2:4", IgnoredWhy::NoSuchNode(1))
    );
}
