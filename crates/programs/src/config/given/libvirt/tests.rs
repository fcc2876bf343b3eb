//! Sizes, memory devices, and definitions that libvirt refuses.

use model::Bytes;

use super::super::guest::{Backing, Guest};
use super::parse;

fn guest(lines: &str) -> Guest {
    parse("a.xml", &format!("<domain type='kvm'>\n{lines}\n</domain>")).expect("a guest")
}

#[test]
fn units_are_of_any_case() {
    let size = |unit: &str| {
        let text = format!("<domain>\n<memory unit='{unit}'>8000</memory></domain>");
        parse("a.xml", &text).map(|guest| guest.total().0)
    };
    for (units, factor) in [
        (&["b", "Byte", "bytes"][..], 1),
        (&["", "k", "K", "kib", "KiB"][..], 1 << 10),
        (&["kb", "KB"][..], 1000),
        (&["m", "MiB", "mib"][..], 1 << 20),
        (&["Mb"][..], 1_000_000),
        (&["gib", "G"][..], 1 << 30),
    ] {
        for unit in units {
            assert_eq!(size(unit), Ok(8000 * factor), "{unit}");
        }
    }
    for unit in ["ell", "iB", "Mi", "kbyte"] {
        let why = size(unit).expect_err(unit);
        assert_eq!(why.place, "a.xml:2");
        assert!(why.why.contains(&format!("`8000 {unit}`")), "{why:?}");
    }
}

/// The machine of s390x has no cells.
#[test]
fn cells_of_a_guest_that_has_no_numa() {
    let of = |arch: &str| {
        let cells = "<cpu><numa><cell id='0' cpus='0-3' memory='1' unit='GiB'/></numa></cpu>";
        let os = format!("<os><type arch='{arch}'>hvm</type></os>");
        guest(&format!("<memory unit='GiB'>1</memory>{os}\n{cells}")).refused
    };
    let refused = of("s390x");
    assert_eq!(refused[0].place, "a.xml:3");
    assert!(
        refused[0].fix().is_some_and(|fix| fix.starts_with("take <numa> out")),
        "{refused:?}"
    );
    assert_eq!(of("x86_64"), []);
}

#[test]
fn devices_are_part_of_the_memory() {
    let dimm = |model: &str, more: &str| {
        format!(
            "<devices><memory model='{model}'>{more}<target><size unit='GiB'>4</size><requested unit='GiB'>1</requested>\
             <node>0</node></target></memory></devices>"
        )
    };
    let pages =
        "<memory unit='GiB'>12</memory><memoryBacking><hugepages><page size='2' unit='M'/></hugepages></memoryBacking>";
    let cell = "<cpu><numa><cell id='0' memory='8' unit='GiB'/></numa></cpu>";
    let (small, large) = (Some(Bytes::mib(2)), Some(Bytes::gib(1)));
    let of_1g = "<source><pagesize unit='KiB'>1048576</pagesize><nodemask>1</nodemask></source>";
    for (model, source, device) in [
        ("dimm", "", Some((4, small))),
        ("dimm", of_1g, Some((4, large))),
        ("virtio-mem", "", Some((1, small))),
        ("nvdimm", "<source><path>/x</path></source>", None),
    ] {
        let memory: Vec<_> = [Some((8, small)), device].into_iter().flatten().collect();
        let memory: Vec<_> = memory
            .into_iter()
            .map(|(gib, page)| (Bytes::gib(gib), Backing::Hugetlb(page)))
            .collect();
        for cell in ["", cell] {
            let read = guest(&format!("{pages}{cell}{}", dimm(model, source)));
            assert_eq!(read.memory, memory, "{model} {source} {cell}");
            let node = read
                .bound
                .last()
                .and_then(Option::as_ref)
                .and_then(|nodes| nodes.first());
            assert_eq!(node, (source == of_1g).then_some(1));
        }
    }
}

/// A cell that no page size is for has none (libvirt tests it as hugepages-numa-nodeset-part).
#[test]
fn a_cell_beside_those_of_the_pages_has_base_pages() {
    let read = guest(
        "<memory unit='GiB'>2</memory><memoryBacking><hugepages><page size='1' unit='G' nodeset='1'/></hugepages></memoryBacking>\
         <cpu><numa><cell id='0' memory='1' unit='GiB'/><cell id='1' memory='1' unit='GiB'/></numa></cpu>",
    );
    let from: Vec<&Backing> = read.memory.iter().map(|(_, from)| from).collect();
    assert_eq!(from, [&Backing::Any, &Backing::Hugetlb(Some(Bytes::gib(1)))]);
}

#[test]
fn hugepages_that_contradict_something_are_refused() {
    let refused = |backing: &str| {
        let read = guest(&format!(
            "<memory unit='GiB'>2</memory><memoryBacking>\n{backing}</memoryBacking>\
             <cpu><numa><cell id='0' memory='1' unit='GiB'/><cell id='1' memory='1' unit='GiB'/></numa></cpu>"
        ));
        let all = read.refused.into_iter();
        let all = all.map(|refused| (refused.place.clone(), refused.fix().is_some()));
        all.collect::<Vec<_>>()
    };
    for (place, backing) in [
        (
            "a.xml:4",
            "<hugepages><page size='2' unit='M'/>\n<page size='1' unit='G'/></hugepages>",
        ),
        (
            "a.xml:4",
            "<hugepages><page size='2' unit='M' nodeset='0-1'/>\n<page size='1' unit='G' nodeset='1'/></hugepages>",
        ),
        ("a.xml:3", "<allocation mode='ondemand'/><hugepages/>"),
        ("a.xml:3", "<hugepages/><source type='anonymous'/>"),
    ] {
        assert_eq!(refused(backing), [(place.to_owned(), true)], "{backing}");
    }
    for right in [
        "<allocation mode='ondemand'/><source type='anonymous'/>",
        "<hugepages/><allocation mode='immediate'/><source type='memfd'/>",
        "<hugepages><page size='2' unit='M'/><page size='1' unit='G' nodeset='1'/></hugepages>",
        "<hugepages><page size='2' unit='M' nodeset='0'/><page size='1' unit='G' nodeset='1'/></hugepages>",
    ] {
        assert!(refused(right).is_empty(), "{right}");
    }
}
