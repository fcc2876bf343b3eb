//! One page kind behind a guest: memory whose backing is proved, KVM's own leaves for it, and the size that timing names.

pub(crate) mod entries;
pub(crate) mod ground;
pub(crate) mod verdict;
mod visits;
pub(crate) mod walks;

use std::error::Error;

use chase::arena::{Arena, Want};
use chase::clock::CoreClock;
use host::snapshot::Mmu;
use host::{Snapshot, processes};
use measure::tlb::backing;
use measure::tlb::sampled::Sampled;
use model::tlb::{HostBacking, Verdict};
use model::{Backing, Bytes, PageKind, Reading};
use vm::{Hypervisor, Memory};

use verdict::{Leaves, Outcome};
use visits::Visits;
use walks::{Costs, Course, Through};

/// Huge guest pages over the memory.
const LARGE_PAGES: u64 = 128;

/// The machine that the guests run on.
pub(crate) struct Machine {
    hypervisor: Hypervisor,
    mmu: Option<Mmu>,
    /// What timing names for this machine's own huge pages, outside of any guest.
    pub(crate) native: HostBacking,
}

/// What was put behind a guest, and what was found.
#[derive(Debug)]
pub(crate) struct Row {
    /// Leaves that KVM made for the huge guest pages; `None` if it does not count them.
    pub(crate) leaves: Option<Leaves>,
    /// The true page size: what KVM's leaves are made of.
    pub(crate) truth: Verdict,
    /// What timing inside the guest names.
    pub(crate) named: HostBacking,
    /// Whether that is right.
    pub(crate) outcome: Outcome,
}

impl Machine {
    /// This machine, with its native verdict; the calling thread should be pinned.
    pub(crate) fn new(hypervisor: Hypervisor, snapshot: &Snapshot) -> Self {
        Self {
            hypervisor,
            mmu: snapshot.kvm.mmu.known().copied(),
            native: native(),
        }
    }

    /// Measures a guest of huge pages on one page kind.
    pub(crate) fn measure(&self, kind: PageKind) -> Result<Row, Box<dyn Error>> {
        let mut arena = Arena::new(&Want::plain(kind, Bytes(LARGE_PAGES * ground::LARGE)))?;
        let backing = prove(kind, &arena)?;
        let course = Course::new(LARGE_PAGES);
        let windows = course.windows();
        let mut visits = Visits::new(&self.hypervisor, Memory::of_arena(&mut arena)?, &windows)?;
        let leaves = leaves(&mut visits, &course)?;
        let suffice = |costs: &Costs| {
            let share = costs.judge(course.count()).and_then(|walks| walks.share);
            share.and_then(verdict::settled).is_some()
        };
        let walks = course.walk(&mut visits, &suffice)?.judge(course.count());
        let entries = verdict::by_entries(entries::split(&mut visits)?);
        let truth = verdict::leaf(leaves, &backing);
        let named = verdict::decide(self.mmu, &self.native, walks.as_ref(), &entries);
        Ok(Row {
            outcome: Outcome::of(truth, named.verdict, self.native.verdict),
            leaves,
            truth,
            named,
        })
    }
}

/// What the TLBs show natively of this machine's own huge pages.
fn native() -> HostBacking {
    const SAMPLED: u64 = 16;
    let clock = CoreClock::new();
    match Sampled::new(
        PageKind::Thp,
        PageKind::Base,
        SAMPLED,
        entries::LINES_EACH.into(),
        &clock,
        Bytes::gib(4),
    ) {
        Ok(mut sampled) => verdict::by_entries(backing::sample(
            &mut sampled,
            entries::LINES_EACH,
            entries::PASSES,
            &|| false,
        )),
        Err(why) => verdict::unknown(format!("no huge pages natively: {why}")),
    }
}

/// What the hypervisor makes of the huge guest pages: the first lap through them, by its own count.
fn leaves(visits: &mut Visits<'_>, course: &Course) -> Result<Option<Leaves>, vm::Error> {
    let before = visits.stats()?;
    visits.cycles(&course.nodes(Through::Large, 0))?;
    let after = visits.stats()?;
    let more = |name: &str| Some(after.get(name)?.saturating_sub(before.get(name)?));
    let counted = more("pages_4k").zip(more("pages_2m"));
    Ok(counted.map(|(small, large)| Leaves {
        visited: LARGE_PAGES,
        small,
        large,
    }))
}

/// What backs the arena, if it is the kind that was asked for.
fn prove(kind: PageKind, arena: &Arena) -> Result<Backing, Box<dyn Error>> {
    match processes::own_range(arena.address(), arena.size()) {
        Reading::Unread(why) => Err(format!("the backing could not be proved: {why}").into()),
        Reading::Known(proof) if proof.backing.share(kind).is_some_and(|share| share >= verdict::ALL) => {
            Ok(proof.backing)
        }
        Reading::Known(proof) => Err(format!("expected {kind}, got {} by {}", proof.backing, proof.account).into()),
    }
}
