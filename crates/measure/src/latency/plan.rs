//! Which points, in which order, and which kinds at the same time. Pure.

use model::latency::{Access, Pattern};
use model::{Bytes, PageKind};

use super::spec::Spec;
use crate::distinct;

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Target {
    pub(super) kind: PageKind,
    pub(super) pattern: Pattern,
    pub(super) access: Access,
    pub(super) bytes: Bytes,
}

/// Working sets up to twice this many bytes take the same time, larger ones more.
const SMALL: f64 = 262_144.0;

impl Target {
    /// Its part of the time: a large working set takes longer to converge, and its blocks hold fewer steps.
    pub(super) fn weight(&self) -> f64 {
        (self.bytes.0 as f64 / SMALL).log2().clamp(1.0, 12.0)
    }
}

/// Working sets from `from` to `to`, two per octave (a power of two and one and a half of it), ends included.
pub fn sizes(from: Bytes, to: Bytes) -> Vec<Bytes> {
    let line = chase::order::LINE;
    let sizes = (0..63)
        .flat_map(|octave: u32| [1u64 << octave, (1 << octave) + ((1 << octave) >> 1)])
        .filter(|&size| size > from.0 && size < to.0 && size % line == 0)
        .chain([from.0, to.0]);
    distinct(sizes.map(Bytes))
}

/// Every combination that the spec asks for, once.
pub(super) fn points(spec: &Spec) -> Vec<Target> {
    let mut points = Vec::new();
    for &kind in &spec.kinds {
        for &pattern in &spec.patterns {
            for &access in &spec.accesses {
                points.extend(spec.sizes.iter().map(|&bytes| Target {
                    kind,
                    pattern,
                    access,
                    bytes,
                }));
            }
        }
    }
    distinct(points)
}

/// No arena ends earlier. A CPU fetches ahead over the end of a working set if there is memory, which shows where the set
/// fills a cache to its last line (seen: L1 of 32 KiB, 4.4 cycles instead of 4.0); it is to be equal for all kinds.
const LEAST_ARENA: Bytes = Bytes::mib(2);

/// Places for a small working set, as a multiple of its size.
const PLACES: u64 = 16;

/// Over how much memory a working set is moved from visit to visit; its own size if it is not. Which physical pages it lies on
/// decides how well it fits into a cache as small as the private one, and differs from run to run: each visit draws others,
/// so that the interval holds what that makes. In larger caches it averages out.
pub(super) fn reach(private_cache: Option<Bytes>, bytes: Bytes) -> Bytes {
    let moves = private_cache.is_some_and(|cache| bytes.0 <= 2 * cache.0);
    Bytes(if moves { PLACES * bytes.0 } else { bytes.0 })
}

/// The memory that a kind's working sets lie in, one over the other.
pub(super) fn arena(spec: &Spec, kind: PageKind) -> Bytes {
    let largest = spec.sizes.iter().copied().max().unwrap_or_default();
    let reaches = spec.sizes.iter().map(|&bytes| reach(spec.private_cache, bytes));
    let page = kind.x86_size();
    match kind.pool() {
        Some(_) => largest.round_up_to(page),
        None => {
            // In a small control group they have less room to move.
            let reach = reaches.max().unwrap_or_default().min(Bytes(spec.available.0 / 8));
            reach.max(largest).round_up_to(page).max(LEAST_ARENA)
        }
    }
}

/// A kind's memory that is of no pool: pool pages are taken already, or were counted when the pool was filled.
pub(super) fn own(spec: &Spec, kind: PageKind) -> Bytes {
    match kind.pool() {
        Some(_) => Bytes(0),
        None => arena(spec, kind),
    }
}

/// Which kinds have their arenas at the same time: all of them, so that they are compared under the same conditions,
/// unless together they would take more than half of the memory that can be had; then one after the other.
pub(super) fn shifts(spec: &Spec) -> Vec<Vec<PageKind>> {
    let kinds = distinct(spec.kinds.iter().copied());
    let taken: u64 = kinds.iter().map(|&kind| own(spec, kind).0).sum();
    match taken <= spec.available.0 / 2 {
        true => vec![kinds],
        false => kinds.into_iter().map(|kind| vec![kind]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{arena, points, reach, shifts, sizes};
    use crate::latency::Spec;
    use crate::latency::must_have_room;
    use model::latency::{Access, Pattern};
    use model::{Bytes, PageKind};

    fn spec(kinds: Vec<PageKind>, available: Bytes) -> Spec {
        Spec {
            kinds,
            sizes: sizes(Bytes::kib(16), Bytes::gib(2)),
            patterns: vec![Pattern::RandomLine],
            accesses: vec![Access::Read],
            budget: None,
            seed: 1,
            cpu: None,
            node: None,
            one_node: true,
            private_cache: None,
            last_cache: None,
            available,
        }
    }

    #[test]
    fn a_curve_to_two_gib_has_35_points_and_its_ends() {
        let sizes = sizes(Bytes::kib(16), Bytes::gib(2));
        assert_eq!(sizes.len(), 35);
        assert_eq!(
            (sizes[0], sizes[1], sizes[34]),
            (Bytes::kib(16), Bytes::kib(24), Bytes::gib(2))
        );
    }

    #[test]
    fn no_arena_ends_with_a_small_working_set_but_pool_pages_are_never_more_than_needed() {
        let mut small = spec(Vec::new(), Bytes::gib(8));
        small.sizes = vec![Bytes::kib(32)];
        assert_eq!(arena(&small, PageKind::Base), Bytes::mib(2));
        assert_eq!(arena(&small, PageKind::Hugetlb(Bytes::kib(64))), Bytes::kib(64));
    }

    #[test]
    fn working_sets_of_a_private_cache_have_room_to_move_and_larger_ones_stay() {
        let mut small = spec(Vec::new(), Bytes::gib(8));
        small.sizes = vec![Bytes::kib(256), Bytes::mib(4)];
        small.private_cache = Some(Bytes::kib(512));
        assert_eq!(reach(small.private_cache, Bytes::kib(256)), Bytes::mib(4));
        assert_eq!(reach(small.private_cache, Bytes::mib(4)), Bytes::mib(4));
        small.sizes = vec![Bytes::mib(1)];
        assert_eq!(arena(&small, PageKind::Base), Bytes::mib(16));
        small.available = Bytes::mib(24);
        assert_eq!(
            arena(&small, PageKind::Base),
            Bytes::mib(3),
            "an eighth of what there is"
        );
    }

    #[test]
    fn odd_ends_are_kept() {
        assert_eq!(
            sizes(Bytes(100_000), Bytes(200_000)),
            [100_000, 131_072, 196_608, 200_000].map(Bytes)
        );
        assert_eq!(sizes(Bytes::mib(1), Bytes::mib(1)), [Bytes::mib(1)]);
    }

    #[test]
    fn a_point_asked_for_twice_is_measured_once() {
        let twice = spec(vec![PageKind::Base, PageKind::Base], Bytes::gib(16));
        assert_eq!(points(&twice).len(), 35);
        assert_eq!(shifts(&twice), [[PageKind::Base]]);
    }

    #[test]
    fn kinds_run_together_where_memory_allows_else_apart_else_not_at_all() {
        let kinds = vec![PageKind::Base, PageKind::Thp];
        let fit = |gib| {
            let spec = spec(kinds.clone(), Bytes::gib(gib));
            (shifts(&spec).len(), must_have_room(&spec).is_ok())
        };
        assert_eq!([8, 7, 2].map(fit), [(1, true), (2, true), (2, false)]);
    }
}
