//! Demands that the pools cannot meet, and what helps.

use std::collections::BTreeMap;

use host::CpuList;
use model::Bytes;
use model::findings::Confidence;
use programs::Evidence;
use programs::config::Setting;
use programs::config::given::FileKind;

use super::room::{Part, Room, Spare};
use super::taken::{Taken, unbound};
use super::{Demand, Other, Requests, demands, way};
use crate::facts::pages_for;
use crate::kept::keep_files;
use crate::remedy::{Count, Need, Remedy, fit_together};
use crate::rule::{Case, Reason};

/// A demand that the pool cannot meet.
pub(crate) struct Shortage<'e> {
    evidence: &'e Evidence,
    pub(crate) demand: Demand,
    pub(crate) page: Bytes,
    pub(crate) need: u64,
    /// Pages that are left after those before it.
    pub(crate) left: u64,
    /// What all demands on the pool ask for together.
    all: Together,
    /// The pool, or the part of it that counts.
    part: Part,
    /// Does it start if the pages in use are its own, which is not known?
    is_open: bool,
    /// The page size of programs that name none.
    default: Bytes,
    /// Does the pool come with the kernel's start?
    pub(crate) is_at_boot: bool,
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

    /// Do the files request as many pages as all demands need, of which the machine has fewer and can have all?
    fn is_met_by(&self, requests: &Requests) -> bool {
        let nodes = self.demand.nodes.as_ref().map(|nodes| (nodes, self.part.pages));
        let Some(asked) = requests.by_size.get(&self.page) else {
            return false;
        };
        let pages = match nodes {
            Some((nodes, _)) => asked.on(nodes, self.evidence),
            None => asked.pages,
        };
        let need = nodes.map_or(0, |(_, has)| has).saturating_add(self.all.pages);
        pages >= need && fit_together(self.evidence, &BTreeMap::from([(self.page, asked.pages)]), true)
    }

    /// The size of smaller pages whose pool has room for it.
    pub(crate) fn smaller_page(&self) -> Option<Bytes> {
        self.other.map(|(size, _)| size).filter(|size| *size < self.page)
    }

    /// A case with what both sides say.
    pub(crate) fn case(&self, consequence: String) -> Case {
        let (size, part) = (self.page.exact(), &self.part);
        let confidence = if self.is_open {
            Confidence::Low
        } else {
            Confidence::Medium
        };
        let case = Case::new(confidence, consequence)
            .seen_line(&self.demand.seen)
            .wants(self.page);
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
            let pages = Count::of(self.page, pages);
            let text = format!(
                "{or}request {pages} pages of {size} or more{of_which}{all}: {}",
                way::ask(self.evidence, self.page, self.default, pages)
            );
            return Remedy::new(text).need(Need::Files(self.page, self.all.pages));
        };
        let place = match (self.evidence.has_machine, nodes.iter().count()) {
            (true, 1) => {
                let (file, all) = (&self.part.file, self.part.pages.saturating_add(pages));
                let keep = keep_files(self.evidence, &[(file.clone(), all)]);
                format!(": echo {all} > {file}; to keep it: {keep}")
            }
            (true, _) => " (nr_hugepages of those nodes)".to_owned(),
            (false, _) => format!(" in {}", self.part.file),
        };
        Remedy::new(format!("add {pages} pages of {size} on node {nodes}{place}"))
            .need(Need::Files(self.page, self.part.whole.saturating_add(pages)))
    }

    /// `needs 2048 pages of 2M, and the pool has 100 (40 left beside the others)`.
    pub(crate) fn text(&self) -> String {
        let unless = match self.is_open {
            true => "; the others may be its own if it runs already: what holds them could not be read",
            false => "",
        };
        let beside = match self.part.pages.saturating_sub(self.left) {
            0 => String::new(),
            taken if taken == self.part.taken => format!(", {} of them free", self.left),
            _ => format!(", {} of them left after other demands", self.left),
        };
        let (need, size, pool) = (self.need, self.page.exact(), self.part.pages);
        if let Some(nodes) = &self.demand.nodes {
            return format!(
                "needs at least {need} pages of {size} on node {nodes}, and the pool has {pool} there{beside}{unless}"
            );
        }
        format!("needs at least {need} pages of {size}, and the pool has {pool}{beside}{unless}")
    }
}

/// All demands in their turn: those that are bound to nodes first, as the others take what is left on any node.
fn in_turn<'e>(evidence: &'e Evidence, room: &Room) -> (Vec<Demand>, Taken<'e>) {
    let mut demands = demands(evidence, room);
    // A node that the machine lacks is named as a refused line (I01), and more pages do not help.
    let topology = &evidence.snapshot.topology;
    let is_nowhere = |nodes: &CpuList| !nodes.is_empty() && nodes.iter().all(|node| topology.lacks(node));
    demands.retain(|demand| !demand.nodes.as_ref().is_some_and(is_nowhere));
    demands.sort_by_key(|demand| demand.nodes.is_none());
    let taken = Taken::of(evidence, &demands);
    let is_by_node = |demand: &Demand| {
        let page = demand.page.unwrap_or(room.default);
        Part::of(room, page, demand.nodes.as_ref(), &taken).is_some()
    };
    demands.dedup_by(|next, demand| !is_by_node(demand) && !is_by_node(next) && demand.takes_in(next, room.default));
    (demands, taken)
}

/// Demands that the pools cannot meet, nor will meet once the files themselves are applied. Fails if a demand of that kind has no known size.
pub(crate) fn shortages(evidence: &Evidence, asker: FileKind) -> Result<Vec<Shortage<'_>>, Reason> {
    let mut short = short_now(evidence, asker)?;
    if evidence.has_machine && !short.is_empty() {
        let requests = Requests::of(evidence)?;
        short.retain(|short| !short.is_met_by(&requests));
    }
    Ok(short)
}

/// Who needs pages that the files request and the machine does not have yet, with where that is written.
pub(crate) fn waiting(evidence: &Evidence, requests: &Requests) -> Vec<(Bytes, Demand)> {
    let short = ASKERS.iter().filter_map(|asker| short_now(evidence, *asker).ok());
    let met = short.flatten().filter(|short| short.is_met_by(requests));
    met.map(|short| (short.page, short.demand)).collect()
}

/// What asks for pages.
const ASKERS: [FileKind; 7] = [
    FileKind::Libvirt,
    FileKind::Pod,
    FileKind::Postgres,
    FileKind::Mysql,
    FileKind::Oracle,
    FileKind::Java,
    FileKind::Dpdk,
];

/// Demands that the pools cannot meet as they are, those before them served first.
fn short_now(evidence: &Evidence, asker: FileKind) -> Result<Vec<Shortage<'_>>, Reason> {
    let room = Room::with(evidence, asker != FileKind::Pod)?;
    let (demands, taken) = in_turn(evidence, &room);
    let held = |page: Bytes| match asker {
        FileKind::Pod if taken.is_unread() => Room::outside_pods(evidence, page),
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
        let part = part.unwrap_or_else(|| Part::whole(&room, page, held(page)));
        short.push(Shortage {
            is_open: taken.is_unread() && left.saturating_add(part.taken) >= need,
            evidence,
            demand: Demand { nodes, ..demand },
            page,
            need,
            left,
            all: Together::default(),
            part,
            default: room.default,
            is_at_boot: way::is_at_boot(evidence, page, room.default),
            other,
            unbound,
        });
    }
    Ok(short.into_iter().map(|short| short.together(&spare)).collect())
}
