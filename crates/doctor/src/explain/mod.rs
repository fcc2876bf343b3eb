//! What one program has of huge pages: its memory by part, what it asked for, why the rest is on base pages, what to do next. Pure.

mod account;
mod demand;
pub(crate) mod heap;
mod heap_file;
#[cfg(test)]
mod jvm_tests;
#[cfg(test)]
mod limit_tests;
mod mapped;
mod next;
mod parts;
mod step;
#[cfg(test)]
mod tests;

use host::processes::{Ground, Reason};
use host::snapshot::Feature;
use model::findings::Finding;
use model::{Bytes, Cause, Reading};
use programs::{Evidence, Kind, Program, Target};

use crate::facts::service;

pub use account::{Asked, HugetlbPages, InUse, Needs, OfProcess, Part, PartKind, PoolState, Usage, Why};
pub use heap::largest_heap;
pub use mapped::{Mapped, MappedFile, MappedSort};
pub(crate) use parts::is_chunk;
pub use step::{Command, Server, Step};

/// The account of one target. `evidence` holds that program alone.
pub fn usage(evidence: &Evidence, target: &Target) -> Usage {
    let main = &target.main;
    let kind = main.kind.known().copied().flatten();
    let page = page(evidence, target);
    let known_pools = evidence.snapshot.pools.known().map_or(&[][..], Vec::as_slice);
    let mut parts = parts::parts(target, kind, page);
    parts.iter_mut().for_each(|part| part.count_by_pool(known_pools));
    let pools: Vec<PoolState> = known_pools.iter().map(PoolState::of).collect();
    let hugetlb = main.pages.hugetlb.known().copied().filter(|bytes| bytes.0 > 0);
    let is_denied = is_denied(&parts);
    let in_use = in_use(is_denied, hugetlb, &parts);
    let mut why = not_from_pool(evidence, target, in_use, parts.first(), (page, &pools));
    let limited = demand::put_limit(target, parts.first(), &mut why);
    let why = with_thp(evidence, target, in_use, &parts, why);
    let findings = own_findings(evidence, target);
    let next = next::next(&next::State {
        target,
        kind,
        in_use,
        why: &why,
        parts: &parts,
        findings: &findings,
        is_denied,
        collapsed: collapsed(evidence),
        is_scanned: evidence.snapshot.kernel.has(Feature::PagemapScan) != Some(false),
        limited: limited.as_ref(),
    });
    Usage {
        resident: target.coverage(),
        mapped: Mapped::of(target, &Ground::new(&evidence.snapshot, &target.mounts)),
        hugetlb,
        of_process: target.asked.as_ref().map(of_process),
        counted: target.family.len() as u64 + 1,
        program: main.product().map(str::to_owned),
        pid: main.pid(),
        name: name(target),
        others: target.others.len() as u64,
        unit: service(main).map(str::to_owned),
        next,
        in_use,
        asked: demand::asked(evidence, target, kind, &parts),
        parts,
        pools,
        why,
        log: target.log.lines.clone(),
        log_cut: target.log.cut.clone(),
        findings,
    }
}

fn in_use(is_denied: bool, hugetlb: Option<Bytes>, parts: &[Part]) -> InUse {
    match (is_denied, hugetlb) {
        // The status of any process is there for all to read.
        (true, Some(_)) => InUse::Yes,
        _ => parts.first().map_or(InUse::Unknown, Part::in_use),
    }
}

/// That of its virtual machine, if it runs one.
fn name(target: &Target) -> String {
    let vm = target.vm.as_ref().and_then(|vm| vm.name.clone());
    vm.unwrap_or_else(|| target.main.pages.name.clone())
}

/// Why memory is not on pages of a pool, limits aside.
fn not_from_pool(
    evidence: &Evidence,
    target: &Target,
    in_use: InUse,
    part: Option<&Part>,
    (page, pools): (Option<Bytes>, &[PoolState]),
) -> Vec<Why> {
    let mut why = match in_use {
        InUse::Yes => Vec::new(),
        _ => demand::why(target, part, pools),
    };
    why.extend(demand::lowered(target).or_else(|| demand::no_room_to_grow(target, page, pools)));
    demand::put_tried_first(evidence, target, &mut why);
    if let Some(barred) = demand::barred(evidence, target, &why) {
        why.insert(0, barred);
    }
    why
}

fn collapsed(evidence: &Evidence) -> Option<Bytes> {
    let snapshot = &evidence.snapshot;
    let page = snapshot.pmd_page().known().copied()?;
    (snapshot.kernel.has(Feature::Collapse) != Some(false)).then_some(page)
}

fn is_denied(parts: &[Part]) -> bool {
    let why = parts.first().and_then(|part| part.backing.unread());
    why.is_some_and(|why| why.unread == Cause::Denied)
}

/// The size of pool pages that it asks for: a JVM takes one that does not exist for the default, and PostgreSQL does not.
fn page(evidence: &Evidence, target: &Target) -> Option<Bytes> {
    let jvm = target.main.jvm().ok().flatten();
    let asked = jvm.and_then(|jvm| jvm.named_page(|page| evidence.snapshot.pool(page).is_some()));
    let details = target.main.details.as_ref();
    let of_server = details.and_then(|details| programs::postgres::page(&details.settings));
    asked
        .or(of_server)
        .or(evidence.snapshot.memory.get("Hugepagesize").known().copied())
}

/// Why memory is on base pages. MariaDB switches THP off for itself, which is no reason for memory that is to come from a pool.
fn with_thp(evidence: &Evidence, target: &Target, in_use: InUse, parts: &[Part], mut why: Vec<Why>) -> Vec<Why> {
    let is_mysql = target.main.kind.known() == Some(&Some(Kind::Mysql));
    if is_mysql && (in_use == InUse::Yes || !why.is_empty()) {
        return why;
    }
    let ground = Ground::new(&evidence.snapshot, &target.mounts);
    why.extend(parts::thp_reasons(target, parts, &ground));
    if target.main.is_mariadb() && !parts.first().is_some_and(demand::is_served_by_thp) {
        let is_switch = |why: &Why| matches!(why, Why::Thp { reason, .. } if *reason == Reason::SwitchedOff);
        why.retain(|why| !is_switch(why));
    }
    why
}

/// What `doctor` finds in the program's own files of /proc.
fn own_findings(evidence: &Evidence, target: &Target) -> Vec<Finding> {
    let all = std::iter::once(&target.main).chain(&target.others);
    let own: Vec<String> = all.map(|program| program.file("")).collect();
    let mut findings = super::judge(evidence).findings;
    findings.retain(|finding| {
        let mut places = finding.evidence.iter().map(|proof| &proof.source);
        places.any(|place| own.iter().any(|own| place.starts_with(own)))
    });
    findings
}

/// The private memory of the one process that was asked for.
fn of_process(asked: &Program) -> OfProcess {
    OfProcess {
        pid: asked.pid(),
        name: asked.pages.name.clone(),
        backing: match asked.pages.without_segments() {
            Some((own, _)) => Reading::Known(own),
            None => asked.pages.backing.clone(),
        },
    }
}
