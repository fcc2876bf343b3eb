//! Requests for pools beside sysctl settings and the running command line: sysfs.conf, tmpfiles, profiles of tuned, the next boot.

use std::collections::BTreeMap;

use host::Source;
use host::snapshot::Topology;
use host::snapshot::hugetlb::file_of_pool;
use model::{Bytes, Cause, Unread};

use super::files::{Line, content, first, has_configuration, said, taken};
use super::given::script::{self, Unresolved, Written};
use super::tuned::{Set, profiles, sets};
use super::{Boot, BootLine, PoolRequest, Setting, sysctl_files, written};

/// Where the files of nodes are.
const OF_NODES: &str = "system/node/node";

/// One place that requests pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLine {
    /// `FILE:LINE`.
    pub place: String,
    /// Page size; `None` is the default size.
    pub size: Option<Bytes>,
    /// Pages on all nodes together.
    pub pages: u64,
    /// Does it name nodes?
    pub is_by_node: bool,
}

/// Those of sysfs.conf and tmpfiles, then those of units and of rc.local, then those of PF_RING, then those of tuned, then those of the next boot; the first one for a size holds.
///
/// # Errors
/// If a file may not be read, or commands may set a pool to what only a run shows.
pub(super) fn read(
    source: &Source,
    next: &Result<Option<BootLine>, Unread>,
    units: &Result<Vec<Written>, Unread>,
    topology: &Topology,
    refused: &mut Vec<Unread>,
) -> Result<Vec<PoolLine>, Unread> {
    has_configuration(source)?;
    let mut summed = |all: &[Setting]| there(all.iter().filter_map(PoolWrite::of).collect(), topology, refused);
    let mut lines = summed(&written::sysfs_conf(source)?);
    lines.extend(summed(&written::tmpfiles(source)?));
    let units = units.as_ref().map_err(Clone::clone)?;
    let script = first(source, RC_LOCAL.map(str::to_owned))?.map(|(path, text)| script::written(&path, &[], &text, 0));
    for written in units.iter().chain(&script) {
        lines.extend(summed(written.known(Unresolved::may_be_pool)?));
    }
    lines.extend(there(pf_ring(source)?, topology, refused));
    for (path, text) in profiles(source)? {
        lines.extend(in_profile(&path, &text, topology, refused));
    }
    let next = next.as_ref().map_err(Clone::clone)?;
    lines.extend(next.iter().flat_map(|next| at_boot(&next.place, &next.boot)));
    Ok(lines)
}

/// Where it is in both places, one is a link to the other.
pub(super) const RC_LOCAL: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];

fn pf_ring(source: &Source) -> Result<Vec<PoolWrite>, Unread> {
    taken(
        source,
        ["/etc/pf_ring/hugepages.conf".to_owned()],
        &['#'],
        PoolWrite::of_pf_ring,
    )
}

/// Memory that the allocator of Nitro enclaves takes whenever it starts, in pages of any size.
pub(super) fn enclaves(source: &Source) -> Option<Setting> {
    let path = "/etc/nitro_enclaves/allocator.yaml";
    let text = content(source, path).ok()??;
    let mut lines = said(path, &text, &['#']);
    lines.find_map(|line| {
        let (name, value) = line.text.trim_start_matches("- ").split_once(':')?;
        (name.trim() == "memory_mib").then(|| line.setting(name.trim(), value.trim()))
    })
}

/// The files of the pool of the default size, and the settings.
const OF_DEFAULT: [&str; 4] = [
    sysctl_files::POOL,
    sysctl_files::BY_POLICY,
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/nr_hugepages_mempolicy",
];

/// A value for the pool of the default size, or for a pool's file.
fn of_pool(setting: &Setting) -> Option<PoolLine> {
    if !OF_DEFAULT.contains(&setting.name.as_str()) {
        return of_file(setting);
    }
    Some(PoolLine {
        place: setting.place.clone(),
        size: None,
        pages: setting.value.parse().ok()?,
        is_by_node: false,
    })
}

/// `.../hugepages/hugepages-1048576kB/nr_hugepages` and its number.
fn of_file(setting: &Setting) -> Option<PoolLine> {
    let (size, file) = file_of_pool(&setting.name)?;
    ["nr_hugepages", "nr_hugepages_mempolicy"]
        .contains(&file)
        .then_some(())?;
    Some(PoolLine {
        place: setting.place.clone(),
        size: Some(size),
        pages: setting.value.parse().ok()?,
        is_by_node: setting.name.contains(OF_NODES),
    })
}

/// A write of a pool's count by a script: it sets the count, and adds nothing to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWrite {
    /// What it comes to, and where.
    pub line: PoolLine,
    /// The node of which alone it is the count.
    pub node: Option<u32>,
    /// Programs that the script started before.
    pub after: usize,
}

