//! Heaps among the mappings that JVMs have beside them.

use host::Source;
use model::{Bytes, PageKind};
use programs::{Area, areas};

use super::anonymous;

const FREE: &str = "00000000 00:00 0 ";

/// Mappings with their resident memory in KiB, of which so much is on THP.
fn smaps(lines: &[(&str, &str, &str, u64, u64)]) -> Vec<Area> {
    let line = |(range, perms, name, rss, thp): &(&str, &str, &str, u64, u64)| {
        let file = if name.is_empty() {
            FREE.to_owned()
        } else {
            format!("00001000 fe:00 315149 {name}")
        };
        format!("{range} {perms} {file}\nRss: {rss} kB\nAnonHugePages: {thp} kB\nVmFlags: rd wr \n")
    };
    let text: String = lines.iter().map(line).collect();
    let tree = host::Tree::new().file("/proc/5/smaps", text);
    areas::counted(&Source::from_tree("made", tree), 5)
        .into_result()
        .expect("mappings")
}

const CDS: &str = "/usr/lib/jvm/java-17/lib/server/classes.jsa";

/// JDK 17 with -XX:MaxRAM=1g: a heap of 256 MiB, and a class data archive with 1 GiB for classes behind it.
fn jdk17() -> Vec<Area> {
    smaps(&[
        ("f0000000-ffe00000", "rw-p", "", 137_320, 63_488),
        ("ffe00000-ffe75000", "rw-p", CDS, 468, 0),
        ("ffe75000-fff00000", "rw-p", "", 0, 0),
        ("fff00000-fff78000", "rw-p", CDS, 480, 0),
        ("fff78000-100000000", "rw-p", "", 0, 0),
        ("7ff544000000-7ff544021000", "rw-p", "", 4, 0),
        ("7ff544021000-7ff548000000", "---p", "", 0, 0),
        ("7ff567000000-7ff567bc7000", "rw-p", CDS, 11_624, 0),
        ("7ff567bc7000-7ff568000000", "---p", "", 0, 0),
        ("7ff568000000-7ff568010000", "rw-p", "", 4, 0),
        ("7ff568010000-7ff5a8000000", "---p", "", 0, 0),
    ])
}

/// JDK 25: the archive and the classes lie below the heap, and a page before the archive.
fn jdk25() -> Vec<Area> {
    smaps(&[
        ("76000000-76001000", "---p", "", 4, 0),
        ("76001000-76d95000", "rw-p", CDS, 13_048, 0),
        ("76d95000-77000000", "---p", "", 0, 0),
        ("77000000-77010000", "rw-p", "", 8, 0),
        ("77010000-b7000000", "---p", "", 0, 0),
        ("f0000000-f6600000", "rw-p", "", 104_448, 104_448),
        ("f6600000-fac00000", "---p", "", 0, 0),
        ("fac00000-fb200000", "rw-p", "", 2_048, 2_048),
        ("fb200000-100000000", "---p", "", 0, 0),
    ])
}

/// JDK 11: the classes follow the heap without a gap.
fn jdk11() -> Vec<Area> {
    smaps(&[
        ("f0000000-f8000000", "rw-p", "", 100_000, 0),
        ("f8000000-100000000", "---p", "", 0, 0),
        ("100000000-100080000", "rw-p", "", 500, 0),
        ("100080000-140000000", "---p", "", 0, 0),
    ])
}

#[test]
fn a_heap_is_found_whether_its_size_is_known_or_not() {
    for (name, areas) in [("17", jdk17()), ("25", jdk25()), ("11", jdk11())] {
        for most in [Some(Bytes::mib(256)), None] {
            let heap = anonymous(&areas, most).unwrap_or_else(|| panic!("{name} {most:?}"));
            let ends = (heap[0].range.start, heap[heap.len() - 1].range.end);
            assert_eq!(ends, (0xf000_0000, 0x1_0000_0000), "JDK {name}, {most:?}");
        }
    }
}

#[test]
fn its_bytes_are_those_of_its_own_mappings() {
    let areas = jdk25();
    let heap = super::Heap::new(anonymous(&areas, None).expect("a heap").iter().collect(), false).expect("mappings");
    assert_eq!(heap.committed, Bytes::mib(102 + 6));
    let backing = heap.backing.known().expect("counted");
    assert_eq!(
        (backing.of(PageKind::Thp), backing.total()),
        (Bytes::kib(106_496), Bytes::kib(106_496))
    );
    assert_eq!(heap.reserved(), Some(Bytes::mib(256)));
}

#[test]
fn a_maximum_that_the_jvm_rounds_up_is_found_too() {
    let areas = jdk17();
    let heap = anonymous(&areas, Some(Bytes(250_000_000))).expect("a heap");
    assert_eq!(heap[0].range.start, 0xf000_0000);
    assert!(anonymous(&areas, Some(Bytes::gib(40))).is_none(), "none is so long");
}

/// Without compressed pointers a heap lies among all other mappings, and is the longest.
#[test]
fn a_heap_beyond_compressed_pointers_is_reserved_whole() {
    let areas = smaps(&[
        ("800000000-800080000", "rw-p", "", 400, 0),
        ("800080000-840000000", "---p", "", 0, 0),
        ("7f0000000000-7f0040000000", "rw-p", "", 1 << 20, 0),
        ("7f0040000000-7f1000000000", "---p", "", 0, 0),
    ]);
    assert_eq!(
        anonymous(&areas, None).expect("a heap")[0].range.start,
        0x7f00_0000_0000
    );
}
