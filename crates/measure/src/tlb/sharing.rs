//! Whether two page kinds compete for the same entries, and what that says of how many there are.

use model::PageKind;
use model::tlb::Sharing;

use super::Job;
use super::live::must_fit;
use super::walks::{self, Together};

impl Job<'_> {
    /// Tests the first two kinds at both levels.
    pub(super) fn sharing(&mut self) {
        let &[one, two, ..] = &self.spec.kinds[..] else { return };
        let kinds = [one, two];
        let parts = self.splintered(one).or(self.splintered(two));
        for level in [1, 2] {
            if kinds.iter().any(|&kind| self.tlb.level(kind, level).is_none()) {
                continue;
            }
            let seen = match parts {
                Some(parts) => Some(Err(format!(
                    "the host splinters huge pages, which compete as pages of {parts}"
                ))),
                None => self.compete(kinds, level),
            };
            let Some(seen) = seen else { continue };
            let (shared, evidence) = seen.unwrap_or_else(|why| (None, format!("cannot tell: {why}")));
            self.tlb.sharing.push(Sharing {
                kinds,
                level,
                shared,
                evidence,
            });
            if shared == Some(true) {
                self.reconcile(kinds, level);
            }
        }
    }

    /// Do they share entries, and what shows it, or why that cannot be told? Nothing where entries of either are unknown.
    fn compete(&self, kinds: [PageKind; 2], level: u8) -> Option<Result<(Option<bool>, String), String>> {
        let [one, two] = kinds.map(|kind| self.entries(kind, level));
        let ((ones, penalty), (twos, _)) = one.zip(two)?;
        let both = [(kinds[0], ones.low), (kinds[1], twos.low)];
        let passes = if self.spec.quick { 20 } else { 60 };
        let seen = must_fit(walks::memory(both), self.room()).and_then(|()| walks::together(both, passes, self.clock));
        let told = |seen: Together| {
            let evidence = format!(
                "five eighths of each kind's entries cost {:.1} cycles alone and {:.1} together; a miss adds {penalty:.1}",
                seen.apart, seen.together
            );
            (seen.shared(penalty), evidence)
        };
        Some(seen.map(told).map_err(|error| error.to_string()))
    }

    /// Kinds that share their entries have equally many: where the ranges do not meet, contention took some from the kind
    /// that seems to have fewer, whose range then reaches up to the other's.
    fn reconcile(&mut self, kinds: [PageKind; 2], number: u8) {
        let entries = kinds.map(|kind| self.tlb.level(kind, number).and_then(|level| level.entries));
        let [Some(one), Some(two)] = entries else { return };
        let (fewer, most) = if one.high < two.low {
            (kinds[0], two)
        } else {
            (kinds[1], one)
        };
        let level = self
            .tlb
            .levels
            .iter_mut()
            .find(|level| level.kind == fewer && level.level == number);
        let entries = level.and_then(|level| level.entries.as_mut());
        if let Some(entries) = entries.filter(|entries| entries.high < most.low) {
            entries.high = most.high;
            self.warning(
                "tlb-neighbor",
                format!(
                    "{fewer} pages share {most} entries but seem to have fewer: there was contention; measure again"
                ),
            );
        }
    }
}
