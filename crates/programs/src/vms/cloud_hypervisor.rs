//! Cloud Hypervisor's command line. Pure. The options are documented in its `docs/memory.md`.

use model::Bytes;

use super::configured::{Asked, Backing, is_on, options, parts, size, value};
use crate::kind::Known;

pub(crate) const KNOWN: Known = Known {
    is_hypervisor: true,
    ..Known::new("Cloud Hypervisor", &[], &["cloud-hypervisor"])
};

pub(super) fn parse(argv: &[String]) -> Asked {
    let asked = asked(argv);
    Asked {
        memory: asked.memory.into_iter().flat_map(around_the_hole).collect(),
        bound: Vec::new(),
        ..asked
    }
}

/// With the regions of its memory as they are written.
pub(crate) fn asked(argv: &[String]) -> Asked {
    let zones = zones(argv);
    let main = options(argv, "memory");
    // With zones, `--memory size=0` holds no memory of its own.
    let all: Vec<Vec<(String, String)>> = main.iter().chain(&zones).map(|text| parts(text)).collect();
    let node = |parts| value(parts, "host_numa_node").map(str::to_owned);
    let (memory, bound) = all
        .iter()
        .filter_map(|parts| Some((region(parts)?, node(parts))))
        .unzip();
    Asked {
        memory,
        bound,
        // It has no option for a name; its socket is what people know it by.
        name: options(argv, "api-socket").last().map(|text| socket(text)),
        prealloc: all.iter().any(|parts| is_on(parts, "prefault")),
        shared: all.iter().any(|parts| is_on(parts, "shared")),
    }
}

/// A list of zones may follow one option.
fn zones(argv: &[String]) -> Vec<&str> {
    let (mut zones, mut is_zone) = (Vec::new(), false);
    for word in argv {
        match word.strip_prefix("--memory-zone") {
            Some(first) => {
                is_zone = true;
                zones.extend(first.strip_prefix('='));
            }
            None if word.starts_with('-') => is_zone = false,
            None if is_zone => zones.push(word.as_str()),
            None => {}
        }
    }
    zones
}

fn socket(text: &str) -> String {
    let parts = parts(text);
    value(&parts, "path").unwrap_or(text).to_owned()
}

fn region(parts: &[(String, String)]) -> Option<(Bytes, Backing)> {
    let bytes = size(value(parts, "size")?, 1).filter(|bytes| bytes.0 > 0)?;
    let from = match value(parts, "file") {
        Some(path) => Backing::Path(path.to_owned()),
        None if is_on(parts, "hugepages") => {
            Backing::Hugetlb(value(parts, "hugepage_size").and_then(|text| size(text, 1)))
        }
        None if is_on(parts, "thp") => Backing::Thp,
        None => Backing::Any,
    };
    Some((bytes, from))
}

/// Memory below and above the hole for devices under 4 GiB is mapped apart.
pub(super) fn around_the_hole((bytes, from): (Bytes, Backing)) -> Vec<(Bytes, Backing)> {
    let below = Bytes::gib(3);
    match bytes.0.checked_sub(below.0) {
        Some(above) if above > 0 => vec![(below, from.clone()), (Bytes(above), from)],
        _ => vec![(bytes, from)],
    }
}
