//! Walks in stages cost what they cost a slow and obvious walker: one access after the other, with lists for caches.

use model::Bytes;
use model::latency::Frames;
use proptest::prelude::*;

use crate::random::mixed;
use crate::setting::Setting;
use crate::tlb::given::{Given, Step};
use crate::tlb::reference::{guest_page, settings};
use crate::walk::radix::{HOST, NEXT, TABLES};
use crate::{Cache, Engine, Event, Mode, PLACES, Scatter, Shared, WalkCaches, WalkCounts, WalkerSpec};

const SIZES: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

/// A fully associative LRU list: was it there?
fn touched(list: &mut Vec<(u32, u64)>, entries: u32, key: (u32, u64)) -> bool {
    let place = list.iter().position(|&held| held == key);
    place.map(|place| list.remove(place));
    list.insert(0, key);
    list.truncate(entries as usize);
    place.is_some()
}

struct Slow<'a> {
    spec: &'a WalkerSpec,
    nested: bool,
    guest: [Vec<(u32, u64)>; 4],
    host: [Vec<(u32, u64)>; 4],
    nested_tlb: Vec<(u32, u64)>,
    ranges: Vec<u64>,
    caches: Vec<Vec<Vec<(u32, u64)>>>,
    counts: WalkCounts,
}

impl<'a> Slow<'a> {
    fn new(spec: &'a WalkerSpec, nested: bool) -> Self {
        let sets = |cache: &Cache| vec![Vec::new(); cache.sets as usize];
        Self {
            spec,
            nested,
            guest: Default::default(),
            host: Default::default(),
            nested_tlb: Vec::new(),
            ranges: Vec::new(),
            caches: spec.data_caches.iter().map(sets).collect(),
            counts: WalkCounts::default(),
        }
    }

    fn access(&mut self, address: u64, setting: Setting) {
        self.counts.walks += 1;
        let host = setting
            .host_page
            .filter(|_| self.nested)
            .map(|host| host.0.trailing_zeros());
        let page = match (guest_page(setting, address), setting.host_page) {
            (guest, Some(below)) if host.is_none() => guest.min(below),
            (guest, _) => guest,
        };
        for (level, offset) in entries(&mut self.guest, self.spec.caches, self.spec.levels, address, page.0) {
            let entry = TABLES + NEXT * level + offset;
            if let Some(host) = host
                && !touched(&mut self.nested_tlb, self.spec.nested_tlb, (host, entry >> host))
            {
                self.walk_host(entry, host);
            }
            self.counts.guest_references += 1;
            self.read(entry, false);
        }
        if let Some(host) = host {
            let address = match self.spec.scatter {
                Some(scatter) if page.0 == 4096 => scatter.place(self.in_order_of_use(address)),
                _ => address,
            };
            self.walk_host(address, host);
        }
        self.read(address, true);
    }

    fn in_order_of_use(&mut self, address: u64) -> u64 {
        let range = address >> 21;
        if !self.ranges.contains(&range) {
            self.ranges.push(range);
        }
        let place = self.ranges.iter().position(|&used| used == range).expect("just there");
        ((place as u64) << 21) | (address % (1 << 21))
    }

    fn walk_host(&mut self, address: u64, host: u32) {
        let (caches, levels) = (self.spec.caches, self.spec.host_levels);
        for (level, offset) in entries(&mut self.host, caches, levels, address, 1 << host) {
            self.counts.host_references += 1;
            self.read(HOST + NEXT * level + offset, false);
        }
    }

    fn read(&mut self, byte: u64, is_data: bool) {
        let scattered = ((mixed(byte >> 12) % (1 << 40)) << 12) | (byte % 4096);
        let mut place = PLACES - 1;
        for (level, (cache, sets)) in self.spec.data_caches.iter().zip(&mut self.caches).enumerate() {
            let is_scattered = self.spec.shared != Shared::InOrder && level == 2;
            let line = if is_scattered { scattered } else { byte } >> 6;
            let is_sliced = is_scattered || cache.sets.is_power_of_two();
            let in_slice = if is_sliced { 1 << cache.sets.trailing_zeros() } else { 1 };
            let slice = ((mixed(line) >> 32) * (u64::from(cache.sets) / in_slice)) >> 32;
            let set = slice * in_slice + line % in_slice;
            if touched(&mut sets[set as usize], cache.ways, (0, line)) {
                place = level;
                break;
            }
        }
        if !self.caches.is_empty() {
            let lines = if is_data {
                &mut self.counts.data_lines
            } else {
                &mut self.counts.table_lines
            };
            lines[place] += 1;
        }
    }
}

