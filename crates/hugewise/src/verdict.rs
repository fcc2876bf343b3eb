//! The verdict of a checkup: which saving is certain, which page kind to choose, and what limits the use of huge pages.

use std::collections::BTreeSet;

use host::Snapshot;
use host::snapshot::Pool;
use model::headline::{Headline, PairedGain, Percent, Shows, WORTH};
use model::tlb::Tlb;
use model::verdict::{Choice, Coverage, Doubt, HostPages, Interval, Limits, PoolPages, Saved, Saving, User, Verdict};
use model::{Bytes, PageKind};

use crate::results::ps::ProcessRow;
use crate::results::{Doctor, ProcessList};
use scattered::Scattered;

mod next;
mod scattered;

/// Programs that are named.
const MOST_USERS: usize = 3;

/// Half width of an interval that is good enough, in points.
const ENOUGH: f64 = 2.0;
/// With fewer draws than this an interval is wide because of their number.
const FEW: u32 = 4;

/// What a verdict rests on.
pub(crate) struct Grounds<'a> {
    /// The measurement, or why there is none.
    pub headline: Result<&'a Headline, &'a str>,
    pub tlb: Option<&'a Tlb>,
    pub snapshot: &'a Snapshot,
    pub processes: Option<&'a ProcessList>,
    pub doctor: Option<&'a Doctor>,
    /// Programs that run here and have huge page settings of their own, the largest first.
    pub servers: &'a [Server],
    /// What a captured machine is read from; none of this machine.
    pub root: Option<&'a str>,
}

/// A program that has huge page settings of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// As `explain` takes it.
    pub name: String,
    pub pid: u32,
    pub runs_machines: bool,
}

/// The verdict, without its sentences.
pub(crate) fn verdict(grounds: &Grounds<'_>) -> Verdict {
    let (saving, choice) = match grounds.headline {
        Ok(headline) => measured(headline),
        Err(why) => (Saving::NotMeasured { why: why.to_owned() }, Choice::Unknown),
    };
    let limits = limits(grounds.snapshot, grounds.processes);
    let scattered = match saving {
        Saving::Saves { .. } => scattered::scattered(grounds),
        _ => Scattered::default(),
    };
    Verdict {
        next: next::next(grounds, &saving, &limits),
        scattered: scattered.lines,
        small_blocks: scattered.pieces,
        saving,
        choice,
        host: grounds.tlb.and_then(host),
        users: grounds.processes.map(users),
        limits,
        sentences: Vec::new(),
    }
}

fn host(tlb: &Tlb) -> Option<HostPages> {
    let backing = &tlb.host_backing;
    Some(HostPages {
        bytes: backing.verdict.parts()?,
        confidence: backing.confidence,
    })
}

/// Programs by name, each by its largest process: what processes of one name share would else count several times.
fn users(list: &ProcessList) -> Vec<User> {
    let of = |row: &ProcessRow| {
        let bytes = row.pages.backing.known()?.large();
        let (name, pid) = (row.pages.name.clone(), row.pages.pid);
        (bytes.0 > 0).then_some(User { name, pid, bytes })
    };
    let mut users: Vec<User> = list.processes.iter().filter_map(of).collect();
    users.sort_by_key(|user| std::cmp::Reverse(user.bytes));
    let mut names = BTreeSet::new();
    users.retain(|user| names.insert(user.name.clone()));
    users.truncate(MOST_USERS);
    users
}

fn measured(headline: &Headline) -> (Saving, Choice) {
    let against_base = || headline.gains.iter().filter(|gain| gain.against == PageKind::Base);
    let mut all: Vec<Saved> = against_base().filter_map(saved).collect();
    all.sort_by_key(|saved| (saved.kind, saved.bytes));
    let is_any = |of: &Saved, shows| all.iter().any(|other| other.kind == of.kind && other.shows == shows);
    // The kind that is easiest to set up of those that save, else the easiest of all: the order of kinds is fixed beforehand.
    let first = all.iter().find(|saved| is_any(saved, Shows::Saves));
    let Some(first) = first.or(all.first()) else {
        if against_base().any(|gain| !gain.draws.is_empty()) {
            let why = Doubt::FewDraws { draws: headline.draws };
            let (at, seconds) = (Vec::new(), None);
            return (Saving::CannotTell { at, why, seconds }, Choice::Unknown);
        }
        let why = headline.gains.iter().find_map(|gain| gain.not_measured.clone());
        return (Saving::NothingToCompare { why }, Choice::Unknown);
    };
    let kind = first.kind;
    let has = |shows| is_any(first, shows);
    let at: Vec<Saved> = all.iter().filter(|saved| saved.kind == kind).copied().collect();
    if has(Shows::Saves) {
        (Saving::Saves { at }, choice(headline, &all))
    } else if has(Shows::CannotTell) {
        let (why, seconds) = doubt(headline, kind);
        (Saving::CannotTell { at, why, seconds }, Choice::Unknown)
    } else if has(Shows::Costs) {
        (Saving::Costs { at }, Choice::NoDifference)
    } else {
        (Saving::NoDifference { at }, Choice::NoDifference)
    }
}

