//! smaps as kernels write it, and as none does.

use model::{Address, Bytes, Cause, PageKind};
use proptest::prelude::*;

use super::{Counts, Mapping, each, each_named, last_header, parse, parse_rollup};
use crate::{Source, Tree};

const TEXT: &[u8] = b"7f0000000000-7f0000600000 rw-p 00000000 00:00 0                          [anon:heap of mine]\n\
Size:               6144 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\nRss:                4100 kB\nPss:                4100 kB\n\
AnonHugePages:      4096 kB\nShmemPmdMapped:        0 kB\nFilePmdMapped:         0 kB\nShared_Hugetlb:        0 kB\nPrivate_Hugetlb:       0 kB\n\
THPeligible:           1\nVmFlags: rd wr mr mw me ac hg \n\
7f0040000000-7f0080000000 rw-s 00200000 00:10 42                         /anon_hugepage (deleted)\n\
KernelPageSize:  1048576 kB\nMMUPageSize:     1048576 kB\nRss:                   0 kB\nShared_Hugetlb:  1048576 kB\n\
SomethingNew:  a b c\nlowercase-new:  7 kB\nWithoutColon\nVmFlags: rd wr sh ht \n\
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\nRss:                   0 kB\nVmFlags: ex \n";

#[test]
fn tells_the_page_kinds_of_each_mapping() {
    let mappings = parse("smaps", TEXT).expect("good text");
    let [heap, pool, gate] = mappings.as_slice() else {
        panic!("three mappings")
    };
    assert_eq!(heap.backing().to_string(), "base 4K + thp 4M");
    assert_eq!((heap.name, heap.size()), (&b"[anon:heap of mine]"[..], Bytes::mib(6)));
    let eligible = |mapping: &Mapping<&[u8]>| mapping.counted.as_ref().and_then(|counted| counted.thp_eligible);
    assert_eq!(eligible(heap), Some(true));
    assert!(heap.has("hg") == Some(true) && heap.has("h") == Some(false));
    assert_eq!(pool.backing().of(PageKind::HUGETLB_1G), Bytes::gib(1));
    assert_eq!(pool.backing().total(), Bytes::gib(1));
    assert_eq!((pool.inode, pool.offset, pool.device), (42, 0x20_0000, &b"00:10"[..]));
    assert_eq!(eligible(pool), None);
    assert_eq!(gate.backing().total(), Bytes(0));
    assert_eq!(gate.range.end, 0xffff_ffff_ff60_1000);
    let shown = pool.to_pages();
    assert_eq!(
        (shown.start, shown.name.as_str()),
        (Address(0x7f00_4000_0000), "/anon_hugepage (deleted)")
    );
    assert_eq!(shown.flags, ["rd", "wr", "sh", "ht"]);
}

#[test]
fn a_rollup_is_the_sum() {
    let text = b"1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 10 kB\nAnonHugePages: 2048 kB\nPrivate_Hugetlb: 4 kB\n";
    let counts = parse_rollup("rollup", text).expect("good text");
    let wanted = Counts {
        rss: Bytes::kib(10),
        anon_huge: Bytes::mib(2),
        hugetlb: Bytes::kib(4),
        ..Counts::default()
    };
    assert_eq!(counts, wanted);
    assert_eq!(
        counts.transparent().to_string(),
        "thp 10K",
        "never more than is resident"
    );
    assert_eq!(parse_rollup("rollup", b"").expect_err("empty").unread, Cause::Garbled);
}

#[test]
fn what_is_cut_or_garbled_is_named_by_line_and_never_a_zero() {
    let tail = b"Rss: 1 kB\nRss: 2";
    for (text, line) in [
        (&b"1000-2000 rw-p 00000000 00:00 0 \nRss: 1 k"[..], "smaps:2"),
        (b"1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\n", "smaps:1"),
        (b"1000-2000 rw-p 00000000\nRss: 1 kB\n", "smaps:1"),
        (b"2000-1000 rw-p 00000000 00:00 0 \nRss: 1 kB\n", "smaps:1"),
        (b"1000-2000 rw-p 00000000 00:00 0 \nRss: x kB\n", "smaps:2"),
        (b"1000-2000 rw-p 00000000 00:00 0 \nTHPeligible: 7\n", "smaps:2"),
        (tail, "smaps:2"),
    ] {
        let why = parse("smaps", text).expect_err("garbled");
        assert_eq!((why.unread, why.place.as_str()), (Cause::Garbled, line), "{why}");
    }
    assert_eq!(
        parse("smaps", b""),
        Ok(Vec::new()),
        "a thread of the kernel has no mappings"
    );
}

#[test]
fn counts_from_a_garbled_machine_do_not_overflow() {
    let huge = Bytes(u64::MAX - 1023);
    let counts = Counts {
        anon_huge: huge,
        shmem_pmd: huge,
        ..Counts::default()
    };
    assert_eq!(counts.thp(), Bytes(u64::MAX));
}

