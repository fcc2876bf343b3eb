//! The hugetlb pages that files request, against the pools of the files or of the machine.

mod asked;
mod requests;
mod room;
mod shortage;
mod taken;
mod way;

use std::collections::BTreeMap;

use host::CpuList;
use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::given::{FileKind, Guest};
use programs::config::{Given, Setting};

use crate::facts::pages_for;
use crate::rule::Reason;
pub(super) use asked::{
    demands, demands_of, dpdk_demand, is_no_hugetlbfs, java_demand, make_no_segments, mysql_demand, postgres, who,
};
pub(super) use requests::{Requested, Requests};
pub(super) use room::Room;
pub(super) use shortage::{Shortage, shortages, waiting};
use taken::Taken;
pub(super) use taken::{programs_of_files, runs_by_proxmox};

/// A program that is configured to use hugetlb pages.
pub(super) struct Demand {
    pub(super) asker: FileKind,
    /// Its name, for users.
    pub(super) who: String,
    /// Where it is written.
    pub(super) seen: Setting,
    /// The page size; `None` is the default size.
    pub(super) page: Option<Bytes>,
    /// Does it fail, rather than fall back to base pages?
    pub(super) strict: bool,
    /// At least so much.
    pub(super) bytes: Result<Bytes, Reason>,
    /// The nodes that its pages have to be on.
    pub(super) nodes: Option<CpuList>,
    /// What distinguishes it from others of its kind: names of settings and their values.
    pub(super) marks: Vec<(&'static str, String)>,
    /// Pages that it takes beyond those bytes.
    pub(super) beyond: u64,
    /// Where a program that runs shows them.
    pub(super) shown: Option<Setting>,
    /// How it needs fewer pages.
    pub(super) fewer: Option<String>,
    /// How it gets pages of another size than the default one.
    pub(super) other: Other,
}

/// How a program gets pages of another size.
#[derive(Clone, Copy)]
pub(super) enum Other {
    None,
    /// By a setting.
    Named(fn(Bytes) -> String),
    /// It tries all sizes for its largest mapping, which is so large.
    ByItself(Bytes),
    /// It does not, and each part of its memory falls back alone.
    InParts {
        /// Pages of one.
        each: u64,
        parts: u64,
    },
}

impl Demand {
    /// One of so much in pages of the default size, which falls back where it gets none.
    fn new(asker: FileKind, who: String, seen: Setting, bytes: Result<Bytes, Reason>) -> Self {
        Self {
            asker,
            who,
            seen,
            page: None,
            strict: false,
            bytes,
            nodes: None,
            marks: Vec::new(),
            beyond: 0,
            shown: None,
            fewer: None,
            other: Other::None,
        }
    }

    /// The size of another pool that has room for one which names no size, for a JVM or for a guest. A JVM takes pages for its tables
    /// and code there too.
    fn roomier(&self, page: Bytes, left: &BTreeMap<Bytes, u64>) -> Option<Bytes> {
        let is_guest = self.asker == FileKind::Libvirt;
        let may_change = is_guest || self.asker == FileKind::Java || self.page.is_none();
        let bytes = self.bytes.as_ref().ok().filter(|_| may_change)?.0;
        let bytes = match (self.other, self.asker) {
            (Other::ByItself(largest), _) => largest.0,
            (_, FileKind::Java) => bytes.saturating_add(bytes / 16).saturating_add(Bytes::mib(256).0),
            _ => bytes,
        };
        let is_whole = |size: &Bytes| !is_guest || bytes.is_multiple_of(size.0.max(1));
        let has_room = |(size, pages): &(&Bytes, &u64)| pages.saturating_mul(size.0) >= bytes && is_whole(size);
        let mut others = left.iter().filter(|(size, _)| **size != page);
        others.find(has_room).map(|(size, _)| *size)
    }

    /// That size, with the pages that are left of it. A guest takes only what is free now, though it may run already.
    fn elsewhere(&self, evidence: &Evidence, page: Bytes, left: &BTreeMap<Bytes, u64>) -> Option<(Bytes, u64)> {
        let size = self.roomier(page, left)?;
        let left = left.get(&size).copied().unwrap_or(0);
        if self.asker != FileKind::Libvirt {
            return Some((size, left));
        }
        let free = evidence.snapshot.pool(size).and_then(Pool::available);
        let free = free.map_or(left, |free| free.min(left));
        let bytes = self.bytes.as_ref().ok()?.0;
        (free.saturating_mul(size.0) >= bytes).then_some((size, free))
    }

