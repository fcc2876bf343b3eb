//! The hugetlb pages that files request, against the pools of the files or of the machine.

mod asked;
mod room;
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
use crate::remedy::{Need, Remedy};
use crate::rule::{Case, Reason};
pub(super) use asked::{
    demands, demands_of, dpdk_demand, java_demand, make_no_segments, mysql_demand, no_mmap, postgres, who,
};
pub(super) use room::Room;
use room::{Part, Spare};
pub(super) use taken::runs_by_proxmox;
use taken::{Taken, unbound};

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

    /// The size of another pool that has room for one which names no size, or for a guest. A JVM takes pages for its tables and code there too.
    fn roomier(&self, page: Bytes, left: &BTreeMap<Bytes, u64>) -> Option<Bytes> {
        let is_guest = self.asker == FileKind::Libvirt;
        let bytes = self.bytes.as_ref().ok().filter(|_| is_guest || self.page.is_none())?.0;
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

/// A demand that the pool cannot meet.
pub(super) struct Shortage<'e> {
    evidence: &'e Evidence,
    pub(super) demand: Demand,
    pub(super) page: Bytes,
    pub(super) need: u64,
    /// Pages that are left after those before it.
    pub(super) left: u64,
    /// What all demands on the pool ask for together.
    all: Together,
    /// The pool, or the part of it that counts.
    part: Part,
    /// The page size of programs that name none.
    default: Bytes,
    /// Does the pool come with the kernel's start?
    pub(super) is_at_boot: bool,
    /// The size of another pool that has room for it, and the pages that are left of it.
    other: Option<(Bytes, u64)>,
    /// Where else the pages are that its own nodes lack, and how it gets them.
    unbound: Option<String>,
}

/// What demands on one pool ask for together, those that it serves and those that it does not.
#[derive(Default)]
struct Together {
    /// Pages of the whole pool, or those that its nodes lack.
    pages: u64,
    /// Pages among them that demands take beyond theirs, and that the pool does not have.
    beyond: u64,
    /// Where the others are written, those served first.
    others: Vec<Setting>,
    /// Are there others that are not served?
    is_for_several: bool,
}