proptest! {
    #[test]
    fn no_bytes_upset_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse("smaps", &bytes);
        let _ = parse_rollup("rollup", &bytes);
    }

    #[test]
    fn no_change_to_a_real_file_upsets_it(at in 0..TEXT.len(), byte: u8, cut in 0..TEXT.len()) {
        let mut bytes = TEXT.to_vec();
        bytes[at] = byte;
        bytes.truncate(cut);
        for mapping in parse("smaps", &bytes).unwrap_or_default() {
            mapping.to_pages();
        }
    }

    #[test]
    fn a_cut_inside_the_last_mapping_is_noticed(cut in 1..30_usize) {
        let text = &TEXT[..TEXT.len() - cut];
        let whole = text.ends_with(b"\n");
        prop_assert_eq!(parse("smaps", text).is_ok(), whole);
    }
}

/// So many mappings that they are read in several pieces.
fn many(count: usize) -> Vec<u8> {
    let mapping = |number: usize| {
        let start = 0x7000_0000_0000 + number * 0x1000;
        let name = ["", "[anon:AnonHugePages: 4 kB]", "/lib/Abe: d", "[heap]"][number % 4];
        format!(
            "{start:x}-{:x} rw-p 00000000 00:00 0 {name}\nSize: 4 kB\nRss: {} kB\nAnonHugePages: 0 kB\nVmFlags: rd wr \n",
            start + 0x1000,
            number % 5
        )
    };
    (0..count).map(mapping).collect::<String>().into_bytes()
}

#[test]
fn mappings_read_in_pieces_are_those_of_the_whole_file() {
    let text = many(9_000);
    assert!(text.len() > 700_000, "several pieces");
    let source = Source::from_tree("made", Tree::new().file("/proc/5/smaps", &text));
    let whole: Vec<String> = parse("smaps", &text)
        .expect("good text")
        .iter()
        .map(|mapping| format!("{mapping:?}"))
        .collect();
    let mut pieces = Vec::new();
    each(&source, "/proc/5/smaps", |mapping: &Mapping<&[u8]>| {
        pieces.push(format!("{mapping:?}"));
        Ok(())
    })
    .expect("good text");
    assert_eq!(pieces, whole);
    let mut named = 0;
    each_named(&source, 5, &mut |_| {
        named += 1;
        Ok(())
    })
    .expect("headers");
    assert_eq!(named, 9_000);
}

#[test]
fn a_wrong_line_far_in_the_file_is_named_by_its_number() {
    let mut text = many(9_000);
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    text.extend_from_slice(b"7100-7000 rw-p 00000000 00:00 0\n");
    let source = Source::from_tree("made", Tree::new().file("/proc/5/smaps", &text));
    let why = each(&source, "/proc/5/smaps", |_| Ok(())).expect_err("garbled");
    assert_eq!(why.place, format!("/proc/5/smaps:{}", lines + 1));
    text.truncate(text.len() - 40);
    let source = Source::from_tree("made", Tree::new().file("/proc/5/smaps", &text));
    let why = each(&source, "/proc/5/smaps", |_| Ok(())).expect_err("cut");
    assert!(why.why.contains("the file was cut"), "{why}");
}

proptest! {
    #[test]
    fn the_last_header_is_found_in_any_text(text in prop::collection::vec(prop::sample::select(b"7f-A: \n".to_vec()), 0..200)) {
        let at = last_header(&text);
        prop_assert!(at == 0 || text[at - 1] == b'\n');
    }
}

#[test]
fn a_kernel_that_counts_no_hugetlb_pages_shows_them_by_flag_or_page_size() {
    let mapping = |perms: &str, page: u32, more: &str| {
        format!(
            "60000000-a0000000 {perms} 00000000 00:04 98304 /SYSV00000000 (deleted)\nSize: 1048576 kB\nRss: 0 kB\nKernelPageSize: {page} kB\n{more}"
        )
    };
    let hugetlb = |text: &str| {
        let mappings = parse("smaps", text.as_bytes()).expect("good text");
        mappings[0].backing().of(PageKind::HUGETLB_2M)
    };
    assert_eq!(
        hugetlb(&mapping("rw-s", 2048, "VmFlags: rd wr sh ht \n")),
        Bytes::gib(1)
    );
    assert_eq!(hugetlb(&mapping("rw-p", 2048, "")), Bytes::gib(1));
    // A counted one has what is counted, and large base pages are none of a pool.
    assert_eq!(
        hugetlb(&mapping("rw-s", 2048, "Shared_Hugetlb: 4096 kB\nVmFlags: sh ht \n")),
        Bytes::mib(4)
    );
    assert_eq!(hugetlb(&mapping("rw-s", 64, "")), Bytes(0));
}
