//! A program whose control group allows fewer pages than it needs: no restart and no setting of its own is said to help.

use host::{Source, Tree};
use model::Bytes;

use super::tests::all;
use super::{InUse, Step, Usage, Why};
use crate::machines::{Process, hugetlb, machine, pool, process, shared};

const SEGMENT: &str = "/dev/zero (deleted)";

/// Version 2, and both versions with the controller in either of them: mounts, the limit's file, and the line of the process.
const HIERARCHIES: [(&str, &str, &str); 3] = [
    (
        "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        "/sys/fs/cgroup/db/hugetlb.2MB.max",
        "/db/server",
    ),
    (
        "cgroup /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\n",
        "/sys/fs/cgroup/hugetlb/db/hugetlb.2MB.limit_in_bytes",
        "/\n5:hugetlb:/db/server",
    ),
    (
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        "/sys/fs/cgroup/unified/db/hugetlb.2MB.max",
        "/db/server\n5:memory:/other",
    ),
];

fn server() -> Process {
    process(70, "postgres").arg("-D").arg("/srv/pg")
}

fn explained(tree: Tree) -> Usage {
    all(&Source::from_tree("made", tree), "70").expect("found").remove(0)
}

/// The limit is that of the group above.
fn limited((mounts, file, _): (&str, &str, &str), limit: u64, server: &Process) -> Usage {
    let tree = pool(machine(), "2048kB", 300, 300, 0)
        .file("/proc/self/mounts", mounts)
        .line("/sys/fs/cgroup/unified/cgroup.controllers", "memory hugetlb")
        .line(file, limit);
    explained(server.on(tree))
}

#[test]
fn a_limit_is_the_reason_and_a_restart_alone_no_step() {
    for hierarchy in HIERARCHIES {
        let server = server().cgroup(hierarchy.2).area(shared(280, SEGMENT));
        let usage = limited(hierarchy, 64 << 20, &server);
        let Some(Why::Limited { needs, allows, file }) = usage.why.first() else {
            panic!("{hierarchy:?}: {:?}", usage.why);
        };
        assert_eq!(
            (needs.pages, *allows, file.as_str()),
            (140, Bytes::mib(64), hierarchy.1)
        );
        let restart = |why: &Why| matches!(why, Why::Restart { .. });
        assert!(!usage.why.iter().any(restart), "{:?}", usage.why);
        let raise = Step::Raise {
            file: hierarchy.1.to_owned(),
            bytes: Bytes::mib(280),
            page: Bytes::mib(2),
        };
        assert_eq!(usage.next, [raise, Step::Restart { unit: None }, Step::Explain]);
        let free = limited(hierarchy, 280 << 20, &server);
        assert!(matches!(free.why.first(), Some(Why::Restart { .. })), "{:?}", free.why);
    }
}

#[test]
fn pages_that_a_group_may_not_touch_are_no_reason_to_compare() {
    let hierarchy = HIERARCHIES[0];
    let segment = hugetlb(280, 2048).resident(24).perms("rw-s");
    let server = server().cgroup(hierarchy.2).area(segment);
    let usage = limited(hierarchy, 64 << 20, &server);
    assert_eq!(usage.in_use, InUse::Yes);
    assert!(
        matches!(usage.why.first(), Some(Why::Limited { .. })),
        "{:?}",
        usage.why
    );
    assert!(
        matches!(usage.next.as_slice(), [Step::Raise { .. }, Step::Explain]),
        "{:?}",
        usage.next
    );
}

#[test]
fn a_jvm_that_has_transparent_pages_is_not_limited() {
    let hierarchy = HIERARCHIES[0];
    let java = process(70, "java")
        .arg("-XX:+UseTransparentHugePages")
        .arg("-Xmx512m")
        .arg("Main")
        .cgroup(hierarchy.2)
        .area(crate::machines::anonymous(512).at(0xe000_0000, 0));
    let usage = limited(hierarchy, 0, &java);
    assert!(
        !usage.why.iter().any(|why| matches!(why, Why::Limited { .. })),
        "{:?}",
        usage.why
    );
}

/// ZGC takes pages as its heap grows, so that a pool may be too small for what is to come.
#[test]
fn a_heap_that_may_outgrow_its_pool_is_planned_for() {
    let heap = hugetlb(128, 2048)
        .named("/memfd:java_heap.hugetlb (deleted)")
        .perms("rw-s")
        .at(1 << 42, 0);
    let java = process(70, "java")
        .arg("-XX:+UseZGC")
        .arg("-XX:+UseLargePages")
        .arg("-Xmx1g")
        .arg("Main")
        .area(heap);
    let of = |pages, free| explained(java.on(pool(machine(), "2048kB", pages, free, 0)));
    let short = of(400, 336);
    let Some(Why::NoRoomToGrow { needs, spare }) = short.why.first() else {
        panic!("{:?}", short.why);
    };
    assert_eq!((short.in_use, *spare), (InUse::Yes, 400));
    assert!(needs.pages > 512, "{needs:?}");
    assert!(
        matches!(short.next.as_slice(), [Step::Plan { .. }, Step::Explain]),
        "{:?}",
        short.next
    );
    let enough = of(needs.pages, needs.pages - 64);
    assert!(enough.why.is_empty(), "{:?}", enough.why);
}

#[test]
fn a_server_is_explained_by_what_it_runs_with() {
    let of = |word: &str, segment: &str| {
        let server = server().arg("-c").arg(word).area(shared(280, segment));
        explained(server.on(pool(machine(), "2048kB", 300, 300, 0)))
    };
    let large = of("huge_page_size=1GB", SEGMENT);
    let Some(Why::PoolShort { needs, spare: 0 }) = large.why.first() else {
        panic!("{:?}", large.why);
    };
    assert_eq!((needs.page, needs.pages), (Bytes::gib(1), 1));
    let asked = large.asked.iter().map(|asked| asked.setting.as_str());
    assert!(asked.clone().any(|name| name == "huge_page_size"), "{:?}", large.asked);
    let not_asked = [
        ("huge_pages=off", SEGMENT, "huge_pages = try or on"),
        (
            "shared_memory_type=sysv",
            "/SYSV009c814b (deleted)",
            "shared_memory_type = mmap",
        ),
    ];
    for (word, segment, setting) in not_asked {
        let usage = of(word, segment);
        let setting = setting.to_owned();
        assert_eq!(
            usage.why,
            [Why::NotAsked {
                setting: setting.clone()
            }],
            "{word}"
        );
        let is_planned = usage.next.iter().any(|step| matches!(step, Step::Plan { .. }));
        assert_eq!(
            is_planned,
            segment == SEGMENT,
            "a plan that is refused is no step: {:?}",
            usage.next
        );
        let place = "/proc/70/cmdline".to_owned();
        assert!(usage.next.contains(&Step::Set { setting, place }), "{:?}", usage.next);
    }
}

#[test]
fn a_server_on_base_pages_was_started_before_huge_pages_was_on() {
    let server = server().area(shared(280, SEGMENT));
    let tree = server.on(pool(machine(), "2048kB", 300, 300, 0));
    let usage = explained(tree.file("/proc/70/root/srv/pg/postgresql.conf", "huge_pages = on\n"));
    let before = Why::StartedBefore {
        setting: "huge_pages = on".to_owned(),
        place: "/srv/pg/postgresql.conf:1".to_owned(),
    };
    assert!(
        matches!(usage.why.first(), Some(Why::Restart { .. })) && usage.why.contains(&before),
        "{:?}",
        usage.why
    );
    assert_eq!(usage.next, [Step::Restart { unit: None }, Step::Explain]);
}
