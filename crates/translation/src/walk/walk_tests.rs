//! Walks read what the architecture says, and what a slow and obvious walker reads.

use model::Bytes;
use proptest::prelude::*;

use crate::setting::Setting;
use crate::tlb::given::{Given, Step};
use crate::{Array, Cache, Counts, Engine, Event, Mode, PLACES, Scatter, Shared, WalkCaches, WalkerSpec};

const SIZES: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];
/// A page that covers every address there is.
const ALL: Bytes = Bytes(1 << 58);

fn spec() -> WalkerSpec {
    WalkerSpec {
        levels: 4,
        host_levels: 4,
        caches: WalkCaches::default(),
        nested_tlb: 0,
        scatter: None,
        data_caches: Vec::new(),
        shared: Shared::InOrder,
        fetches_ahead: false,
    }
}

/// Everything that is counted where every access is walked, or those that a small TLB misses.
fn counted(arrays: &[Array], setting: Setting, walker: &WalkerSpec, steps: &[Step]) -> Counts {
    Engine::new(arrays, setting, std::slice::from_ref(walker)).run_pattern(&mut Given(steps), 0, u64::MAX)
}

#[test]
fn a_cold_walk_in_two_dimensions_reads_what_gandhi_and_others_count() {
    let [base, large, huge] = SIZES;
    let cases = [
        (4, base, base, 24),
        (5, base, base, 35),
        (4, base, large, 19),
        (4, large, large, 15),
        (4, base, huge, 14),
        (4, large, huge, 11),
        (4, huge, huge, 8),
    ];
    for (levels, guest, host, references) in cases {
        let walker = WalkerSpec {
            levels,
            host_levels: levels,
            ..spec()
        };
        let counts = counted(
            &[],
            Setting::new(Mode::Nested, guest, host),
            &walker,
            &[Ok(0x7f12_3456_7000)],
        );
        assert_eq!(
            counts.walkers[0].references(),
            references,
            "{levels} levels, {guest} on {host}"
        );
    }
    for (page, references) in [(base, 4), (large, 3), (huge, 2)] {
        let counts = counted(
            &[],
            Setting::new(Mode::Native, page, page),
            &spec(),
            &[Ok(0x7f12_3456_7000)],
        );
        assert_eq!(counts.walkers[0].references(), references, "{page}");
    }
}

#[test]
fn scattered_base_pages_have_a_line_of_the_hosts_table_each_where_eight_in_order_share_one() {
    const PAGES: u64 = 4096;
    let [base, large, _] = SIZES;
    // Large enough for all lines: each comes from memory once.
    let ordered = WalkerSpec {
        caches: WalkCaches([32, 8, 4, 2]),
        nested_tlb: 64,
        data_caches: vec![Cache::new(4096, 16)],
        ..spec()
    };
    let scattered = WalkerSpec {
        scatter: Some(Scatter::even(1.0, Bytes::gib(64))),
        ..ordered.clone()
    };
    let steps: Vec<_> = (0..PAGES).map(|page| Ok(page << 12)).collect();
    let lines = |walker: &WalkerSpec, setting| {
        let counts = counted(&[], setting, walker, &steps).walkers[0];
        counts.table_lines[PLACES - 1]
    };
    let nested = |walker, guest, host| lines(walker, Setting::new(Mode::Nested, guest, host));
    let (in_order, apart) = (nested(&ordered, base, base), nested(&scattered, base, base));
    assert!(
        (PAGES / 8..PAGES / 8 + 600).contains(&(in_order - PAGES / 8)),
        "{in_order}"
    );
    assert!(apart > in_order + PAGES * 7 / 8 - 200, "{in_order} {apart}");
    // A larger page is in one piece, and without a host no table depends on frames.
    assert_eq!(nested(&ordered, large, base), nested(&scattered, large, base));
    for mode in [Mode::Native, Mode::Shadow] {
        let setting = Setting::new(mode, base, base);
        assert_eq!(lines(&ordered, setting), lines(&scattered, setting), "{mode:?}");
    }
}

#[test]
fn a_shadow_walk_is_as_long_as_a_native_one_of_the_smaller_page() {
    let steps: Vec<_> = (0..5000_u64)
        .map(|number| Ok(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & 0x3fff_f000))
        .collect();
    for (guest, host) in [(1, 0), (0, 1), (1, 1)] {
        let (guest, host) = (SIZES[guest], SIZES[host]);
        let shadow = counted(&[], Setting::new(Mode::Shadow, guest, host), &spec(), &steps);
        let native = counted(
            &[],
            Setting::new(Mode::Native, guest.min(host), guest.min(host)),
            &spec(),
            &steps,
        );
        assert_eq!(shadow.walkers, native.walkers);
    }
}

