//! Huge pages of this process, sampled for the page size of the host under them.

use std::io;

use chase::clock::CoreClock;
use chase::tlbwalk::{Behind, Span};
use model::{Bytes, PageKind};
use stats::rounds;

use super::backing::{Area, Regions};
use super::live::{LINE, LINES, must_fit, proved};

/// Huge pages of this process as regions to judge, with small pages as references.
pub struct Sampled<'a> {
    clock: &'a CoreClock,
    large: Span,
    region: u64,
    step: u64,
    small: Span,
    dense: Span,
}

impl<'a> Sampled<'a> {
    /// Samples `count` huge pages at steps of `small` pages, or as many as there is room for.
    ///
    /// # Errors
    /// If memory is refused, or this kernel does not map all of it by large entries.
    pub fn new(
        large: PageKind,
        small: PageKind,
        count: u64,
        lines: u64,
        clock: &'a CoreClock,
        room: Bytes,
    ) -> io::Result<Self> {
        let of = |kind: PageKind, count: u64| match kind.pool() {
            Some(_) => 0,
            None => kind.x86_size().0 * count,
        };
        must_fit(Bytes(of(small, lines) + of(large, 1)), room)?;
        let left = room.0 - of(small, lines);
        let count = left.checked_div(of(large, 1)).map_or(count, |most| most.min(count));
        let mut span = Span::reserve(large, count, Behind::Private)?;
        proved(large, &mut span, large.x86_size(), count)?;
        Self::on(span, large.x86_size(), small, lines, clock)
    }

    /// The same with regions that only pretend to be pages of that size: they are made of `small` pages, as a host that
    /// splinters huge pages makes them.
    ///
    /// # Errors
    /// If memory is refused.
    #[cfg(test)]
    pub(super) fn imitated(
        region: Bytes,
        small: PageKind,
        count: u64,
        lines: u64,
        clock: &'a CoreClock,
    ) -> io::Result<Self> {
        let span = Span::reserve(small, count * (region.0 / small.x86_size().0), Behind::Private)?;
        Self::on(span, region, small, lines, clock)
    }

    fn on(large: Span, region: Bytes, small: PageKind, lines: u64, clock: &'a CoreClock) -> io::Result<Self> {
        let mut reference = Span::reserve(small, lines, Behind::Private)?;
        if small.is_large() {
            proved(small, &mut reference, small.x86_size(), lines)?;
        }
        Ok(Self {
            clock,
            large,
            region: region.0,
            step: small.x86_size().0,
            small: reference,
            dense: Span::reserve(PageKind::Base, lines.div_ceil(LINES), Behind::Private)?,
        })
    }
}

impl Regions for Sampled<'_> {
    fn count(&self) -> usize {
        (self.large.page().0 * self.large.pages() / self.region) as usize
    }

    fn cost(&mut self, area: Area, lines: u32, pass: u32) -> Option<f64> {
        let order = rounds::order(lines as usize, pass.into(), 0);
        let spread = |start: u64, step: u64, room: u64| -> Vec<u64> {
            // Evenly over the whole page, so that no luck in one corner decides.
            let apart = (room / u64::from(lines) / step).max(1) * step;
            order
                .iter()
                .map(|&line| start + line as u64 * apart + line as u64 % LINES * LINE)
                .collect()
        };
        let packed: Vec<u64> = order.iter().map(|&line| line as u64 * LINE).collect();
        let large = self.region;
        match area {
            Area::Small => self
                .small
                .ring(&spread(0, self.step, self.step * u64::from(lines)))
                .cycles(self.clock),
            Area::Dense => self.dense.ring(&packed).cycles(self.clock),
            Area::Region(region) => self
                .large
                .ring(&spread(region as u64 * large, self.step, large))
                .cycles(self.clock),
        }
    }
}