fn saved(gain: &PairedGain) -> Option<Saved> {
    let saved = gain.saved?;
    Some(Saved {
        kind: gain.kind,
        bytes: gain.bytes,
        shows: saved.shows(),
        saved,
        base_ns: gain.against_ns?,
        ns: gain.ns?,
    })
}

/// Why the widest interval of a kind is so wide, and how long it would take until it is not.
fn doubt(headline: &Headline, kind: PageKind) -> (Doubt, Option<f64>) {
    let is_asked = |gain: &&PairedGain| (gain.kind, gain.against) == (kind, PageKind::Base);
    let of_kind = headline.gains.iter().filter(is_asked);
    let widths = of_kind.filter_map(|gain| Some((gain, gain.saved?.half_width())));
    let widest = widths.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((gain, half)) = widest.filter(|_| headline.draws >= FEW) else {
        return (Doubt::FewDraws { draws: headline.draws }, None);
    };
    let least = gain.draws.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gain.draws.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let seconds = headline.seconds * (half / ENOUGH).powi(2);
    (Doubt::DrawsDiffer { least, most }, Some(seconds))
}

/// Which kind to choose: the one that is easiest to set up among those that take hardly more time than the best, at the largest
/// working set at which two kinds were measured.
fn choice(headline: &Headline, all: &[Saved]) -> Choice {
    let largest: Option<Bytes> = all.iter().map(|saved| saved.bytes).max();
    let there: Vec<&Saved> = all.iter().filter(|saved| Some(saved.bytes) == largest).collect();
    let best = there.iter().max_by(|a, b| a.saved.percent.total_cmp(&b.saved.percent));
    let Some(best) = best else { return Choice::Unknown };
    if there.len() == 1 {
        return Choice::Only { kind: best.kind };
    }
    // How much more time each kind that is easier to set up takes.
    let pairs = headline.gains.iter().filter(|gain| Some(gain.bytes) == largest);
    let rivals: Vec<(PageKind, Interval)> = pairs
        .filter(|gain| gain.kind == best.kind && gain.against != PageKind::Base)
        .filter_map(|gain| Some((gain.against, more(gain.saved?))))
        .collect();
    let best = best.kind;
    if let Some(&(kind, more)) = rivals.iter().find(|(_, more)| more.high < WORTH) {
        let at_most_percent = more.high.max(0.0);
        return Choice::Enough {
            kind,
            best,
            at_most_percent,
        };
    }
    match rivals.iter().find(|(_, more)| more.low <= 0.0) {
        Some(&(rival, more_percent)) => Choice::Open {
            best,
            rival,
            more_percent,
        },
        None => Choice::Best { kind: best },
    }
}

/// How much more time the other takes, of what a kind saves against it.
fn more(saved: Percent) -> Interval {
    let more = |saved: f64| (1.0 / (1.0 - saved / 100.0) - 1.0) * 100.0;
    Interval {
        low: more(saved.low),
        high: more(saved.high),
    }
}

fn limits(snapshot: &Snapshot, processes: Option<&ProcessList>) -> Limits {
    let enabled = snapshot.thp.as_ref().and_then(|thp| thp.enabled.clone().into_result());
    let pools = snapshot.pools.as_ref();
    Limits {
        thp: enabled.map(|choice| choice.chosen),
        pools: pools.map(|pools| pools.iter().map(pool_pages).collect()),
        coverage: processes.and_then(coverage),
    }
}

fn pool_pages(pool: &Pool) -> PoolPages {
    PoolPages {
        size: pool.size,
        pages: pool.nr.clone(),
        free: pool.free.clone(),
    }
}

fn coverage(list: &ProcessList) -> Option<Coverage> {
    let totals = &list.totals;
    Some(Coverage {
        percent: totals.backing.coverage()? * 100.0,
        resident_bytes: totals.backing.total(),
        processes: totals.processes.saturating_sub(totals.unread),
        unseen: list.unseen(),
    })
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
