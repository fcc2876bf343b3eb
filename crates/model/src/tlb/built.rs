//! Which numbers of ways and entries TLBs are built with: what a measured number that is none of them may really be.
//!
//! Contention that holds the same entries from the first pass of a measurement to the last makes a TLB seem smaller, and nothing
//! in the timing distinguishes it from a smaller TLB. The number that is left does, mostly: 23 ways are 24 without one.
//!
//! What TLBs are built with is taken from the CPU table (`translation/data/cpus.json`, which states its sources; a test of `measure` holds
//! this rule against every CPU of it): sets by powers of two, and ways, or entries of fully associative ones, that are a power of
//! two or three times one; and 72 entries (Zen 4). The one exception of the table, five ways (Neoverse N1), is not among them:
//! six ways without one look the same. It is exact where the table or CPUID says so.

use super::{Entries, Known, Level, Ways};

/// What contention that always holds the same may hold, at the most, of what is left: a quarter of all is a third of that.
const HELD: f64 = 1.0 / 3.0;

/// A power of two, or three times one?
fn is_usual(number: u32) -> bool {
    number.is_power_of_two() && number > 1 || number.is_multiple_of(3) && number > 3 && (number / 3).is_power_of_two()
}

/// May a fully associative TLB have so many entries?
fn is_usual_full(number: u32) -> bool {
    is_usual(number) || number == 72
}

/// That number if it is usual; else the largest one that it may be the rest of, or the next.
fn raised(number: u32, is_usual: impl Fn(u32) -> bool) -> u32 {
    if is_usual(number) {
        return number;
    }
    let most = number + (f64::from(number) * HELD) as u32;
    let within = (number..=most).rev().find(|&larger| is_usual(larger));
    within
        .or_else(|| (most..).find(|&larger| is_usual(larger)))
        .unwrap_or(number)
}

/// The entries of the largest TLB of which steady contention may have left these: the same number where it is one that TLBs are
/// built with, which then may still be a rest, but need not. Of a range without ways, the other half may have been held: one
/// way of two.
pub fn built(entries: Entries, ways: Option<Ways>) -> u32 {
    match ways {
        Some(Ways::Count(ways)) => entries.high / ways.max(1) * raised(ways, is_usual),
        None if entries.low < entries.high => {
            let twice = entries.high.saturating_mul(2);
            let usual = (entries.high..=twice).rev().find(|&larger| is_usual_full(larger));
            usual.unwrap_or(twice)
        }
        Some(Ways::Full) | None => raised(entries.high, is_usual_full),
    }
}

impl Level {
    /// Takes the level for no more than a lower bound where others say that it holds more, or where no TLB is built with what
    /// timing shows: contention on the core can make a TLB seem smaller for as long as a measurement lasts, and nothing can make
    /// it seem larger.
    pub fn widen(&mut self, known: &[Known]) {
        self.warning_fewer(known);
        self.warning_oddity(known);
    }

    /// Takes a number below what others say for the least of a range.
    fn warning_fewer(&mut self, known: &[Known]) {
        let said = known.iter().filter(|known| known.is_of(self.kind, self.level));
        let Some((entries, most)) = self.entries.zip(said.max_by_key(|known| known.entries)) else {
            return;
        };
        if most.entries > entries.high {
            let says = format!("{} says {}", most.source, most.entries);
            self.raise(most.entries, &format!("timing shows {entries}, {says}"));
        }
    }

    /// Takes a number that no TLB is built with for the least of a range, unless a source names so many, or more.
    fn warning_oddity(&mut self, known: &[Known]) {
        let Some(entries) = self.entries else { return };
        let bounded = |known: &Known| known.is_of(self.kind, self.level) && known.entries >= entries.low;
        let built = built(entries, self.ways);
        if built > entries.high && !known.iter().any(bounded) {
            let ways = self.ways.map_or_else(String::new, |ways| format!(" {ways}"));
            let next = format!("which no known TLB is built with, but one with up to {built} is");
            self.raise(built, &format!("timing shows {entries}{ways}, {next}"));
        }
    }

    /// There may be more entries than was seen.
    fn raise(&mut self, high: u32, why: &str) {
        let why = format!("{why}: contention on the core may have held the others all the time");
        self.entries = self.entries.map(|entries| Entries { high, ..entries });
        (self.ways, self.index, self.not_told) = (None, None, Some(why));
    }
}

#[cfg(test)]
mod tests {
    use super::{Entries, Ways, built};

    #[test]
    fn of_a_range_without_ways_the_other_half_may_have_been_held() {
        let range = Entries { low: 256, high: 367 };
        assert_eq!(built(range, None), 512);
    }

    #[test]
    fn what_is_built_stays_and_what_is_not_goes_up_to_the_next() {
        let built = |entries, ways| built(Entries::exactly(entries), ways);
        for ways in [2, 4, 6, 8, 12, 16, 24, 32] {
            assert_eq!(built(128 * ways, Some(Ways::Count(ways))), 128 * ways);
            assert_eq!(built(128 * ways, None), 128 * ways);
        }
        let next = [(3, 4), (5, 6), (7, 8), (11, 12), (15, 16), (21, 24), (23, 24)];
        for (less, ways) in next {
            assert_eq!(built(16 * less, Some(Ways::Count(less))), 16 * ways);
        }
        for full in [8, 16, 32, 48, 64, 72, 96] {
            assert_eq!(built(full, Some(Ways::Full)), full);
            assert_eq!(built(full - 1, None), built(full - 1, Some(Ways::Full)));
            assert!(built(full - 1, None) >= full);
        }
        // The rest of 64 or of 72.
        assert_eq!(built(60, Some(Ways::Full)), 72);
        assert_eq!(built(71, Some(Ways::Full)), 72);
        assert_eq!(built(2944, None), 3072);
    }
}
