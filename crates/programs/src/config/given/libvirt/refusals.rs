//! Definitions that libvirt refuses for their cells or their pages.

use model::Bytes;
use roxmltree::Node;

use super::super::guest::{Refused, Wrong};
use super::{File, child, nodeset};

/// libvirt's errors about `<hugepages>`, and how it takes the definition.
const CONTRADICTIONS: [(&str, &str); 4] = [
    (
        "two master hugepages detected",
        "keep one <page> without nodeset, and give each other one the cells that it is for: nodeset='0'",
    ),
    (
        "nodeset attribute of hugepages of sizes ... intersect",
        "name each cell in the nodeset of one <page> only",
    ),
    (
        "hugepages are not allowed with memory allocation ondemand",
        "<allocation mode='immediate'/>, or no <allocation>",
    ),
    (
        "hugepages are not allowed with anonymous memory source",
        "<source type='memfd'/>, or no <source>",
    ),
];

/// QEMU's error about cells of a guest of s390x (machine_parse_numa_opts), whose machine has none.
const NO_NUMA: (&str, &str) = (
    "NUMA is not supported by this machine-type",
    "take <numa> out of <cpu>: a guest of s390x has its memory in one piece; where libvirt then has no use for <source type='memfd'/>, that too",
);

impl Refused {
    /// How libvirt takes `<hugepages>` that contradict something else, or such a machine.
    pub fn fix(&self) -> Option<&'static str> {
        let mut all = CONTRADICTIONS.iter().chain([&NO_NUMA]);
        let own = all.find(|(why, _)| *why == self.why);
        own.map(|(_, fix)| *fix)
    }
}

impl File<'_, '_> {
    /// What libvirt says of `<hugepages>` that contradict themselves or what is beside them, with the line (virDomainDefMemtuneValidate,
    /// qemuValidateDomainDefMemory).
    pub(super) fn contradicted(&self, domain: Node<'_, '_>) -> Vec<Refused> {
        let backing = child(domain, "memoryBacking");
        let Some((backing, pages)) = backing.and_then(|own| Some((own, child(own, "hugepages")?))) else {
            return Vec::new();
        };
        let pages: Vec<Node<'_, '_>> = pages.children().filter(|node| node.has_tag_name("page")).collect();
        let mut masters = pages.iter().filter(|page| page.attribute("nodeset").is_none());
        let overlaps = |at: usize| {
            let own = nodeset(pages[at])?;
            let mut before = pages[..at].iter().filter_map(|page| nodeset(*page));
            before
                .any(|other| own.iter().any(|id| other.contains(id)))
                .then_some(pages[at])
        };
        let beside = |name: &str, attribute: &str, value: &str| {
            child(backing, name).filter(|node| node.attribute(attribute) == Some(value))
        };
        let found = [
            masters.nth(1).copied(),
            (0..pages.len()).find_map(overlaps),
            beside("allocation", "mode", "ondemand"),
            beside("source", "type", "anonymous"),
        ];
        let refused = |((why, _), node): (&(&str, &str), Option<Node<'_, '_>>)| {
            Some(Refused {
                place: self.place(node?),
                why: (*why).to_owned(),
                wrong: Wrong::Cells,
            })
        };
        CONTRADICTIONS.iter().zip(found).filter_map(refused).collect()
    }

    /// Cells of a guest whose machine has none.
    pub(super) fn without_numa(&self, domain: Node<'_, '_>) -> Option<Refused> {
        let numa = child(child(domain, "cpu")?, "numa")?;
        let machine = child(child(domain, "os")?, "type")?;
        (machine.attribute("arch") == Some("s390x")).then(|| Refused {
            place: self.place(numa),
            why: NO_NUMA.0.to_owned(),
            wrong: Wrong::Cells,
        })
    }

    /// What libvirt itself says of cells that the guest does not have, with the line.
    pub(super) fn refused(&self, domain: Node<'_, '_>, cells: &[(String, Bytes)]) -> Vec<Refused> {
        let wrong = |node: Node<'_, '_>, why: String| Refused {
            place: self.place(node),
            why,
            wrong: Wrong::Cells,
        };
        let is_cell = |id: u32| match cells.is_empty() {
            true => id == 0,
            false => cells.iter().any(|(own, _)| own.parse() == Ok(id)),
        };
        let mut refused = Vec::new();
        for node in domain.descendants().filter(|node| node.has_tag_name("memnode")) {
            let cell = node.attribute("cellid").unwrap_or_default();
            if cells.is_empty() {
                let why = "Element 'memnode' is invalid without any guest NUMA cells";
                refused.push(wrong(node, why.to_owned()));
            } else if !cell.parse().is_ok_and(is_cell) {
                let why = format!("'cellid' {cell} must correspond to existing guest's NUMA cell");
                refused.push(wrong(node, why));
            }
        }
        for node in domain.descendants().filter(|node| node.has_tag_name("page")) {
            if let Some(id) = nodeset(node).and_then(|nodes| nodes.iter().find(|id| !is_cell(*id))) {
                refused.push(wrong(node, format!("hugepages: node {id} not found")));
            }
        }
        refused
    }
}