/// Level and offset of each entry that a walk of one table reads.
fn entries(
    known: &mut [Vec<(u32, u64)>; 4],
    caches: WalkCaches,
    levels: u8,
    address: u64,
    page: u64,
) -> Vec<(u64, u64)> {
    let (leaf, levels) = (1 + (page.trailing_zeros() - 12) / 9, u32::from(levels));
    let mut first = leaf;
    while first < levels {
        let cache = (first - 1) as usize;
        if touched(&mut known[cache], caches.0[cache], (0, address >> (12 + 9 * first))) {
            break;
        }
        first += 1;
    }
    let offset = |level: u32| (u64::from(level), (address >> (12 + 9 * (level - 1))) * 8);
    (leaf..=first).rev().map(offset).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = prop_oneof![
        0_u64..(1 << 22),
        (0_u64..400).prop_map(|page| page << 12 | 1 << 33),
        (0_u64..200).prop_map(|table| table << 21),
        (0_u64..50).prop_map(|table| table << 30 | 0x1234_5000),
        (0_u64..20).prop_map(|table| table << 39),
    ];
    let step =
        (address, 0..200_u32).prop_map(|(address, what)| if what > 0 { Ok(address) } else { Err(Event::Switch) });
    prop::collection::vec(step, 1..2500)
}

fn walk_caches() -> impl Strategy<Value = WalkCaches> {
    let entries = |most: u32| prop_oneof![Just(0), 1..=most];
    (entries(40), entries(8), entries(4), entries(3)).prop_map(|(a, b, c, d)| WalkCaches([a, b, c, d]))
}

fn scatter() -> impl Strategy<Value = Scatter> {
    let measured = (prop::array::uniform10(0_u64..100_000), 1_u64..1 << 36).prop_map(|(pages_by_run, spread)| Frames {
        pages_by_run,
        spread: Bytes(spread),
    });
    prop_oneof![
        (1.0..600.0, 1_u64..1 << 36).prop_map(|(run, spread)| Scatter::even(run, Bytes(spread))),
        measured.prop_map(|frames| Scatter::of(&frames)),
    ]
}

fn spec() -> impl Strategy<Value = WalkerSpec> {
    let cache = || {
        let sets = prop_oneof![Just(1_u32), Just(4), Just(16), Just(12)];
        (sets, 1_u32..=40).prop_map(|(sets, ways)| Cache::new(sets, ways))
    };
    let levels = 4_u8..=5;
    let tlb = prop_oneof![Just(0_u32), 1..12_u32, 30..140_u32];
    let caches = prop::collection::vec(cache(), 0..4);
    (
        (levels.clone(), levels),
        walk_caches(),
        tlb,
        caches,
        any::<bool>(),
        prop::option::of(scatter()),
    )
        .prop_map(
            |((levels, host_levels), caches, nested_tlb, data_caches, is_hashed, scatter)| WalkerSpec {
                scatter,
                levels,
                host_levels,
                caches,
                nested_tlb,
                shared: if is_hashed { Shared::Hashed } else { Shared::InOrder },
                fetches_ahead: false,
                data_caches,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_walk_reads_what_a_slow_walker_reads_and_finds_it_in_the_same_cache(
        steps in steps(), spec in spec(), setting in settings(SIZES), mode in 0..3_usize,
    ) {
        let mode = [Mode::Native, Mode::Nested, Mode::Shadow][mode];
        let setting = Setting { mode, ..setting };
        let mut engine = Engine::new(&[], setting, std::slice::from_ref(&spec));
        engine.run(&mut Given(&steps), u64::MAX).expect("few regions");
        let mut slow = Slow::new(&spec, mode == Mode::Nested);
        for step in &steps {
            match step {
                Ok(address) => slow.access(*address, setting),
                Err(_) => slow.guest = Default::default(),
            }
        }
        prop_assert_eq!(engine.counts().walkers[0], slow.counts);
    }
}
