//! Looks at made-up programs, and at this very process.

use super::{Attention, Watch, own_peak, tell};
use host::{Source, Tree};
use model::{Backing, Bytes, PageKind};
use std::time::{Duration, Instant};

const UNKNOWN: Attention = Attention::Measured(Bytes(0));

/// A machine with one process of `memory`, of which so much is mapped; nothing once it has unmapped it.
fn machine(memory: Bytes, mapped: Option<Bytes>) -> Source {
    let status = format!("Name:\ta\nState:\tR (running)\nVmRSS:\t{} kB\n", memory.0 >> 10);
    let smaps = mapped.map_or_else(String::new, |mapped| {
        let kib = mapped.0 >> 10;
        format!(
            "7f0000000000-7f8000000000 rw-p 00000000 00:00 0 \nSize: {kib} kB\nKernelPageSize: 4 kB\nMMUPageSize: 4 kB\n\
             Rss: {kib} kB\nAnonymous: {kib} kB\nAnonHugePages: 0 kB\n"
        )
    });
    let tree = Tree::new()
        .file("/proc/71/status", status)
        .file("/proc/71/smaps", smaps);
    Source::from_tree("made", tree)
}

#[test]
fn a_look_that_came_after_the_memory_was_let_go_of_replaces_none_before_it() {
    let memory = Bytes::mib(96);
    let mut watch = Watch::new(Attention::Free, None);
    watch.source = machine(memory, Some(memory));
    watch.tick(71);
    // Long enough ago that another look is due.
    watch.began = Instant::now()
        .checked_sub(Duration::from_secs(9))
        .expect("up for longer");
    watch.source = machine(memory, None);
    watch.tick(71);
    assert_eq!(watch.looks.count, 2);
    assert_eq!(watch.finish(memory.0).backing.expect("seen").total(), memory);

    let mut watch = Watch::new(Attention::Free, None);
    watch.source = machine(memory, None);
    watch.tick(71);
    let why = watch.finish(memory.0).backing.expect_err("nothing was seen");
    assert!(why.to_string().contains("before it could be looked at"), "{why}");
}

#[test]
fn a_look_at_half_of_the_memory_says_nothing_of_the_whole() {
    let mut watch = Watch::new(UNKNOWN, None);
    watch.tick(std::process::id());
    watch.peak = 2 * watch.seen_memory;
    let why = watch.finish(0).backing.expect_err("half was not seen");
    assert!(
        why.to_string().contains("when its page tables were last looked at"),
        "{why}"
    );
}

#[test]
fn a_look_before_the_memory_that_the_kernel_tells_at_the_end_says_nothing_of_the_whole() {
    let looked = || {
        let mut watch = Watch::new(UNKNOWN, None);
        watch.tick(std::process::id());
        watch
    };
    let own = own_peak();
    // What this process itself ever had may be all that is in that number.
    let seen = looked().finish(own);
    assert!(seen.backing.is_ok(), "{:?}", seen.backing);
    // Other tests' programs are this process's children.
    let seen = looked().finish(64 * own);
    let why = seen.backing.expect_err("half was not seen").to_string();
    assert!(why.contains("when its page tables were last looked at"), "{why}");
    assert_eq!(seen.peak.0, 64 * own);
}

#[test]
fn most_of_the_time_for_looks_is_left_for_when_the_expected_memory_is_near() {
    let gib = Bytes::gib(1).0;
    let looked = |expected| {
        let mut watch = Watch::new(Attention::Measured(Bytes(expected)), None);
        // Looks so far took what a quiet half of the free time is, and were at half of a GiB.
        (watch.looks.count, watch.looks.seconds) = (3, 0.002);
        watch.last_memory = gib / 2;
        [gib * 6 / 10, gib].map(|memory| {
            watch.read_memory = memory;
            watch.may_look(memory)
        })
    };
    assert_eq!(looked(0), [true, true], "who knows whether more comes");
    assert_eq!(looked(gib), [false, true]);
}

#[test]
fn a_look_at_this_very_process_sees_its_memory_and_one_too_short_says_so() {
    let memory = vec![1u8; 8 << 20];
    let mut watch = Watch::new(UNKNOWN, None);
    watch.tick(std::process::id());
    let seen = watch.finish(0);
    let backing = seen.backing.expect("one look");
    assert!(backing.total() >= Bytes(memory.len() as u64), "{backing}");
    assert!(seen.peak >= backing.of(PageKind::Base) && seen.looks.count == 1);
    let why = Watch::new(UNKNOWN, None).finish(0).backing.expect_err("no look");
    assert!(why.to_string().contains("before it could be looked at"), "{why}");
}

#[test]
fn pages_of_a_size_are_taken_out_of_base_pages_and_of_no_others() {
    let seen: Backing = [(PageKind::Base, Bytes::mib(4)), (PageKind::Thp, Bytes::mib(2))]
        .into_iter()
        .collect();
    for (found, told) in [
        (Bytes::mib(3), "base 1M + mthp-64K 3M + thp 2M"),
        (Bytes::mib(5), "mthp-64K 4M + thp 2M"),
        (Bytes(0), "base 4M + thp 2M"),
    ] {
        let mut backing = seen.clone();
        tell(&mut backing, Some(Bytes::kib(64)), found);
        assert_eq!(backing.to_string(), told);
    }
}

#[test]
fn a_segment_in_three_views_of_one_process_is_memory_once() {
    let peak = |counts: &str, status: &str| {
        let view = |start: &str| {
            format!(
                "{start} rw-s 00000000 00:01 42 /memfd:java_heap (deleted)\nSize: 65536 kB\nMMUPageSize: 4 kB\n{counts}\n"
            )
        };
        let smaps = [
            "040000000000-040004000000",
            "080000000000-080004000000",
            "100000000000-100004000000",
        ]
        .map(view);
        let tree = Tree::new()
            .file("/proc/71/status", format!("Name:\ta\nState:\tR (running)\n{status}\n"))
            .file("/proc/71/smaps", smaps.concat());
        let mut watch = Watch::new(UNKNOWN, None);
        watch.source = Source::from_tree("made", tree);
        watch.tick(71);
        let seen = watch.finish(0);
        assert_eq!(seen.backing.expect("one look").total(), Bytes::mib(64));
        seen.peak
    };
    let small = "KernelPageSize: 4 kB\nRss: 65536 kB\nPss: 21845 kB\nAnonymous: 0 kB\nShmemPmdMapped: 0 kB";
    assert_eq!(peak(small, "VmRSS:\t196608 kB"), Bytes::mib(64));
    let of_pool = "KernelPageSize: 2048 kB\nRss: 0 kB\nPss: 0 kB\nShared_Hugetlb: 65536 kB\nPrivate_Hugetlb: 0 kB\nVmFlags: rd wr sh ht";
    assert_eq!(peak(of_pool, "VmRSS:\t0 kB\nHugetlbPages:\t65536 kB"), Bytes::mib(64));
}
