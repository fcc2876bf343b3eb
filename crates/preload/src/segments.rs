//! Cuts a region into stretches by the layout's rules, and each stretch to whole pages of its kind (pure).

use core::ops::Range;

use preload_abi::{Kind, Rule};

use crate::linux::round_up;

/// Bytes of a region, counted from its start, and the kind ordered for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
}

impl Segment {
    /// The part that whole pages of this size can back: the region begins on a border of the largest.
    pub(crate) fn whole_pages(&self, page: usize) -> Range<usize> {
        let start = round_up(self.range.start, page);
        let end = self.range.end & !(page - 1);
        start..end.max(start)
    }
}

/// The stretches of a region of `len` bytes whose first byte is byte `origin` of the growth, in ascending order.
pub(crate) fn segments(
    origin: u64,
    len: usize,
    default: Kind,
    rules: impl Iterator<Item = Rule> + Clone,
) -> impl Iterator<Item = Segment> + Clone {
    let mut rules = rules.filter(move |rule| rule.to > origin);
    let mut rule = rules.next();
    let mut at = 0;
    core::iter::from_fn(move || {
        // Rules that are wholly behind are done with.
        while rule.is_some_and(|rule| rule.to <= origin.saturating_add(at as u64)) {
            rule = rules.next();
        }
        if at >= len {
            return None;
        }
        let begins = rule.map_or(len, |rule| offset(rule.from, origin, len));
        let (end, kind) = match rule {
            Some(rule) if begins <= at => (offset(rule.to, origin, len), rule.kind),
            _ => (begins, default),
        };
        let range = at..end;
        at = end;
        Some(Segment { range, kind })
    })
}

/// A byte of the growth as a byte of the region, kept within it.
fn offset(byte: u64, origin: u64, len: usize) -> usize {
    (byte.saturating_sub(origin) as usize).min(len)
}

#[cfg(test)]
mod tests {
    use preload_abi::{Kind, Rule};

    use super::{Segment, segments};

    const POOL: Kind = Kind::Pool2M;

    fn rule(from: u64, to: u64, kind: Kind) -> Rule {
        Rule { from, to, kind }
    }

    fn cut(origin: u64, len: usize, rules: &[Rule]) -> Vec<(usize, usize, Kind)> {
        segments(origin, len, Kind::Base, rules.iter().copied())
            .map(|segment| (segment.range.start, segment.range.end, segment.kind))
            .collect()
    }

    #[test]
    fn without_rules_a_region_is_one_stretch_of_the_default() {
        assert_eq!(cut(7, 100, &[]), [(0, 100, Kind::Base)]);
        assert_eq!(cut(7, 0, &[]), []);
    }

    #[test]
    fn rules_cut_a_region_where_they_begin_and_end() {
        let rules = [rule(10, 20, POOL), rule(20, 30, Kind::Thp), rule(50, 1000, POOL)];
        assert_eq!(
            cut(0, 60, &rules),
            [
                (0, 10, Kind::Base),
                (10, 20, POOL),
                (20, 30, Kind::Thp),
                (30, 50, Kind::Base),
                (50, 60, POOL)
            ]
        );
        assert_eq!(cut(15, 10, &rules), [(0, 5, POOL), (5, 10, Kind::Thp)]);
        assert_eq!(cut(2000, 10, &rules), [(0, 10, Kind::Base)]);
    }

    #[test]
    fn every_byte_is_in_exactly_one_stretch() {
        let rules = [rule(3, 9, POOL), rule(9, 10, Kind::Thp), rule(17, 90, POOL)];
        for origin in 0..100_u64 {
            for len in 0..50_usize {
                let mut at = 0;
                for (start, end, kind) in cut(origin, len, &rules) {
                    assert!(start == at && end > start);
                    let byte = origin + start as u64;
                    let rule = rules.iter().find(|rule| (rule.from..rule.to).contains(&byte));
                    assert_eq!(kind, rule.map_or(Kind::Base, |rule| rule.kind));
                    at = end;
                }
                assert_eq!(at, len);
            }
        }
    }

    #[test]
    fn only_whole_pages_are_backed_by_large_ones() {
        for (range, whole) in [(0..10, 0..8), (1..10, 4..8), (5..7, 8..8), (4..8, 4..8), (0..3, 0..0)] {
            assert_eq!(Segment { range, kind: POOL }.whole_pages(4), whole);
        }
    }
}
