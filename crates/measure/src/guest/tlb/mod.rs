//! TLB discovery inside a guest: ground truth, because here both the guest's page tables and the host's memory are chosen.

mod behind;
mod entries;
mod ground;
mod oracle;
mod readout;
mod verdict;
mod walks;

use std::time::{Duration, Instant};

use chase::arena::{Arena, Want};
use chase::clock::CoreClock;
use host::snapshot::Mmu;
use model::guest::tlb::{GuestTlb, Readout};
use model::tlb::{HostBacking, Verdict};
use model::{Bytes, PageKind, Reading, Warning};
use vm::Hypervisor;

use super::Error;
use crate::tlb::backing;
use crate::tlb::live::{Pages, Sampled};
use model::Progress;

/// What to find out.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Page kinds to put behind the guest, one after the other.
    pub kinds: Vec<PageKind>,
    /// Look for TLB levels too: half a minute instead of a few seconds.
    pub levels: bool,
    /// The CPU to pin to; the current one if `None`.
    pub cpu: Option<u32>,
    /// Bind memory to this NUMA node.
    pub node: Option<u32>,
    /// The machine's base page.
    pub base_page: Bytes,
    /// Its PMD-mapped page.
    pub pmd_page: Bytes,
    /// How this machine's KVM translates guest addresses.
    pub mmu: Reading<Mmu>,
}

/// Large guest pages over the memory.
const LARGE_PAGES: u64 = 128;
/// Memory behind the guest, of every kind.
pub const MEMORY: Bytes = Bytes(LARGE_PAGES * ground::LARGE);
/// A rough guess, for the progress bar: seconds for the backing of one kind, and for the levels of one guest page size.
const SECONDS: (f64, f64) = (3.0, 12.0);

/// Puts each kind of memory behind a guest and asks timing what it is. What could not be measured is told with its reason.
///
/// # Errors
/// [`Error`]; every guest and all memory are given back in each case.
pub fn run(
    spec: &Spec,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<(GuestTlb, Vec<Warning>), Error> {
    let begun = Instant::now();
    if spec.kinds.is_empty() {
        return Err(Error::Spec("give at least one page kind".to_owned()));
    }
    let hypervisor = Hypervisor::open()?;
    let pinned = chase::thread::Pinned::to(spec.cpu).map_err(Error::Pin)?;
    let mut job = behind::Job {
        hypervisor: &hypervisor,
        spec,
        native: native(spec, stop),
        stop,
    };
    let mut behind = Vec::new();
    for (done, &kind) in spec.kinds.iter().enumerate() {
        let share = done as f64 / spec.kinds.len() as f64;
        progress.step(
            share,
            spec.left(share),
            &format!("what timing says of {kind} behind a guest"),
        );
        behind.push(job.measure(kind, done == 0)?);
    }
    let guest = GuestTlb {
        mmu: spec.mmu.as_ref().map(|mmu| mmu.name().to_owned()),
        native: job.native,
        behind,
        readout: readout(&hypervisor, spec, stop)?,
        cpu: pinned.cpu(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    let warnings = warnings(&guest);
    Ok((guest, warnings))
}

impl Spec {
    fn left(&self, done: f64) -> Duration {
        let kinds = self.kinds.len() as f64;
        let levels = if self.levels { (kinds + 1.0) * SECONDS.1 } else { 0.0 };
        Duration::from_secs_f64((kinds * SECONDS.0 + levels) * (1.0 - done))
    }
}

/// What the TLBs say natively of this machine's own large pages.
fn native(spec: &Spec, stop: &dyn Fn() -> bool) -> HostBacking {
    const SAMPLED: u64 = 16;
    const LINES: u32 = 200;
    const PASSES: u32 = 16;
    let pages = |kind: PageKind| Pages {
        kind,
        size: kind.page_size(spec.base_page, spec.pmd_page),
    };
    let clock = CoreClock::new();
    let sampled = Sampled::new(
        pages(PageKind::Thp),
        pages(PageKind::Base),
        SAMPLED,
        LINES.into(),
        &clock,
    );
    match sampled {
        Ok(mut sampled) => verdict::by_entries(backing::sample(&mut sampled, LINES, PASSES, stop)),
        Err(why) => verdict::unknown(format!("no huge pages natively: {why}")),
    }
}

/// What the TLB holds, read out by changed page-table entries, on a little memory of base pages.
fn readout(hypervisor: &Hypervisor, spec: &Spec, stop: &dyn Fn() -> bool) -> Result<Readout, Error> {
    let want = Want {
        kind: PageKind::Base,
        bytes: Bytes(readout::MEMORY),
        base_page: spec.base_page,
        pmd_page: spec.pmd_page,
        node: spec.node,
    };
    let mut arena = match Arena::new(&want) {
        Ok(arena) => arena,
        Err(why) => return Ok(Readout::Blind { why: why.to_string() }),
    };
    let window = readout::window();
    let mut guest = readout::InGuest::new(hypervisor, vm::Memory::of_arena(&mut arena)?, &window)?;
    let told = readout::read_out(&mut guest, stop)?;
    if stop() { Err(Error::Interrupted) } else { Ok(told) }
}

fn warnings(guest: &GuestTlb) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for behind in &guest.behind {
        let kind = behind.kind;
        if behind.consistent == Some(false) {
            warnings.push(Warning::new(
                "wrong-backing",
                format!(
                    "timing says {} of a guest on {kind}, which contradicts KVM's leaves ({}): distrust such verdicts on this machine",
                    behind.verdict.verdict, behind.leaf
                ),
            ));
        } else if (behind.leaf, behind.verdict.verdict) == (Verdict::None, Verdict::Small) {
            warnings.push(Warning::new(
                "splintered-below",
                format!(
                    "on {kind}: KVM maps the guest's huge pages by leaves of 2M, timing shows 4K: a layer below this machine splinters them, or a noisy neighbor disturbed the timing"
                ),
            ));
        } else if behind.verdict.verdict == Verdict::Unknown && behind.not_measured.is_none() {
            let why = behind.verdict.evidence.first().map_or("", String::as_str);
            warnings.push(Warning::new("backing-unknown", format!("on {kind}: {why}")));
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
