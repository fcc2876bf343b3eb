//! JVMs whose own options decide what becomes of their huge pages: no restart is said to help where it changes nothing.

use host::Source;
use model::Bytes;

use super::tests::all;
use super::{InUse, PartKind, Step, Usage, Why};
use crate::machines::*;

const JDK: [(&str, &str); 2] = [
    ("17", "/usr/lib/jvm/java-17-openjdk/lib/server/libjvm.so"),
    ("25", "/opt/jdk-25.0.1/lib/server/libjvm.so"),
];

/// A JVM of 256 MiB beside a pool of 2M with so many pages, of which these are free.
fn java(jdk: &str, options: &[&str], heap: Mapped, (pages, free): (u64, u64)) -> Usage {
    let library = JDK.iter().find(|(version, _)| *version == jdk).expect("a JDK").1;
    let java = options
        .iter()
        .fold(process(90, "java"), |java, option| java.arg(option));
    let java = java.arg("-Xmx256m").area(anonymous(2).named(library).perms("r-xp"));
    let tree = pool(machine(), "2048kB", pages, free, 0);
    let tree = java.arg("Main").area(heap.at(0xf000_0000, 0)).on(tree);
    let usage = all(&Source::from_tree("made", tree), "90").expect("found");
    usage.into_iter().next().expect("one")
}

#[test]
fn an_option_that_switches_huge_pages_off_is_what_has_to_go() {
    for off in ["-XX:-UseTransparentHugePages", "-XX:-UseHugeTLBFS"] {
        let of = |jdk, pool| java(jdk, &["-XX:+UseLargePages", off], anonymous(256), pool);
        let usage = of("17", (600, 600));
        let option = off.to_owned();
        assert_eq!(usage.why[0], Why::SwitchedOff { option });
        let steps = &usage.next[..];
        let [Step::LeaveOut { setting, .. }, Step::Restart { .. }, Step::Explain] = steps else {
            panic!("{steps:?}");
        };
        assert_eq!(setting, off);
        assert!(
            usage.asked.iter().any(|asked| asked.setting == off),
            "{:?}",
            usage.asked
        );
        let finding = usage.findings.iter().find(|finding| finding.id == "E01").expect("E01");
        assert!(finding.fix[0].starts_with(&format!("leave {off} out")), "{finding:?}");
        // Without that option the pool would be too small, too.
        let short = of("17", (8, 8));
        assert!(matches!(short.why[1], Why::PoolShort { .. }), "{:?}", short.why);
        assert!(matches!(short.next[0], Step::Plan { .. }), "{:?}", short.next);
        assert!(matches!(of("25", (600, 600)).why[0], Why::Restart { .. }));
    }
}

#[test]
fn thp_that_another_option_annuls_is_set_and_comes_with_that_option() {
    let thp = "-XX:+UseTransparentHugePages";
    let usage = java("25", &[thp, "-XX:-UseLargePages"], anonymous(256), (600, 600));
    let option = "-XX:-UseLargePages".to_owned();
    assert_eq!(usage.why[0], Why::SwitchedOff { option });
    assert!(matches!(usage.next[0], Step::LeaveOut { .. }), "{:?}", usage.next);
    let asked = usage.asked.iter().find(|asked| asked.setting == thp).expect(thp);
    assert_eq!(asked.value.known(), Some(&Some("on".to_owned())));
    assert!(
        usage.findings.iter().any(|finding| finding.id == "E13"),
        "{:?}",
        usage.findings
    );
}

/// JDK 17: the heap is one segment, and each table another of the same name.
#[test]
fn a_heap_may_be_a_system_v_segment_on_pages_of_a_pool() {
    let segment = |size| hugetlb(size, 2048).named("/SYSV00000000 (deleted)").perms("rw-s");
    let options = ["-XX:+UseLargePages", "-XX:+UseSHM"];
    let usage = java("17", &options, segment(256).resident(40), (600, 580));
    let heap = &usage.parts[0];
    assert_eq!((heap.what, heap.size), (PartKind::JavaHeap, Bytes::mib(256)));
    assert_eq!(usage.in_use, InUse::Yes, "{:?}", usage.why);
    assert!(heap.hugetlb.is_some_and(|pages| pages.total == 128), "{heap:?}");
    assert!(
        !usage.parts.iter().any(|part| part.what == PartKind::SharedMemory),
        "{:?}",
        usage.parts
    );
    assert!(
        !usage.findings.iter().any(|finding| finding.id == "E01"),
        "{:?}",
        usage.findings
    );
    assert!(usage.why.is_empty(), "it has all of its pages: {:?}", usage.why);
    // A segment that is smaller is a table.
    let table = java("17", &options, segment(4), (600, 598));
    assert_ne!(table.in_use, InUse::Yes, "{:?}", table.parts);
}

#[test]
fn a_right_that_a_jvm_lacks_for_segments_comes_before_a_restart() {
    let options = ["-XX:+UseLargePages", "-XX:+UseSHM"];
    let usage = java("17", &options, anonymous(256), (600, 600));
    assert!(matches!(usage.why[0], Why::Barred { .. }), "{:?}", usage.why);
    let [Step::Set { setting, .. }, Step::Restart { .. }, ..] = &usage.next[..] else {
        panic!("{:?}", usage.next);
    };
    assert!(setting.contains("vm.hugetlb_shm_group"), "{setting}");
}
