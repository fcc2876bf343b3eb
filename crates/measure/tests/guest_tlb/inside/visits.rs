//! Visits of guest pages in turn, timed in core cycles inside the guest: translation probes where we own the page tables.

use std::time::Duration;

use chase::kernel::{MULTIPLY_CYCLES, UNROLL};
use model::guest::GuestPage;
use vm::stats::Stats;
use vm::{Config, Error, Guest, Hypervisor, Job, Kernel, Memory, Ring, Window, payload};

/// A word of the lent memory that takes part in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The guest-virtual address it is visited at.
    pub(crate) virt: u64,
    /// Where it is: bytes from the start of the lent memory, a multiple of 8.
    pub(crate) offset: u64,
}

/// Steps in a timed block at least, as natively.
const FEWEST_STEPS: u64 = 512;
/// Steps in all timed blocks of one ring: some 100 us.
const STEPS: u64 = 12_000;
/// Blocks that only warm up: entering a guest may have cost it its TLB, and its caches in part.
const WARM: u64 = 3;
/// Turns of the multiplication loop in one reading of the core clock.
const TURNS: u64 = 100;
/// Readings of the core clock in one entry; the least counts.
const READINGS: u64 = 3;
/// A core clock that differs by more than this share between the two ends of a timing has changed in between.
const CLOCK_CHANGE: f64 = 0.01;
/// Beyond this nothing sensible is going on.
const DEADLINE: Duration = Duration::from_secs(60);

/// Follows a ring from `rdi`, a node, for `rsi` steps: `mov rdi, [rdi]; dec rsi; jnz` back; `mov rax, rdi; ret`.
const RING: [u8; 12] = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8, 0x48, 0x89, 0xf8, 0xc3];

/// Dependent multiplications as of [`chase::kernel::multiply`]: `mov rax, rdi`; in each of `rsi` turns `imul rax, rdi` so often as there are
/// steps; `dec rsi; jnz` back; `ret`.
fn multiply() -> Vec<u8> {
    let turn = [0x48, 0x0f, 0xaf, 0xc7].repeat(UNROLL as usize);
    let back = (turn.len() as u8 + 5).wrapping_neg();
    [&[0x48, 0x89, 0xf8][..], &turn, &[0x48, 0xff, 0xce, 0x75, back, 0xc3]].concat()
}

/// A guest over lent memory with windows into it, and the loops that time visits.
pub(crate) struct Visits<'m> {
    guest: Guest<'m>,
    memory: Memory<'m>,
    ring: Kernel,
    multiply: Kernel,
    overhead: u64,
}

/// What a guest of small pages is made of that sees `memory` through `windows`.
fn seen<'m>(memory: Memory<'m>, windows: &'m [Window]) -> Config<'m> {
    Config {
        memory: Some(memory),
        page: GuestPage::Size4K,
        fresh: 0,
        tables: None,
        windows,
    }
}

impl<'m> Visits<'m> {
    /// A guest that sees `memory` through `windows` (and at its host addresses through small pages).
    pub(crate) fn new(hypervisor: &Hypervisor, memory: Memory<'m>, windows: &'m [Window]) -> Result<Self, Error> {
        let mut guest = Guest::new(hypervisor, &seen(memory, windows))?;
        let idle = guest.load(payload::idle())?;
        let mut visits = Self {
            ring: guest.load(&RING)?,
            multiply: guest.load(&multiply())?,
            overhead: 0,
            guest,
            memory,
        };
        visits.overhead = visits.least(idle, 0, 1, 1000, 0)?;
        Ok(visits)
    }

    /// The least ticks of `blocks` blocks of so many turns, after some that do not count.
    fn least(&mut self, kernel: Kernel, start: u64, turns: u64, blocks: u64, warm: u64) -> Result<u64, Error> {
        let done = self.guest.run(&Job {
            kernel,
            ring: Ring::User,
            start,
            turns,
            blocks: warm + blocks,
            deadline: DEADLINE,
        })?;
        let counted = done.ticks.iter().skip(warm as usize);
        Ok(counted.min().copied().unwrap_or(0).saturating_sub(self.overhead))
    }

    /// Core cycles per tick, right now, inside the guest.
    fn cycles_per_tick(&mut self) -> Result<f64, Error> {
        let ticks = self.least(self.multiply, 3, TURNS, READINGS, 1)?;
        Ok((TURNS * UNROLL * MULTIPLY_CYCLES) as f64 / ticks.max(1) as f64)
    }

    /// Links the nodes, all different, into a ring in this order, and gives the core cycles of a step in the least
    /// disturbed of some blocks of whole laps; `None` if there is no node or the core clock changed during it.
    pub(crate) fn cycles(&mut self, nodes: &[Node]) -> Result<Option<f64>, Error> {
        let Some(first) = nodes.first() else { return Ok(None) };
        for (here, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
            self.memory.store_at(here.offset, next.virt);
        }
        let steps = nodes.len() as u64;
        let laps = FEWEST_STEPS.div_ceil(steps);
        let blocks = (STEPS / (laps * steps)).clamp(2, 16);
        let before = self.cycles_per_tick()?;
        let ticks = self.least(self.ring, first.virt, laps * steps, blocks, WARM)?;
        let after = self.cycles_per_tick()?;
        let steady = (before - after).abs() <= CLOCK_CHANGE * before.max(after);
        Ok(steady.then(|| ticks as f64 / (laps * steps) as f64 * (before + after) / 2.0))
    }

    /// What the hypervisor has counted so far.
    pub(crate) fn stats(&self) -> Result<Stats, Error> {
        self.guest.stats()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr)]

    use chase::arena::{Arena, Want};
    use model::guest::GuestPage;
    use model::{Bytes, PageKind};
    use vm::{Hypervisor, Memory, Window};

    use super::{Node, Visits};

    const VIRT: u64 = 1 << 36;

    fn arena() -> Arena {
        Arena::new(&Want::plain(PageKind::Base, Bytes::mib(2))).expect("a little memory")
    }

    /// 1000 pages on four frames, in turn.
    fn window() -> Window {
        Window {
            virt: VIRT,
            page: GuestPage::Size4K,
            frames: (0..1000).map(|page| page % 4 * 4096).collect(),
        }
    }

    /// A word for each page.
    fn nodes() -> Vec<Node> {
        let node = |page: u64| Node {
            virt: VIRT + page * 4096 + page / 4 * 8,
            offset: page % 4 * 4096 + page / 4 * 8,
        };
        (0..1000).map(node).collect()
    }

    fn hypervisor() -> Option<Hypervisor> {
        Hypervisor::open()
            .map_err(|why| testing::skipped(&why.to_string()))
            .ok()
    }

    #[test]
    fn many_pages_of_one_frame_are_visited_and_timed() {
        let Some(hypervisor) = hypervisor() else { return };
        let (mut arena, windows) = (arena(), [window()]);
        let memory = Memory::of_arena(&mut arena).expect("whole pages");
        let mut visits = Visits::new(&hypervisor, memory, &windows).expect("a guest");
        assert_eq!(visits.cycles(&[]).expect("nothing to do"), None);
        // Each attempt may see the core clock change.
        let cycles = (0..1000).find_map(|_| visits.cycles(&nodes()).expect("runs"));
        assert!(cycles.is_some_and(|cycles| cycles > 1.0), "{cycles:?}");
        assert!(visits.stats().expect("stats").get("exits") > Some(0));
    }
}
