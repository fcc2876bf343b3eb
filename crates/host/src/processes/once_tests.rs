//! Shares that add up, and pages that count once.

use model::{Backing, Bytes, PageKind};

use super::{Coverage, is_counted, taken_of_pool};
use crate::processes::areas::Area;
use crate::{Source, Tree};

fn areas(smaps: &str) -> Vec<Area> {
    let source = Source::from_tree("made", Tree::new().file("/proc/5/smaps", smaps));
    crate::processes::areas::counted(&source, 5)
        .into_result()
        .expect("mappings")
}

fn mib(backing: &Backing, kind: PageKind) -> u64 {
    backing.of(kind).0 >> 20
}

const TWO: PageKind = PageKind::Hugetlb(Bytes::mib(2));

/// Three views of one file of 64 MiB, each in two mappings, through which 40, 64 and 2 MiB were touched.
fn views(hugetlb: bool) -> String {
    let view = |start: u64, touched: [u64; 2]| {
        let half = |at: u64, offset: u64, mib: u64| {
            let (page, flags) = if hugetlb {
                (2048, "rd wr sh ht")
            } else {
                (4, "rd wr sh")
            };
            let (rss, huge) = if hugetlb { (0, mib << 10) } else { (mib << 10, 0) };
            format!(
                "{:x}-{:x} rw-s {offset:08x} 00:01 1027 /memfd:java_heap (deleted)\nKernelPageSize: {page} kB\nRss: {rss} kB\nShared_Hugetlb: {huge} kB\nVmFlags: {flags} \n",
                start + at,
                start + at + (32 << 20)
            )
        };
        half(0, 0, touched[0]) + &half(32 << 20, 32 << 20, touched[1])
    };
    view(1 << 42, [32, 8]) + &view(1 << 43, [32, 32]) + &view(1 << 44, [2, 0])
}

#[test]
fn a_file_that_is_mapped_three_times_counts_once() {
    let covered = Coverage::of(&areas(&views(true)));
    assert_eq!(mib(&covered.shared, TWO), 64, "{covered:?}");
    let covered = Coverage::of(&areas(&views(false)));
    assert_eq!(mib(&covered.shared, PageKind::Base), 64, "{covered:?}");
    assert_eq!((covered.private.total(), covered.file.total()), (Bytes(0), Bytes(0)));
}

/// 32 MiB are in both views, of 48: Pss has each page once.
#[test]
fn views_that_have_different_pages_count_together() {
    let view = |start: &str, end: &str, thp: u64| {
        format!(
            "{start}-{end} rw-s 00000000 00:01 7 /memfd:java_heap (deleted)\nRss: 40960 kB\nPss: 24576 kB\nShmemPmdMapped: {thp} kB\n\
             VmFlags: rd wr sh \n"
        )
    };
    let both = |thp| view("40000000000", "40004000000", thp) + &view("80000000000", "80004000000", thp);
    assert_eq!(mib(&Coverage::of(&areas(&both(0))).shared, PageKind::Base), 48);
    let half = Coverage::of(&areas(&both(20480))).shared;
    assert_eq!((mib(&half, PageKind::Thp), mib(&half, PageKind::Base)), (24, 24));
}

#[test]
fn pages_of_a_pool_are_taken_once_and_by_reservation() {
    let taken = |smaps: &str| taken_of_pool(&areas(smaps), Bytes::mib(2)).0 >> 20;
    assert_eq!(taken(&views(true)), 64, "three views of one file");
    let private = |flags: &str| {
        format!(
            "7f0003000000-7f0003800000 rw-p 00000000 00:0f 12 /anon_hugepage (deleted)\nKernelPageSize: 2048 kB\nRss: 0 kB\n\
             Private_Hugetlb: 4096 kB\nVmFlags: {flags} \n"
        )
    };
    assert_eq!((taken(&private("rd wr ht")), taken(&private("rd wr nr ht"))), (8, 4));
    assert_eq!(taken_of_pool(&areas(&private("rd wr ht")), Bytes::gib(1)), Bytes(0));
}

#[test]
fn views_that_overlap_in_part_count_what_is_mapped() {
    let smaps = "10000000-10200000 rw-s 00000000 00:01 7 /dev/shm/x\nRss: 2048 kB\nVmFlags: rd wr sh \n\
        20000000-20200000 rw-s 00100000 00:01 7 /dev/shm/x\nRss: 2048 kB\nVmFlags: rd wr sh \n";
    assert_eq!(mib(&Coverage::of(&areas(smaps)).shared, PageKind::Base), 3);
}

#[test]
fn private_shared_and_file_memory_add_up() {
    let smaps = "400000-600000 r-xp 00000000 08:01 9 /bin/a\nRss: 1024 kB\nVmFlags: rd ex \n\
        600000-800000 rw-p 00200000 08:01 9 /bin/a\nRss: 1024 kB\nVmFlags: rd wr \n\
        7f0000000000-7f0000400000 r--s 00000000 08:01 10 /data\nRss: 4096 kB\nFilePmdMapped: 2048 kB\nVmFlags: rd sh \n\
        7f0001000000-7f0001400000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nAnonHugePages: 2048 kB\nVmFlags: rd wr \n\
        7f0002000000-7f0002400000 rw-s 00000000 00:01 11 /dev/zero (deleted)\nRss: 3072 kB\nShmemPmdMapped: 2048 kB\nVmFlags: rd wr sh \n\
        7f0003000000-7f0003400000 rw-p 00000000 00:0f 12 /anon_hugepage (deleted)\nKernelPageSize: 2048 kB\nRss: 0 kB\nPrivate_Hugetlb: 4096 kB\nVmFlags: rd wr ht \n";
    let areas = areas(smaps);
    assert!(is_counted(&areas));
    let covered = Coverage::of(&areas);
    let of = |backing: &Backing| [PageKind::Base, PageKind::Thp, TWO].map(|kind| mib(backing, kind));
    assert_eq!(of(&covered.private), [2, 2, 4]);
    assert_eq!(of(&covered.shared), [1, 2, 0]);
    assert_eq!(of(&covered.file), [4, 2, 0]);
    assert_eq!(of(&covered.all()), [7, 6, 4]);
}
