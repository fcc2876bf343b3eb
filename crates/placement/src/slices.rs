//! A recording in equal slices of time, however long it becomes: the slices double when there are too many.

use std::collections::BTreeMap;

use model::placement;

/// More than that could not be distinguished in a picture.
const MOST: usize = 64;
/// The first length of a slice, in ns.
const FIRST: u64 = 10_000_000;

/// What was in each slice, by nanoseconds since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    length: u64,
    each: Vec<Slice>,
}

#[derive(Clone, Debug, Default)]
struct Slice {
    cpu: BTreeMap<u32, u64>,
    migrations: u64,
}

impl Slices {
    pub(crate) fn new() -> Self {
        Self {
            length: FIRST,
            each: Vec::new(),
        }
    }

    pub(crate) fn ran(&mut self, cpu: u32, mut from: u64, to: u64) {
        while from < to {
            let slice = self.at(from);
            let end = to.min((from / self.length + 1) * self.length);
            *self.each[slice].cpu.entry(cpu).or_default() += end - from;
            from = end;
        }
    }

    /// Time from before the first slice, which is given to that one.
    pub(crate) fn before(&mut self, cpu: u32, ran: u64) {
        if ran > 0 {
            let first = self.at(0);
            *self.each[first].cpu.entry(cpu).or_default() += ran;
        }
    }

    pub(crate) fn moved(&mut self, at: u64) {
        let slice = self.at(at);
        self.each[slice].migrations += 1;
    }

    fn at(&mut self, moment: u64) -> usize {
        while moment / self.length >= MOST as u64 {
            self.each = self.each.chunks(2).map(Slice::sum).collect();
            self.length *= 2;
        }
        let slice = (moment / self.length) as usize;
        if self.each.len() <= slice {
            self.each.resize_with(slice + 1, Slice::default);
        }
        slice
    }

    pub(crate) fn shown(&self) -> placement::Slices {
        let seconds = |slice: &Slice| slice.cpu.iter().map(|(&cpu, &ns)| (cpu, ns as f64 / 1e9)).collect();
        placement::Slices {
            seconds: self.length as f64 / 1e9,
            cpu_s: self.each.iter().map(seconds).collect(),
            migrations: self.each.iter().map(|slice| slice.migrations).collect(),
        }
    }
}

impl Slice {
    fn sum(slices: &[Self]) -> Self {
        let mut sum = Self::default();
        for slice in slices {
            sum.migrations += slice.migrations;
            for (&cpu, ns) in &slice.cpu {
                *sum.cpu.entry(cpu).or_default() += ns;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, MOST, Slices};

    #[test]
    fn time_from_before_the_first_slice_is_in_it() {
        let mut slices = Slices::new();
        slices.ran(1, 0, 4);
        slices.before(1, 3);
        slices.before(2, 0);
        let first = slices.shown().cpu_s.remove(0);
        assert_eq!(first.into_iter().collect::<Vec<_>>(), [(1, 7e-9)]);
    }

    #[test]
    fn nothing_is_lost_when_slices_double() {
        let mut slices = Slices::new();
        let end = FIRST * MOST as u64 * 5 / 2;
        slices.ran(1, FIRST / 2, end);
        slices.moved(3);
        slices.moved(end - 1);
        let shown = slices.shown();
        assert!((shown.seconds - 0.04).abs() < 1e-12 && shown.cpu_s.len() == MOST * 5 / 8);
        let all: f64 = shown.cpu_s.iter().flat_map(|slice| slice.values()).sum();
        assert!((all - (end - FIRST / 2) as f64 / 1e9).abs() < 1e-9);
        assert_eq!((shown.migrations[0], shown.migrations.iter().sum::<u64>()), (1, 2));
    }
}
