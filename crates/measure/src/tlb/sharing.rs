//! Whether two page kinds compete for the same entries, and what that says of how many there are.

use model::PageKind;
use model::tlb::Sharing;

use super::live::must_fit;
use super::{Job, walks};

impl Job<'_> {
    /// Tests the first two kinds at both levels.
    pub(super) fn sharing(&mut self) {
        let &[one, two, ..] = &self.spec.kinds[..] else { return };
        let parts = self.splintered(one).or(self.splintered(two));
        for level in [1, 2] {
            if self.tlb.level(one, level).is_none() || self.tlb.level(two, level).is_none() {
                continue;
            }
            match parts {
                Some(parts) => {
                    let why = format!("the host splinters huge pages, which compete as pages of {parts}");
                    self.cannot_tell([one, two], level, &why);
                }
                None => self.compete([one, two], level),
            }
        }
    }

    fn compete(&mut self, kinds: [PageKind; 2], level: u8) {
        let [Some((ones, penalty)), Some((twos, _))] = kinds.map(|kind| self.entries(kind, level)) else {
            return;
        };
        let kinds_and_entries = [(kinds[0], ones.low), (kinds[1], twos.low)];
        let needed = walks::memory(kinds_and_entries);
        if let Err(why) = must_fit(needed, self.room()) {
            return self.cannot_tell(kinds, level, &why.to_string());
        }
        let passes = if self.spec.quick { 20 } else { 60 };
        match walks::together(kinds_and_entries, passes, self.clock) {
            Ok(seen) => self.keep_sharing(kinds, level, seen, penalty),
            Err(error) => self.cannot_tell(kinds, level, &error.to_string()),
        }
    }

    fn cannot_tell(&mut self, kinds: [PageKind; 2], level: u8, why: &str) {
        self.tlb.sharing.push(Sharing {
            kinds,
            level,
            shared: None,
            evidence: format!("cannot tell: {why}"),
        });
    }

    fn keep_sharing(&mut self, kinds: [PageKind; 2], level: u8, seen: walks::Together, penalty: f64) {
        let shared = seen.shared(penalty);
        self.tlb.sharing.push(Sharing {
            kinds,
            level,
            shared,
            evidence: format!(
                "five eighths of each kind's entries cost {:.1} cycles alone and {:.1} together; a miss adds {penalty:.1}",
                seen.apart, seen.together
            ),
        });
        if shared == Some(true) {
            self.reconcile(kinds, level);
        }
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