    /// Does it take pages of that other pool by itself?
    fn helps_itself(&self, other: Option<(Bytes, u64)>, left: &mut BTreeMap<Bytes, u64>) -> bool {
        let (Some((size, _)), Other::ByItself(largest)) = (other, self.other) else {
            return false;
        };
        let spare = left.entry(size).or_default();
        *spare = spare.saturating_sub(pages_for(largest, size));
        true
    }

    /// Takes in a part of the same guest for other nodes: the guest starts with all of its parts or not at all.
    fn takes_in(&mut self, part: &Self, default: Bytes) -> bool {
        let are_guests = self.asker == FileKind::Libvirt && part.asker == FileKind::Libvirt;
        let is_same = self.who == part.who && self.seen.place == part.seen.place && self.page == part.page;
        let is_part = are_guests && is_same && self.nodes != part.nodes;
        let (true, Ok(own), Ok(more)) = (is_part, &self.bytes, &part.bytes) else {
            return false;
        };
        let page = Bytes(self.page.unwrap_or(default).0.max(1));
        let bytes: Bytes = [own, more].into_iter().map(|bytes| bytes.round_up_to(page)).sum();
        self.seen.value = bytes.to_string();
        self.bytes = Ok(bytes);
        true
    }
}

/// Guests of the files, with paths as what is mounted on the machine.
pub(super) fn guests(evidence: &Evidence) -> Vec<Guest> {
    guests_of(&evidence.files, evidence)
}

fn guests_of(given: &Given, evidence: &Evidence) -> Vec<Guest> {
    let mounts = evidence.snapshot.mounts.known().map(Vec::as_slice);
    given.guests.iter().map(|guest| guest.on(mounts)).collect()
}

/// Does a program of the files ask for pages of this size of the machine?
pub(super) fn is_asked_for(evidence: &Evidence, page: Bytes) -> Result<bool, Reason> {
    let room = Room::of(evidence)?;
    let is_it = |asked: Option<Bytes>| asked.unwrap_or(room.default) == page;
    Ok(sizes_asked(evidence, &room).into_iter().any(is_it))
}

/// Pages of that size that programs of the files ask for together, as far as they say how many.
pub(super) fn pages_asked(evidence: &Evidence, page: Bytes) -> u64 {
    let Ok(room) = Room::of(evidence) else { return 0 };
    let demands = demands(evidence, &room).into_iter();
    let own = demands.filter(|demand| demand.page.unwrap_or(room.default) == page);
    let pages = own.filter_map(|demand| Some(pages_for(demand.bytes.ok()?, page)));
    pages.fold(0, u64::saturating_add)
}

/// Do files start programs whose pages of this size have to be on some nodes?
pub(super) fn is_bound(evidence: &Evidence, page: Bytes) -> bool {
    let Ok(room) = Room::of(evidence) else { return false };
    let mut demands = demands(evidence, &room).into_iter();
    demands.any(|demand| demand.nodes.is_some() && demand.page.unwrap_or(room.default) == page)
}

/// Do files ask for pages, and each of them by its size?
pub(super) fn all_name_sizes(evidence: &Evidence, room: &Room) -> bool {
    let asked = sizes_asked(evidence, room);
    !asked.is_empty() && asked.iter().all(Option::is_some)
}

/// The page sizes that programs of the files ask for; `None` is the default one.
fn sizes_asked(evidence: &Evidence, room: &Room) -> Vec<Option<Bytes>> {
    let demands = demands(evidence, room).into_iter();
    // Proxmox VE fills the pools itself.
    let guests = guests(evidence);
    let of_guests = guests.iter().flat_map(Guest::hugetlb).map(|(_, asked)| asked);
    let of_vpp = evidence.files.vpp_pages();
    demands
        .map(|demand| demand.page)
        .chain(of_guests)
        .chain(of_vpp)
        .collect()
}

#[cfg(test)]
mod tests;
