//! nova.conf of OpenStack: pages of the pools that its compute service leaves to programs beside its guests.

use model::{Bytes, Unread};

use crate::config::files::in_sections;

/// One file of nova-compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nova {
    pub path: String,
    /// What it leaves to others, in order: of two lines for a node and a size the last holds.
    pub reserved: Vec<Reserved>,
}

/// `reserved_huge_pages = node:0,size:2048,count:64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub place: String,
    pub node: u32,
    pub page: Bytes,
    pub count: u64,
}

const COMMENT: &[char] = &['#', ';'];

/// Settings of [DEFAULT] and [compute] that no other service has.
const OWN: [&str; 7] = [
    "compute_driver",
    "cpu_dedicated_set",
    "cpu_shared_set",
    "ram_allocation_ratio",
    "reserved_host_memory_mb",
    "reserved_huge_pages",
    "vcpu_pin_set",
];

pub(super) fn is_nova(text: &str) -> bool {
    let mut lines = in_sections("", text, COMMENT);
    lines.any(|(section, line)| {
        let is_section = ["[DEFAULT]", "[compute]"].contains(&section);
        is_section && line.pair().is_some_and(|(name, _)| OWN.contains(&name))
    })
}

pub(super) fn parse(path: &str, text: &str, garbled: &mut Vec<Unread>) -> Nova {
    let mut own = Vec::new();
    for (section, line) in in_sections(path, text, COMMENT) {
        let value = match line.pair() {
            Some(("reserved_huge_pages", value)) if section == "[DEFAULT]" && !value.is_empty() => value,
            _ => continue,
        };
        match reserved(line.place(), value) {
            Some(one) => own.push(one),
            None => garbled.push(line.garbled("one node a line: `node:0,size:2048,count:64` (KiB), or size:1GB")),
        }
    }
    Nova {
        path: path.to_owned(),
        reserved: own,
    }
}

fn reserved(place: String, value: &str) -> Option<Reserved> {
    let (mut node, mut page, mut count) = (None, None, None);
    for part in value.split(',') {
        let (name, value) = part.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        match name {
            "node" if node.is_none() => node = Some(value.parse().ok()?),
            "size" if page.is_none() => page = Some(page_size(value)?),
            "count" if count.is_none() => count = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(Reserved {
        place,
        node: node?,
        page: page?,
        count: count?,
    })
}

/// In KiB, or with a unit that ends in B.
fn page_size(value: &str) -> Option<Bytes> {
    match value.parse::<u64>() {
        Ok(kib) => kib.checked_mul(1 << 10).map(Bytes),
        Err(_) => value.ends_with('B').then(|| value.parse().ok())?,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_nova, parse};
    use model::Bytes;

    #[test]
    fn pages_that_nova_leaves_to_others() {
        let of = |lines: &str| {
            let mut garbled = Vec::new();
            let read = parse("nova.conf", lines, &mut garbled);
            let all: Vec<_> = read
                .reserved
                .iter()
                .map(|own| (own.node, own.page, own.count))
                .collect();
            (all, garbled.len())
        };
        let two = "[DEFAULT]\nreserved_huge_pages = node:0,size:2048,count:64\n\
                   reserved_huge_pages=node:1, size:1GB, count:4\n[libvirt]\nreserved_huge_pages=node:9,size:1GB,count:9\n";
        let both = vec![(0, Bytes::mib(2), 64), (1, Bytes::gib(1), 4)];
        assert_eq!(of(two), (both, 0));
        for wrong in [
            "node:0,size:1G,count:4",
            "node:0,size:2048",
            "node:0,size:2048,count:64,node:1,size:2048,count:64",
        ] {
            let line = format!("[DEFAULT]\nreserved_huge_pages = {wrong}\n");
            assert_eq!(of(&line), (Vec::new(), 1), "{wrong}");
        }
        assert!(is_nova(two) && is_nova("[compute]\ncpu_dedicated_set = 2-31\n"));
        assert!(!is_nova("[DEFAULT]\ndebug = true\n[libvirt]\nvirt_type = kvm\n"));
    }
}
