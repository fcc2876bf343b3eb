//! One page kind behind a guest: memory and its proof, what timing says, and the guest's TLB levels.

use chase::arena::{Arena, Want};
use host::processes;
use model::guest::GuestPage;
use model::guest::tlb::{Behind, GuestLevel, Leaves};
use model::latency::Backed;
use model::tlb::{HostBacking, Verdict};
use model::{Backing, PageKind, Reading};
use vm::visits::Visits;
use vm::{Hypervisor, Memory};

use super::oracle::{self, InGuest};
use super::walks::{Costs, Course, Through};
use super::{LARGE_PAGES, MEMORY, Spec, entries, verdict};
use crate::guest::Error;
use crate::tlb::discover::{Effort, discover};
use crate::tlb::level_of;

/// Rounds in which levels are looked for: with several kinds and page sizes there is no time for more.
const ROUNDS: u32 = 2;

/// What every kind is measured with.
pub(super) struct Job<'a> {
    pub(super) hypervisor: &'a Hypervisor,
    pub(super) spec: &'a Spec,
    pub(super) native: HostBacking,
    pub(super) stop: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    /// Measures a kind; levels of small guest pages only if told to, for they are the same on every kind that makes the
    /// hypervisor use small leaves for them.
    pub(super) fn measure(&mut self, kind: PageKind, small_levels: bool) -> Result<Behind, Error> {
        let want = Want {
            kind,
            bytes: MEMORY,
            base_page: self.spec.base_page,
            pmd_page: self.spec.pmd_page,
            node: self.spec.node,
        };
        let arena = Arena::watched(&want, &mut |_| !(self.stop)());
        self.go_on()?;
        let mut arena = match arena {
            Ok(arena) => arena,
            Err(why) => return Ok(not_measured(unproved(kind, "never mapped"), why.to_string())),
        };
        let mut behind = match prove(kind, &arena) {
            Ok(backing) => not_measured(backing, String::new()),
            Err(behind) => return Ok(*behind),
        };
        self.judge(&mut behind, &mut arena)?;
        if self.spec.levels {
            let pages = [GuestPage::Size4K, GuestPage::Size2M];
            for page in pages
                .into_iter()
                .filter(|&page| small_levels || page != GuestPage::Size4K)
            {
                self.levels(&mut behind, &mut arena, page)?;
            }
        }
        Ok(behind)
    }

    fn go_on(&self) -> Result<(), Error> {
        if (self.stop)() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The effective size, and the leaves beside it.
    fn judge(&self, behind: &mut Behind, arena: &mut Arena) -> Result<(), Error> {
        let course = Course::new(LARGE_PAGES);
        let windows = course.windows();
        let mut visits = Visits::new(self.hypervisor, Memory::of_arena(arena)?, &windows)?;
        self.go_on()?;
        behind.kvm = leaves(&mut visits, &course)?;
        self.go_on()?;
        let suffice = |costs: &Costs| {
            let share = costs.judge(course.count()).and_then(|walks| walks.share);
            share.and_then(verdict::settled).is_some()
        };
        let costs = course.walk(&mut visits, &suffice, self.stop)?;
        self.go_on()?;
        let entries = verdict::by_entries(entries::split(&mut visits, self.stop)?);
        self.go_on()?;
        behind.walks = costs.judge(course.count());
        behind.leaf = verdict::leaf(behind.kvm, &behind.backing);
        let mmu = self.spec.mmu.known().copied();
        behind.verdict = verdict::decide(mmu, &self.native, behind.walks.as_ref(), &entries);
        behind.entries = Some(entries);
        behind.consistent = behind.is_consistent(self.native.verdict);
        behind.not_measured = None;
        Ok(())
    }

    fn levels(&self, behind: &mut Behind, arena: &mut Arena, page: GuestPage) -> Result<(), Error> {
        let window = oracle::window(page, MEMORY);
        let mut guest = InGuest::new(self.hypervisor, Memory::of_arena(arena)?, &window)?;
        self.go_on()?;
        let found = discover(&mut guest, Effort::QUICK, ROUNDS, self.stop);
        self.go_on()?;
        if let Some(error) = guest.failed {
            return Err(error.into());
        }
        behind.levels.extend((1..).zip(&found.levels).map(|(number, level)| {
            let mut level = level_of(behind.kind, number, level);
            level.widen(&[]);
            GuestLevel {
                guest_page: page,
                level,
            }
        }));
        Ok(())
    }
}

/// What the hypervisor makes of the large guest pages: the first lap through them, counted by itself.
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

/// What lies behind the arena, if it is what was asked for.
fn prove(kind: PageKind, arena: &Arena) -> Result<Backed, Box<Behind>> {
    let refused = |backing: Backed, why: String| Err(Box::new(not_measured(backing, why)));
    match processes::own_range(arena.address(), arena.len()) {
        Reading::Unread(why) => refused(
            unproved(kind, "none"),
            format!("what backs it could not be proved: {why}"),
        ),
        Reading::Known(proof) => {
            let backing = Backed {
                asked: kind,
                got: proof.backing,
                proof: proof.account,
            };
            match backing.got.share(kind).is_some_and(|share| share >= verdict::ALL) {
                true => Ok(backing),
                false => {
                    let why = format!("asked for {kind}, got {} by {}", backing.got, backing.proof);
                    refused(backing, why)
                }
            }
        }
    }
}

fn unproved(kind: PageKind, proof: &str) -> Backed {
    Backed {
        asked: kind,
        got: Backing::new(),
        proof: proof.to_owned(),
    }
}

fn not_measured(backing: Backed, why: String) -> Behind {
    Behind {
        kind: backing.asked,
        backing,
        kvm: None,
        leaf: Verdict::Unknown,
        verdict: verdict::unknown("nothing was measured".to_owned()),
        consistent: None,
        entries: None,
        walks: None,
        levels: Vec::new(),
        not_measured: Some(why),
    }
}