impl Shortage<'_> {
    /// With what is known once each demand had its turn.
    fn together(mut self, spare: &Spare) -> Self {
        let (page, part) = (self.page, &self.part);
        self.all = Together {
            pages: match &self.demand.nodes {
                Some(_) => spare.lacking(page, &part.nodes),
                None => spare.asked(page, part.pages),
            },
            beyond: spare.owed.get(&page).copied().unwrap_or(0),
            others: spare.others(page, &self.demand.seen),
            is_for_several: spare.unserved(page) > self.need,
        };
        self
    }

    /// A case with what both sides say.
    pub(super) fn case(&self, consequence: String) -> Case {
        let (size, part) = (self.page.exact(), &self.part);
        let case = Case::likely(consequence).seen_line(&self.demand.seen);
        let case = case.seen(&part.file, format!("pages of {size}"), part.pages);
        let case = case.with(self.demand.shown.as_ref(), Case::seen_line);
        let others = &self.all.others;
        let case = others.iter().take(4).fold(case, Case::seen_line);
        let in_use = (!others.is_empty() && part.taken > 0).then_some(part.taken);
        let case = case.with(in_use, |case, pages| {
            case.seen(&part.file, "of them in use by others", pages)
        });
        // What needs no reboot comes first.
        let (named, remedy) = (self.named(), self.remedy());
        let case = match named {
            Some(named) if self.is_at_once() => case.fix(named).remedy(remedy.instead()),
            named => case.remedy(remedy).instead(named),
        };
        case.instead(self.unbound.as_deref())
            .instead(self.demand.fewer.as_deref())
            .instead(self.smaller())
            .otherwise("give it less memory: the machine has no room for such a pool beside the other findings")
    }

    /// What fits beside those that run, where they alone are in its way.
    fn smaller(&self) -> Option<String> {
        let is_sized = matches!(self.demand.asker, FileKind::Pod | FileKind::Libvirt) && self.demand.nodes.is_none();
        let taken = self.part.taken;
        let by_running = taken > 0 && self.part.pages.saturating_sub(self.left) == taken;
        let free = Bytes(self.page.0.saturating_mul(self.left));
        (is_sized && by_running && free.0 > 0)
            .then(|| format!("or give it {free} or less, which is free now, or stop another that holds pages"))
    }

    /// How it asks for the pages of another pool, which has room for it.
    fn named(&self) -> Option<String> {
        let (Some((size, left)), Other::Named(setting)) = (self.other, self.demand.other) else {
            return None;
        };
        let (setting, name) = (setting(size), size.exact());
        if self.demand.asker != FileKind::Libvirt {
            return Some(format!(
                "or name the size: {setting}; the pool of {name} has room for it"
            ));
        }
        let pages = self.demand.bytes.as_ref().ok()?.0 / size.0.max(1);
        let or = if self.is_at_once() { "without a reboot" } else { "or" };
        Some(format!(
            "{or}: {setting}: it needs {pages} pages of {name}, and {left} are free"
        ))
    }

    /// Is there another pool for this guest, where its own one needs a reboot?
    fn is_at_once(&self) -> bool {
        let is_named = matches!(self.demand.other, Other::Named(_)) && self.other.is_some();
        is_named && self.demand.asker == FileKind::Libvirt && self.is_at_boot
    }

    /// A larger pool, or a larger part of it on the nodes that count: for all demands, as each alone would take what another needs.
    fn remedy(&self) -> Remedy {
        let (size, pages) = (self.page.exact(), self.all.pages);
        let Some(nodes) = &self.demand.nodes else {
            let or = if self.is_at_once() { "or " } else { "" };
            let of_which = match (self.demand.asker, self.all.beyond) {
                (FileKind::Postgres, _) => " (the least, for version 15)".to_owned(),
                (FileKind::Mysql, _) => " (the least that does)".to_owned(),
                (_, 0) => String::new(),
                (_, spare) => format!(" ({spare} of them to spare)"),
            };
            let all = match self.all.is_for_several {
                true => ", for all programs of these files together",
                false => "",
            };
            let text = format!(
                "{or}request {pages} pages of {size} or more{of_which}{all}: {}",
                way::ask(self.evidence, self.page, self.default, pages)
            );
            return Remedy::new(text).need(Need::Pool(self.page, pages));
        };
        let place = match self.evidence.has_machine {
            true => "(nr_hugepages of that node)".to_owned(),
            false => format!("in {}", self.part.file),
        };
        Remedy::new(format!("add {pages} pages of {size} on node {nodes} {place}"))
            .need(Need::Pool(self.page, self.part.whole.saturating_add(pages)))
    }

    /// `needs 2048 pages of 2M, and the pool has 100 (40 left beside the others)`.
    pub(super) fn text(&self) -> String {
        let beside = match self.part.pages.saturating_sub(self.left) {
            0 => String::new(),
            taken if taken == self.part.taken => format!(", {} of them free", self.left),
            _ => format!(", {} of them left after other demands", self.left),
        };
        let (need, size, pool) = (self.need, self.page.exact(), self.part.pages);
        if let Some(nodes) = &self.demand.nodes {
            return format!(
                "needs at least {need} pages of {size} on node {nodes}, and the pool has {pool} there{beside}"
            );
        }
        format!("needs at least {need} pages of {size}, and the pool has {pool}{beside}")
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

/// All demands in their turn: those that are bound to nodes first, as the others take what is left on any node.
fn in_turn<'e>(evidence: &'e Evidence, room: &Room) -> (Vec<Demand>, Taken<'e>) {
    let mut demands = demands(evidence, room);
    demands.sort_by_key(|demand| demand.nodes.is_none());
    let taken = Taken::of(evidence, &demands);
    let is_by_node = |demand: &Demand| {
        let page = demand.page.unwrap_or(room.default);
        Part::of(room, page, demand.nodes.as_ref(), &taken).is_some()
    };
    demands.dedup_by(|next, demand| !is_by_node(demand) && !is_by_node(next) && demand.takes_in(next, room.default));
    (demands, taken)
}

/// Demands that the pools cannot meet, those before them served first. Fails if a demand of that kind has no known size.
pub(super) fn shortages(evidence: &Evidence, asker: FileKind) -> Result<Vec<Shortage<'_>>, Reason> {
    let room = Room::with(evidence, asker != FileKind::Pod)?;
    let (demands, taken) = in_turn(evidence, &room);
    let held = |page: Bytes| match asker {
        FileKind::Pod => Room::outside_pods(evidence, page).max(taken.pages(page)),
        _ => taken.pages(page),
    };
    let (mut spare, mut short) = (Spare::of(&room, held), Vec::new());
    for demand in demands {
        let page = demand.page.unwrap_or(room.default);
        let need = match &demand.bytes {
            Ok(bytes) => pages_for(*bytes, page),
            Err(reason) if demand.asker == asker => return Err(reason.clone()),
            Err(_) => continue,
        };
        let part = Part::of(&room, page, demand.nodes.as_ref(), &taken);
        let other = demand.elsewhere(evidence, page, &spare.left).filter(|_| part.is_none());
        if demand.helps_itself(other, &mut spare.left) {
            continue;
        }
        let Err(left) = spare.serve(&demand, page, part.as_ref(), need) else {
            continue;
        };
        if demand.asker != asker {
            continue;
        }
        let nodes = demand.nodes.filter(|_| part.is_some());
        let promised = |node: u32| spare.by_node.get(&(page, node.to_string())).copied();
        let free = || taken.free_by_node(page, promised);
        let unbound = nodes.as_ref().and_then(|nodes| unbound(&free(), nodes, need));
        short.push(Shortage {
            evidence,
            demand: Demand { nodes, ..demand },
            page,
            need,
            left,
            all: Together::default(),
            part: part.unwrap_or_else(|| Part::whole(&room, page, held(page))),
            default: room.default,
            is_at_boot: way::is_at_boot(evidence, page, room.default),
            other,
            unbound,
        });
    }
    Ok(short.into_iter().map(|short| short.together(&spare)).collect())
}

#[cfg(test)]
mod tests;