impl PoolWrite {
    /// A value for vm.nr_hugepages, or for a pool's file.
    pub(super) fn of(setting: &Setting) -> Option<Self> {
        let line = of_pool(setting)?;
        let node = match setting.name.split_once("/node/node") {
            Some((_, rest)) => Some(rest.split_once('/')?.0.parse().ok()?),
            None => None,
        };
        let after = 0;
        Some(Self { line, node, after })
    }

    pub(super) fn of_pf_ring(line: &Line<'_>) -> Option<Self> {
        let (node, pages) = written::of_pf_ring(line)?;
        let line = PoolLine {
            place: line.place(),
            size: None,
            pages,
            is_by_node: true,
        };
        let (node, after) = (Some(node), 0);
        Some(Self { line, node, after })
    }

    /// Why it sets nothing, if the machine lacks its node.
    pub(super) fn stray(&self, topology: &Topology) -> Option<Unread> {
        let node = self.node.filter(|node| topology.lacks(*node))?;
        let why = format!(
            "this machine has no NUMA node {node} (/sys/devices/system/node/node{node}): the write fails, and its {} pages are not requested. \
             Leave it out, or request them on a node that the machine has",
            self.line.pages
        );
        Some(Unread::new(Cause::Garbled, &self.line.place, why))
    }

    /// The pages of each size after all writes: the last one for the whole pool, or those of nodes that follow it.
    pub fn left(writes: &[Self], default: Bytes) -> Vec<PoolLine> {
        Self::by_size(writes, Some(default))
    }

    /// The same where the default size may not be known.
    fn by_size(writes: &[Self], default: Option<Bytes>) -> Vec<PoolLine> {
        // Of each size the number of its first write, and of each node the last write.
        let mut pools: BTreeMap<Option<Bytes>, (usize, Held<'_>)> = BTreeMap::new();
        for (at, write) in writes.iter().enumerate() {
            let size = write.line.size.or(default);
            let (_, held) = pools.entry(size).or_insert_with(|| (at, BTreeMap::new()));
            match write.node {
                Some(_) => {
                    held.remove(&None);
                }
                None => held.clear(),
            }
            held.insert(write.node, (at, write));
        }
        let sum = |(size, (first, held)): (Option<Bytes>, (usize, Held<'_>))| {
            let (_, last) = held.values().max_by_key(|(at, _)| *at)?;
            let pages = held.values().map(|(_, write)| write.line.pages);
            let line = PoolLine {
                place: last.line.place.clone(),
                size,
                pages: pages.fold(0, u64::saturating_add),
                is_by_node: held.keys().any(Option::is_some),
            };
            Some((first, line))
        };
        let mut lines: Vec<(usize, PoolLine)> = pools.into_iter().filter_map(sum).collect();
        lines.sort_by_key(|(first, _)| *first);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Writes that hold, by node, each with its number.
type Held<'a> = BTreeMap<Option<u32>, (usize, &'a PoolWrite)>;

/// The lines of one size, which may be those of several nodes, as one, without those of nodes that the machine lacks.
fn there(mut writes: Vec<PoolWrite>, topology: &Topology, refused: &mut Vec<Unread>) -> Vec<PoolLine> {
    refused.extend(writes.iter().filter_map(|write| write.stray(topology)));
    writes.retain(|write| write.stray(topology).is_none());
    PoolWrite::by_size(&writes, None)
}

/// `[sysfs]` at run time, `[bootloader] cmdline...=` at the next boot. `[sysctl]` is one of the sysctl settings.
fn in_profile(path: &str, text: &str, topology: &Topology, refused: &mut Vec<Unread>) -> Vec<PoolLine> {
    let (mut lines, mut by_file) = (Vec::new(), Vec::new());
    for set in sets(path, text) {
        match set {
            Set::Boot(place, words) => lines.extend(at_boot(&place, &Boot::parse(words, None))),
            Set::File(file) => by_file.push(file),
            _ => {}
        }
    }
    refused.extend(by_file.iter().filter_map(written::refused));
    let writes = by_file.iter().filter_map(PoolWrite::of).collect();
    lines.extend(there(writes, topology, refused));
    lines
}

fn at_boot(place: &str, boot: &Boot) -> Vec<PoolLine> {
    let lines = boot.pools.iter().map(|pool| PoolLine {
        place: place.to_owned(),
        size: pool.size.or(boot.default_size),
        pages: pool.pages.total(),
        is_by_node: matches!(pool.pages, PoolRequest::ByNode(_)),
    });
    lines.collect()
}

/// Is it the file of a pool on one node, in pages of that size?
pub fn is_of_node(setting: &Setting, size: Bytes) -> bool {
    of_file(setting).is_some_and(|line| line.is_by_node && line.size == Some(size))
}

/// What these places request of a size, where `default` is the kernel's default size.
pub fn requested(lines: &[PoolLine], size: Bytes, default: Option<Bytes>) -> Option<&PoolLine> {
    lines.iter().find(|line| line.size.or(default) == Some(size))
}
