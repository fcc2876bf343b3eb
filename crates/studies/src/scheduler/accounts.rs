//! What is counted beside each world's own time: waits, places and slices for a chart.

use super::Ns;

/// Parts of each power of two in a histogram.
const PARTS_BITS: u32 = 3;
const BUCKETS: usize = 48 << PARTS_BITS;
/// So many worlds' places are counted.
const MOST_PLACES: usize = 64;
const MOST_SLICES: usize = 20_000;

/// How long worlds waited, within an eighth of each wait.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    pub(super) longest: Ns,
    pub(super) count: u64,
}

impl Histogram {
    fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            longest: 0,
            count: 0,
        }
    }

    #[inline]
    fn add(&mut self, time: Ns) {
        self.count += 1;
        self.longest = self.longest.max(time);
        let bucket = &mut self.counts[bucket(time)];
        *bucket = bucket.saturating_add(1);
    }

    /// The time that so many parts of 1,000,000 do not exceed: the upper end of its bucket, or the longest.
    pub(super) fn quantile(&self, parts: u64) -> Ns {
        let rank = (u128::from(self.count) * u128::from(parts)).div_ceil(1_000_000);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank.max(1) {
                return upper(place).min(self.longest);
            }
        }
        self.longest
    }

    /// The waits of both.
    pub(super) fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*count);
        }
    }
}

/// Small times have a bucket of their own; then eight for each power of two.
#[inline]
fn bucket(time: Ns) -> usize {
    let bits = 64 - time.leading_zeros();
    if bits <= PARTS_BITS {
        return time as usize;
    }
    let shift = bits - 1 - PARTS_BITS;
    let part = (time >> shift) as usize & ((1 << PARTS_BITS) - 1);
    ((((shift + 1) as usize) << PARTS_BITS) + part).min(BUCKETS - 1)
}

/// The largest time of a bucket.
fn upper(bucket: usize) -> Ns {
    let (power, part) = (bucket >> PARTS_BITS, (bucket & ((1 << PARTS_BITS) - 1)) as Ns);
    match power {
        0 => part,
        power => (((1 << PARTS_BITS) + part + 1) << (power - 1)) - 1,
    }
}

/// Some time of a world on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) cpu: u32,
    pub(super) world: u32,
    pub(super) from: Ns,
    pub(super) until: Ns,
}

#[derive(Debug)]
pub(super) struct Accounts {
    /// By virtual machine; the console's are the last.
    pub(super) waits: Vec<Histogram>,
    /// Of the first worlds, by world and CPU.
    places: Vec<Ns>,
    cpus: usize,
    chart: [Ns; 2],
    pub(super) slices: Vec<Stretch>,
}

impl Accounts {
    pub(super) fn new(vms: usize, worlds: usize, cpus: usize, chart: [Ns; 2]) -> Self {
        Self {
            waits: vec![Histogram::new(); vms + 1],
            places: vec![0; worlds.min(MOST_PLACES) * cpus],
            cpus,
            chart: [chart[0], chart[0].saturating_add(chart[1])],
            slices: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn waited(&mut self, vm: u32, time: Ns) {
        self.waits[vm as usize].add(time);
    }

    #[inline]
    pub(super) fn ran(&mut self, world: u32, cpu: u32, time: Ns) {
        if let Some(place) = self.places.get_mut(world as usize * self.cpus + cpu as usize) {
            *place += time;
        }
    }

    /// Keeps a stretch for the chart.
    #[inline]
    pub(super) fn slice(&mut self, cpu: u32, world: u32, from: Ns, until: Ns) {
        let (from, until) = (from.max(self.chart[0]), until.min(self.chart[1]));
        if from >= until || self.slices.len() >= MOST_SLICES {
            return;
        }
        self.slices.push(Stretch {
            cpu,
            world,
            from,
            until,
        });
    }

    /// Time of the first worlds by CPU.
    pub(super) fn places(&self) -> impl Iterator<Item = &[Ns]> {
        self.places.chunks(self.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket, upper};

    #[test]
    fn a_bucket_holds_its_times_within_an_eighth() {
        let mut before = 0;
        for time in (0..5000).chain((13..44).map(|bits| (1_u64 << bits) + 3)) {
            let place = bucket(time);
            assert!(place >= before, "{time}");
            before = place;
            assert!(
                time <= upper(place) && upper(place) <= time + time / 8,
                "{time}: {}",
                upper(place)
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|time| histogram.add(time * 1000));
        for (parts, time) in [(500_000, 500_000), (990_000, 990_000), (1_000_000, 1_000_000)] {
            let found = histogram.quantile(parts);
            assert!(found >= time && found <= time + time / 8, "{parts}: {found}");
        }
        assert_eq!(histogram.longest, 1_000_000);
    }
}
