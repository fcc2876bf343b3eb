//! The fast TLBs miss exactly where the slow and obvious ones do.

use model::Bytes;
use proptest::prelude::*;

use crate::random::mixed;
use crate::setting::{Mode, Setting};
use crate::tlb::front::Front;
use crate::tlb::reference::{Reference, settings, side};
use crate::{Access, Array, Held, Side};

const SIZES: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];
/// What a test does to both models.
#[derive(Clone, Copy, Debug)]
enum Step {
    Access(Access),
    Flush,
    Invalidate(u64),
}

/// Two levels: the first split by side and shared by sizes or not, the second unified.
fn arrays() -> impl Strategy<Value = Vec<Array>> {
    let geometry = (
        1_u32..=12,
        prop_oneof![Just(1_u32), Just(2), Just(3), Just(4), Just(16)],
    );
    let first = (geometry.clone(), any::<bool>());
    (
        first,
        (
            prop_oneof![1_u32..=36, Just(64), Just(72), Just(100), Just(128), Just(129)],
            geometry,
        ),
    )
        .prop_map(|((l1, split), (ways, l2))| {
            let array = |level, (ways, sets): (u32, u32), pages: &[Bytes]| Array::new(level, pages, sets, ways);
            let mut all = if split {
                let sided = |sides: &[Side], pages| Array {
                    sides: sides.to_vec(),
                    ..array(1, l1, pages)
                };
                vec![
                    sided(&[Side::Load, Side::Store], &SIZES[..1]),
                    sided(&[Side::Load], &SIZES[1..]),
                    sided(&[Side::Fetch], &SIZES[..2]),
                ]
            } else {
                vec![array(1, l1, &SIZES)]
            };
            all.push(array(2, (ways, l2.1), &SIZES[..2]));
            all
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few pages, so that sets fill and hits occur; some far apart.
    let address = prop_oneof![
        (0_u64..160, 0_u64..2).prop_map(|(page, line)| page * 4096 + line * 64),
        (0_u64..64).prop_map(|page| page << 21),
        (0_u64..24).prop_map(|page| page << 30),
        (0_u64..40).prop_map(|page| (1 << 46) + page * 4096),
        // Base pages and huge ones of the same numbers.
        (1..12_u64, 0..4_u64, any::<bool>())
            .prop_map(|(range, page, huge)| (512 * range + page) << if huge { 21 } else { 12 }),
    ];
    let step = (address, any::<u8>(), 0..400_u32).prop_map(|(address, number, what)| match what {
        0 => Step::Flush,
        1..8 => Step::Invalidate(address),
        _ => Step::Access(Access::new(address, side(number))),
    });
    prop::collection::vec(step, 1..3000)
}

/// Walks by the fast model: the places of the accesses, and the counts of lookups and misses by level.
fn fast(front: &mut Front, steps: &[Step]) -> (Vec<usize>, Vec<(u64, u64)>) {
    let (mut walks, mut done) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Access(access) => {
                if front.misses(*access) {
                    walks.push(done);
                }
                done += 1;
            }
            Step::Flush => front.flush(),
            Step::Invalidate(address) => front.invalidate(*address),
        }
    }
    let counts = front.counts().map(|level| (level.lookups, level.misses));
    (walks, counts.collect())
}

fn slow(reference: &mut Reference, steps: &[Step]) -> (Vec<usize>, Vec<(u64, u64)>) {
    let (mut walks, mut done) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Access(access) => {
                if reference.access(*access) {
                    walks.push(done);
                }
                done += 1;
            }
            Step::Flush => reference.flush(),
            Step::Invalidate(address) => reference.invalidate(*address),
        }
    }
    (walks, reference.counts.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_geometry_page_size_and_flush_misses_where_the_slow_model_does(
        arrays in arrays(),
        setting in settings(SIZES),
        steps in steps(),
    ) {
        let mut front = Front::new(&arrays, setting);
        let mut reference = Reference::new(&arrays, setting);
        prop_assert_eq!(fast(&mut front, &steps), slow(&mut reference, &steps));
    }
}

#[test]
fn a_page_size_without_entries_is_walked_each_time() {
    let mut front = Front::new(
        &[Array::new(1, &[SIZES[0]], 16, 4)],
        Setting::new(Mode::Native, SIZES[1], SIZES[1]),
    );
    assert!((0..5).all(|_| front.misses(Access::load(0))));
}

#[test]
fn pages_of_both_sizes_compete_for_one_array_and_are_not_mistaken_for_each_other() {
    let setting = Setting::new(Mode::Native, SIZES[0], SIZES[0]).with_share(50);
    let is_huge = |address: u64| mixed(address >> 21) % 100 < 50;
    // The same number as a base page's and as a huge page's.
    let number = (512..).find(|&number| !is_huge(number << 12) && is_huge(number << 21));
    let number = number.expect("half of the ranges");
    let [base, huge] = [12, 21].map(|bits| Access::load(number << bits));
    let other = Access::load((number << 21) + (1 << 20));
    let mut front = Front::new(&[Array::new(1, &SIZES[..2], 1, 2)], setting);
    let mut misses = |accesses: &[Access]| accesses.iter().map(|&access| front.misses(access)).collect::<Vec<_>>();
    assert_eq!(
        misses(&[base, huge, other, base, huge]),
        [true, true, false, false, false]
    );
    let beside = Access::load(base.address() ^ (1 << 12));
    assert_eq!(
        misses(&[beside, huge, other, base]),
        [true, false, false, true],
        "two ways"
    );
    // One array for each size: nothing competes.
    let split = [Array::new(1, &[SIZES[0]], 1, 2), Array::new(1, &[SIZES[1]], 1, 1)];
    let mut front = Front::new(&split, setting);
    let lap = [base, huge, beside, other];
    let missed: Vec<bool> = [lap, lap]
        .concat()
        .into_iter()
        .map(|access| front.misses(access))
        .collect();
    assert_eq!(missed, [true, true, true, false, false, false, false, false]);
}

#[test]
fn two_halves_of_one_array_hold_what_they_are_for() {
    // As in Ice Lake's second level: base pages in all sets, huge pages in one half each.
    let held = |page, first, sets| Held { page, first, sets };
    let array = Array {
        holds: vec![held(SIZES[0], 0, 8), held(SIZES[1], 0, 4), held(SIZES[2], 4, 4)],
        ..Array::new(1, &SIZES, 8, 2)
    };
    assert_eq!(SIZES.map(|page| array.entries(page)), [16, 8, 8]);
    for (page, reach) in [(SIZES[0], 16), (SIZES[1], 8), (SIZES[2], 8)] {
        let misses = |pages: u64| {
            let mut front = Front::new(std::slice::from_ref(&array), Setting::new(Mode::Native, page, page));
            let lap: Vec<Access> = (0..pages).map(|number| Access::load(number * page.0)).collect();
            let laps = [&lap; 3].into_iter().flatten();
            laps.filter(|&&access| front.misses(access)).count() as u64
        };
        assert_eq!(misses(reach), reach, "{page}");
        assert!(misses(reach + 1) > reach + 1, "{page}");
    }
}
