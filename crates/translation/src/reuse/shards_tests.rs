//! Curves equal Mattson's at rate 1, and are near them where pages are sampled.

use model::Bytes;
use proptest::prelude::*;

use super::{Shards, range};
use crate::patterns::Pattern;
use crate::{Access, Accesses, BLOCK};

const BASE: Bytes = Bytes::kib(4);

/// Mattson's stack, searched page by page: for each access the number of other pages since the one before, if there was one.
fn stack_distances(pages: &[u64]) -> Vec<Option<usize>> {
    let mut stack: Vec<u64> = Vec::new();
    let distance = |&page: &u64| {
        let place = stack.iter().position(|&held| held == page);
        place.map(|place| stack.remove(place));
        stack.insert(0, page);
        place
    };
    pages.iter().map(distance).collect()
}

fn loads(pages: &[u64]) -> Vec<Access> {
    pages.iter().map(|page| Access::load(page * BASE.0 + 64)).collect()
}

fn pages() -> impl Strategy<Value = Vec<u64>> {
    let page = prop_oneof![0_u64..10, 0_u64..300, (0_u64..50).prop_map(|page| page << 30)];
    prop::collection::vec(page, 1..4000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn at_rate_1_a_curve_is_that_of_mattson(pages in pages(), block in 1_usize..3000) {
        let distances = stack_distances(&pages);
        let (mut rate, mut size) = (Shards::new(BASE, usize::MAX), Shards::new(BASE, 1000));
        for block in loads(&pages).chunks(block) {
            rate.block(block);
            size.block(block);
        }
        for entries in 0..400_usize {
            let misses = distances.iter().filter(|distance| distance.is_none_or(|distance| distance >= entries)).count();
            let expected = misses as f64 / pages.len() as f64;
            prop_assert_eq!(rate.miss_ratio(entries as u64), expected);
            prop_assert_eq!(size.miss_ratio(entries as u64), expected);
        }
    }

    #[test]
    fn no_more_pages_are_kept_than_wanted_and_curves_fall(pages in pages(), most in 1_usize..50) {
        let mut curve = Shards::new(BASE, most);
        for block in loads(&pages).chunks(100) {
            curve.block(block);
            prop_assert!(curve.by_hash.len() <= most);
        }
        let ratios: Vec<f64> = (0..400).map(|entries| curve.miss_ratio(entries)).collect();
        prop_assert!(ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio)));
        prop_assert!(ratios.is_sorted_by(|more, fewer| more >= fewer));
    }
}

/// Curves over 1 GiB: exact, and of 2,048 pages at most.
fn curves(pattern: Pattern, accesses: usize) -> [Shards; 2] {
    let mut curves = [usize::MAX, 2048].map(|most| Shards::new(BASE, most));
    let (mut generator, mut block) = (pattern.threads(Bytes::gib(1), 7, 1), Vec::with_capacity(BLOCK));
    for _ in 0..accesses / BLOCK {
        block.clear();
        generator.fill(&mut block).expect("patterns do not fail");
        curves.iter_mut().for_each(|curve| curve.block(&block));
    }
    curves
}

#[test]
fn sampled_curves_are_near_the_exact_ones() {
    // One sampled page stands for about 128: fewer entries are not resolved.
    let sizes: Vec<u64> = (7..18).map(|power| 1 << power).collect();
    for pattern in [
        Pattern::Random,
        Pattern::Chase,
        Pattern::Zipf,
        Pattern::Stream,
        Pattern::Stride,
        Pattern::Btree,
    ] {
        let [exact, sampled] = curves(pattern, 3_000_000);
        let error = |&entries: &u64| (sampled.miss_ratio(entries) - exact.miss_ratio(entries)).abs();
        let errors: Vec<f64> = sizes.iter().map(error).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(mean < 0.04, "{}: {errors:?}", pattern.name());
    }
}

#[test]
fn ranges_follow_each_other_and_small_ones_hold_one_distance() {
    assert!((0..16_384).all(|distance| range(distance) == distance as usize));
    let ranges: Vec<usize> = (0..1_000_000).map(range).collect();
    assert!(ranges.windows(2).all(|pair| pair[1] - pair[0] <= 1));
    assert_eq!(range(u64::MAX), (1 << 13) * 52 - 1);
}
