//! Each rule of `tools` where it fires and where it must not.

use crate::machines::*;

#[test]
fn h01_memory_that_rss_leaves_out() {
    let holder = |mib| process(120, "db").area(hugetlb(mib, 2048));
    found("H01", holder(2048).on(machine()));
    clear("H01", holder(100).on(machine()));
    // ZGC maps its heap three times.
    let view = |start: u64, mib| {
        let heap = hugetlb(1024, 2048)
            .perms("rw-s")
            .flags("rd wr sh ht")
            .named("/memfd:java_heap.hugetlb (deleted)");
        heap.resident(mib).at(start, 0)
    };
    let views = |mib| (42..45).fold(process(120, "java"), |java, bit| java.area(view(1 << bit, mib)));
    clear("H01", views(760).on(machine()));
    let finding = found("H01", views(1024).on(machine()));
    assert!(
        finding.consequence.contains("1G of hugetlb memory"),
        "{}",
        finding.consequence
    );
}
