//! Whether two page kinds compete for the same entries, and what that says of how many there are.

use model::PageKind;
use model::tlb::Sharing;

use super::{Job, walks};

impl Job<'_> {
    /// Tests the first two kinds.
    pub(super) fn sharing(&mut self) {
        let &[one, two, ..] = &self.spec.kinds[..] else { return };
        if let Some(parts) = self.splintered(one).or(self.splintered(two)) {
            let evidence = format!("cannot tell: the host splinters large pages, which compete as pages of {parts}");
            return self.tlb.sharing.push(Sharing {
                kinds: [one, two],
                level: 1,
                shared: None,
                evidence,
            });
        }
        let (Some((ones, penalty)), Some((twos, _))) = (self.first_level(one), self.first_level(two)) else {
            return;
        };
        let passes = if self.spec.quick { 20 } else { 60 };
        let kinds = [(self.pages(one), ones), (self.pages(two), twos)];
        match walks::together(kinds, passes, self.clock) {
            Ok(seen) => self.keep_sharing([one, two], seen, penalty),
            Err(error) => self.doubt(
                "tlb-sharing",
                format!("sharing of {one} and {two} was not tested: {error}"),
            ),
        }
    }

    fn keep_sharing(&mut self, kinds: [PageKind; 2], seen: walks::Together, penalty: f64) {
        let shared = seen.shared(penalty);
        self.tlb.sharing.push(Sharing {
            kinds,
            level: 1,
            shared,
            evidence: format!(
                "five eighths of each kind's entries cost {:.1} cycles alone and {:.1} together; a miss adds {penalty:.1}",
                seen.apart, seen.together
            ),
        });
        if shared == Some(true) {
            self.reconcile(kinds);
        }
    }

    /// Kinds that share their entries have equally many: where the ranges do not meet, a neighbour took some from the kind
    /// that seems to have fewer, whose range then reaches up to the other's.
    fn reconcile(&mut self, kinds: [PageKind; 2]) {
        let entries = kinds.map(|kind| self.tlb.level(kind, 1).and_then(|level| level.entries));
        let [Some(one), Some(two)] = entries else { return };
        let (fewer, most) = if one.value < two.value {
            (kinds[0], two)
        } else {
            (kinds[1], one)
        };
        let level = self
            .tlb
            .levels
            .iter_mut()
            .find(|level| level.kind == fewer && level.level == 1);
        let entries = level.and_then(|level| level.entries.as_mut());
        if let Some(entries) = entries.filter(|entries| entries.high < most.low) {
            entries.high = most.high;
            self.doubt(
                "tlb-neighbour",
                format!(
                    "{fewer} pages share {most} entries but seem to have fewer: a neighbour was busy; measure again"
                ),
            );
        }
    }
}