#[test]
fn what_leaves_a_guest_under_shadow_paging_is_counted() {
    let page = |number: u64| number * 4096;
    let steps = [
        Ok(page(1)),
        Ok(page(2)),
        Ok(page(1)),
        Err(Event::Switch),
        Ok(page(1)),
        Err(Event::TableWrite(page(1))),
        Err(Event::Invalidate(page(1))),
        Ok(page(1)),
        Ok(page(2)),
    ];
    let arrays = [Array::new(1, &[SIZES[0]], 16, 4)];
    let shadow = counted(&arrays, Setting::new(Mode::Shadow, SIZES[0], SIZES[0]), &spec(), &steps).exits;
    assert_eq!(
        (
            shadow.hidden_faults,
            shadow.table_writes,
            shadow.invalidations,
            shadow.switches
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(shadow.total(), 6);
    let nested = counted(&arrays, Setting::new(Mode::Nested, SIZES[0], SIZES[0]), &spec(), &steps);
    assert_eq!((nested.exits.total(), nested.walkers[0].walks), (0, 5));
}

#[test]
fn small_blocks_and_large_ones_count_alike() {
    let steps: Vec<_> = (0..9000_u64)
        .map(|number| Ok(number.wrapping_mul(0x2545_f491_4f6c_dd1d) & 0x7f_f000))
        .collect();
    let apart: Vec<_> = steps
        .iter()
        .flat_map(|step| [*step, Err(Event::TableWrite(0))])
        .collect();
    let walker = WalkerSpec {
        caches: WalkCaches([4, 2, 2, 0]),
        data_caches: vec![Cache::new(8, 4)],
        ..spec()
    };
    let arrays = [Array::new(1, &[SIZES[0]], 4, 4), Array::new(2, &[SIZES[0]], 16, 8)];
    let run = |steps: &[Step]| counted(&arrays, Setting::new(Mode::Native, SIZES[0], SIZES[0]), &walker, steps);
    assert_eq!(run(&steps), run(&apart));
}

/// A fully associative LRU list: was it there?
fn touched(list: &mut Vec<u64>, entries: u32, key: u64) -> bool {
    let place = list.iter().position(|&held| held == key);
    place.map(|place| list.remove(place));
    list.insert(0, key);
    list.truncate(entries as usize);
    place.is_some()
}

/// References of a slow native walker: page-walk caches as lists.
fn slow_references(addresses: &[u64], page: Bytes, levels: u32, caches: [u32; 4]) -> u64 {
    let leaf = 1 + (page.0.trailing_zeros() - 12) / 9;
    let mut lists: [Vec<u64>; 4] = Default::default();
    let mut references = 0;
    for address in addresses {
        let mut level = leaf;
        // From the leaf's table upwards: which is the lowest table whose place is known?
        while level < levels {
            let known = (level - 1) as usize;
            if touched(&mut lists[known], caches[known], address >> (12 + 9 * level)) {
                break;
            }
            level += 1;
        }
        references += u64::from(level - leaf + 1);
    }
    references
}

fn addresses() -> impl Strategy<Value = Vec<u64>> {
    let address = prop_oneof![
        0_u64..(1 << 22),
        (0_u64..200).prop_map(|table| table << 21),
        (0_u64..50).prop_map(|table| table << 30 | 0x1234_5000),
        (0_u64..20).prop_map(|table| table << 39),
        (0_u64..8).prop_map(|table| table << 48),
    ];
    prop::collection::vec(address, 1..800)
}

fn walk_caches() -> impl Strategy<Value = [u32; 4]> {
    [0_u32..40, 0_u32..8, 0_u32..4, 0_u32..3]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn page_walk_caches_save_what_a_slow_walker_saves(
        addresses in addresses(), page in 0..3_usize, levels in 4_u8..=5, caches in walk_caches(),
    ) {
        let steps: Vec<_> = addresses.iter().map(|&address| Ok(address)).collect();
        let walker = WalkerSpec { levels, caches: WalkCaches(caches), ..spec() };
        let fast = counted(&[], Setting::new(Mode::Native, SIZES[page], SIZES[page]), &walker, &steps);
        prop_assert_eq!(fast.walkers[0].references(), slow_references(&addresses, SIZES[page], levels.into(), caches));
    }

    #[test]
    fn nested_is_native_where_host_pages_cover_everything(
        addresses in addresses(), page in 0..3_usize, levels in 4_u8..=5, caches in walk_caches(), tlb in 0_u32..64,
    ) {
        let steps: Vec<_> = addresses.iter().map(|&address| Ok(address)).collect();
        let walker = WalkerSpec {
            levels,
            caches: WalkCaches(caches),
            nested_tlb: tlb,
            scatter: None,
            data_caches: vec![Cache::new(4, 4), Cache::new(24, 12)],
                ..spec()
        };
        let arrays = [Array::new(1, &SIZES, 4, 4)];
        let nested = counted(&arrays, Setting::new(Mode::Nested, SIZES[page], ALL), &walker, &steps);
        let native = counted(&arrays, Setting::new(Mode::Native, SIZES[page], SIZES[page]), &walker, &steps);
        prop_assert_eq!(nested, native);
    }

    #[test]
    fn caches_never_add_references_and_every_reference_is_found_somewhere(
        addresses in addresses(), guest in 0..3_usize, host in 0..3_usize, caches in walk_caches(), tlb in 0_u32..64,
    ) {
        let steps: Vec<_> = addresses.iter().map(|&address| Ok(address)).collect();
        let setting = Setting::new(Mode::Nested, SIZES[guest], SIZES[host]);
        let without = counted(&[], setting, &spec(), &steps).walkers[0];
        let walker = WalkerSpec {
            caches: WalkCaches(caches),
            nested_tlb: tlb,
            scatter: None,
            data_caches: vec![Cache::new(16, 8)],
            ..spec()
        };
        let with = counted(&[], setting, &walker, &steps).walkers[0];
        let (g, h) = (4 - guest as u64, 4 - host as u64);
        prop_assert_eq!(without.references(), addresses.len() as u64 * ((g + 1) * (h + 1) - 1));
        prop_assert!(with.references() <= without.references());
        prop_assert!(with.references() >= 2 * addresses.len() as u64);
        prop_assert_eq!(with.table_lines.iter().sum::<u64>(), with.references());
    }
}
