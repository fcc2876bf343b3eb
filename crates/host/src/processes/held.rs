//! Pages of a hugetlb pool that no process maps: in files, in memfds, and in System V segments without an attached process.

use std::collections::BTreeSet;

use model::process::ProcessPages;
use model::{Bytes, Cause, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mapping::Mapping;
use super::smaps;
use crate::shm::{self, Segment};
use crate::snapshot::{Pool, Snapshot};
use crate::source::HUGETLB_FILES;
use crate::{Source, parse};

/// Who holds pages that no process maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// Bytes in use, of all pools.
    pub used: Bytes,
    /// Bytes that processes map; what they share counts once for each.
    pub mapped: Bytes,
    /// Who holds others, the largest first.
    pub holders: Vec<Holder>,
    /// Processes of which it could not be read what they map: they may map some of it.
    pub denied: u64,
}

/// One holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// What it is.
    pub kind: HolderKind,
    /// Path of the file, `/memfd:NAME`, or the id for `ipcrm -m`.
    pub name: String,
    /// Bytes that it holds.
    pub bytes: Bytes,
    /// Page size; `null` for a segment while several pools are in use.
    pub page: Option<Bytes>,
    /// Owner's user id.
    pub uid: u32,
    /// The process that has it open, or that made the segment; `null` if it is only a name in a mount.
    pub pid: Option<u32>,
    /// `false` for a segment that may as well be on base pages: the kernel does not say, and the pool's account does
    /// not prove it.
    pub sure: bool,
}

/// The sorts of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HolderKind {
    /// A file in a hugetlbfs mount.
    File,
    /// A memfd that some process has open.
    Memfd,
    /// A System V segment.
    Segment,
}

impl HolderKind {
    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memfd => "memfd",
            Self::Segment => "System V segment",
        }
    }
}

impl Held {
    /// Bytes of all holders.
    pub fn total(&self) -> Bytes {
        self.holders.iter().map(|holder| holder.bytes).sum()
    }
}

/// Looks for them; where no pool is in use there is nothing to look for. `processes` are all of the machine.
///
/// Unread if the pools are, or if a capture has no list of the files.
pub fn held_by_nobody(source: &Source, snapshot: &Snapshot, processes: &[ProcessPages]) -> Reading<Held> {
    snapshot.pools.as_ref().and_then(|pools| look(source, pools, processes))
}

fn look(source: &Source, pools: &[Pool], processes: &[ProcessPages]) -> Result<Held, Unread> {
    let used: Vec<(Bytes, u64)> = pools
        .iter()
        .filter_map(|pool| Some((pool.size, pool.used()?.saturating_mul(pool.size.0))))
        .filter(|(_, used)| *used > 0)
        .collect();
    let maps: Vec<Option<Bytes>> = processes
        .iter()
        .map(|process| process.hugetlb.or_if_absent(Bytes(0)).ok())
        .collect();
    let mut held = Held {
        used: used.iter().map(|(_, used)| Bytes(*used)).sum(),
        mapped: maps.iter().flatten().copied().sum(),
        denied: maps.iter().filter(|bytes| bytes.is_none()).count() as u64,
        ..Held::default()
    };
    if used.is_empty() {
        return Ok(held);
    }
    let files = files(source)?;
    let mapped = Mapped::read(source, processes, !files.is_empty());
    held.denied = held.denied.max(mapped.denied);
    let unmapped = files
        .into_iter()
        .filter(|(inode, holder)| holder.bytes.0 > 0 && !mapped.inodes.contains(inode));
    held.holders = unmapped.map(|(_, holder)| holder).collect();
    held.holders.extend(segments(source, &used, &held)?);
    held.holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    Ok(held)
}

/// Device and inode, which a mapping shows too.
type Inode = (String, u64);

/// What processes map from files.
struct Mapped {
    inodes: BTreeSet<Inode>,
    denied: u64,
}

impl Mapped {
    fn read(source: &Source, processes: &[ProcessPages], wanted: bool) -> Self {
        let mut mapped = Self {
            inodes: BTreeSet::new(),
            denied: 0,
        };
        for process in processes.iter().filter(|_| wanted) {
            let read = smaps::each_named(source, process.pid, &mut |mapping| {
                mapped.take(mapping);
                Ok(())
            });
            if let Err(why) = read {
                mapped.denied += u64::from(why.unread == Cause::Denied);
            }
        }
        mapped
    }

    fn take(&mut self, mapping: &Mapping<&[u8]>) {
        if mapping.inode != 0 {
            let device = String::from_utf8_lossy(mapping.device).into_owned();
            self.inodes.insert((device, mapping.inode));
        }
    }
}

/// A file that several processes have open is one holder, named by the first.
fn files(source: &Source) -> Result<Vec<(Inode, Holder)>, Unread> {
    let text = source.text(HUGETLB_FILES).into_result()?;
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (inode, holder) = file(line).ok_or_else(|| {
            let wanted = "KIND PAGE BYTES DEVICE INODE UID PID PATH";
            parse::garbled(HUGETLB_FILES, index, "the line", wanted, line)
        })?;
        if seen.insert(inode.clone()) {
            files.push((inode, holder));
        }
    }
    Ok(files)
}

fn file(line: &str) -> Option<(Inode, Holder)> {
    let mut words = line.splitn(8, ' ');
    let kind = match words.next()? {
        "file" => HolderKind::File,
        "memfd" => HolderKind::Memfd,
        _ => return None,
    };
    let page = Bytes(words.next()?.parse().ok()?);
    let bytes = Bytes(words.next()?.parse().ok()?);
    let inode = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let uid = words.next()?.parse().ok()?;
    let pid: u32 = words.next()?.parse().ok()?;
    let holder = Holder {
        kind,
        name: words.next()?.to_owned(),
        bytes,
        page: Some(page),
        uid,
        pid: Some(pid).filter(|&pid| pid > 0),
        sure: true,
    };
    Some((inode, holder))
}

/// Segments without a mapping. The kernel does not show which are backed by huge pages: they have whole pages of a pool, and
/// they are sure if the pools' accounts have room for all of them beside what processes map and files hold.
fn segments(source: &Source, used: &[(Bytes, u64)], held: &Held) -> Result<Vec<Holder>, Unread> {
    let segments = shm::read(source).or_if_absent(Vec::new())?;
    let in_whole_pages = |segment: &&Segment| {
        let pages = used.iter().map(|(page, _)| page.0);
        segment.attached == 0
            && segment.resident.0 > 0
            && pages.into_iter().any(|page| segment.resident.0.is_multiple_of(page))
    };
    let orphans: Vec<&Segment> = segments.iter().filter(in_whole_pages).collect();
    let all: Bytes = orphans.iter().map(|orphan| orphan.resident).sum();
    let left = held.used.0.saturating_sub(held.mapped.0).saturating_sub(held.total().0);
    let page = match used {
        [(page, _)] => Some(*page),
        _ => None,
    };
    let holder = |segment: &Segment| Holder {
        kind: HolderKind::Segment,
        name: segment.id.to_string(),
        bytes: segment.resident,
        page,
        uid: segment.uid,
        pid: Some(segment.creator).filter(|&pid| pid > 0),
        sure: all.0 <= left,
    };
    Ok(orphans.into_iter().map(holder).collect())
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
