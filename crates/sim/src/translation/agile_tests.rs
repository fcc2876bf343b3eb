//! Agile paging reads what its publication counts, and switches tables as a slow and obvious hypervisor does.

use model::Bytes;
use proptest::prelude::*;

use super::given::{Given, Step};
use super::shadow::Exits;
use super::{Array, Backing, Cache, Counts, Engine, Event, Layout, Mode, Setup, Shared, WalkCaches, WalkerSpec};

const SIZES: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

fn spec(levels: u8) -> WalkerSpec {
    WalkerSpec {
        levels,
        host_levels: levels,
        caches: WalkCaches::NONE,
        host_caches: WalkCaches::NONE,
        nested_tlb: 0,
        scatter: None,
        data_caches: Vec::new(),
        with_data: false,
        shared: Shared::InOrder,
    }
}

fn counted(arrays: &[Array], backing: Backing, mode: Mode, walker: &WalkerSpec, every: u64, steps: &[Step]) -> Counts {
    let setup = Setup {
        arrays: arrays.to_vec(),
        layout: Layout::uniform(backing),
        mode,
        tagged: false,
    };
    let mut engine = Engine::new(setup, std::slice::from_ref(walker)).with_interval(every);
    engine.run(&mut Given(steps), u64::MAX).expect("few regions");
    engine.counts()
}

fn write(address: u64, level: u8) -> Step {
    Err(Event::TableWrite { address, level })
}

#[test]
fn a_cold_walk_reads_four_entries_and_four_more_for_each_nested_level() {
    let at = 0x7f12_3456_7000;
    let references = |mode, steps: &[Step]| {
        let backing = Backing::nested(SIZES[0], SIZES[0]);
        counted(&[], backing, mode, &spec(4), 1000, steps).walkers[0].references()
    };
    for level in 1..=4 {
        let steps = [write(at, level), write(at, level), Ok(at)];
        assert_eq!(references(Mode::Agile, &steps), 4 + 4 * u64::from(level));
        assert_eq!(references(Mode::Agile, &steps[1..]), 4, "one write switches nothing");
    }
    assert_eq!(references(Mode::Nested, &[Ok(at)]), 24);
}

#[test]
fn a_table_that_is_no_longer_written_is_shadowed_again() {
    let at = 0x7f12_3456_7000;
    let mut steps = vec![write(at, 1), write(at, 1), write(at, 1)];
    // The interval of the writes, one without any, and one more access.
    steps.extend([Ok(at); 21]);
    let counts = counted(
        &[],
        Backing::nested(SIZES[0], SIZES[0]),
        Mode::Agile,
        &spec(4),
        10,
        &steps,
    );
    assert_eq!(counts.walkers[0].references(), 20 * 8 + 4);
    let Exits {
        table_writes,
        hidden_faults,
        ..
    } = counts.exits;
    assert_eq!(
        (table_writes, hidden_faults),
        (2, 1),
        "the third write is free; the page faults once it is shadowed"
    );
}

/// A table as a list has it.
struct Table {
    level: u32,
    number: u64,
    writes: u32,
    is_nested: bool,
}

/// The hypervisor, one step after the other, with lists.
struct Slow {
    backing: Backing,
    levels: u32,
    tables: Vec<Table>,
    shadowed: Vec<u64>,
    references: u64,
    exits: Exits,
}

fn leaf(page: Bytes) -> u32 {
    1 + (page.0.trailing_zeros() - 12) / 9
}

impl Slow {
    fn nested_from(&self, address: u64) -> u32 {
        let above = |table: &&Table| table.is_nested && address >> (12 + 9 * table.level) == table.number;
        self.tables
            .iter()
            .filter(above)
            .map(|table| table.level)
            .max()
            .unwrap_or(0)
    }

    fn access(&mut self, address: u64) {
        let host = self.backing.host.expect("a host");
        let from = self.nested_from(address);
        if from > 0 {
            let levels = self.levels + 1 - leaf(self.backing.guest);
            let nested = from + 1 - leaf(self.backing.guest);
            self.references += u64::from(levels + nested * (self.levels + 1 - leaf(host)));
            return;
        }
        let page = self.backing.entry();
        self.references += u64::from(self.levels + 1 - leaf(page));
        let page = address / page.0 * page.0;
        if !self.shadowed.contains(&page) {
            self.exits.hidden_faults += 1;
            self.shadowed.push(page);
        }
    }

    fn write(&mut self, address: u64, level: u8) {
        let leaf = leaf(self.backing.guest);
        let level = u32::from(level).max(leaf);
        let number = address >> (12 + 9 * level);
        let is_nested = self.nested_from(address) >= level;
        let known = self
            .tables
            .iter()
            .position(|table| (table.level, table.number) == (level, number));
        let place = known.unwrap_or(self.tables.len());
        if known.is_none() {
            self.tables.push(Table {
                level,
                number,
                writes: 0,
                is_nested: false,
            });
        }
        self.tables[place].writes += 1;
        if is_nested {
            return;
        }
        self.exits.table_writes += 1;
        if level == leaf {
            let page = self.backing.guest.0;
            self.shadowed.retain(|&shadowed| shadowed / page != address / page);
        }
        if self.tables[place].writes >= 2 {
            self.tables[place].is_nested = true;
            self.shadowed.retain(|&shadowed| shadowed >> (12 + 9 * level) != number);
        }
    }

    fn end_of_interval(&mut self) {
        for table in &mut self.tables {
            table.is_nested &= table.writes > 0;
            table.writes = 0;
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = prop_oneof![
        (0_u64..1200).prop_map(|page| page << 12),
        (0_u64..40).prop_map(|table| table << 21 | 0x3000),
        (0_u64..6).prop_map(|table| table << 30 | 0x5000),
        (0_u64..3).prop_map(|table| table << 39),
    ];
    let step = (address, 1..=4_u8, 0..40_u32).prop_map(|(address, level, what)| match what {
        0..3 => write(address, 1),
        3 => write(address, level),
        4 => Err(Event::Invalidate(address)),
        _ => Ok(address),
    });
    prop::collection::vec(step, 1..1500)
}

fn backing() -> impl Strategy<Value = Backing> {
    (0..3_usize, 0..3_usize).prop_map(|(guest, host)| Backing::nested(SIZES[guest], SIZES[host]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn writes_decide_which_levels_are_nested_as_a_slow_hypervisor_decides(
        steps in steps(), backing in backing(), levels in 4_u8..=5, every in 1_u64..200,
    ) {
        let counts = counted(&[], backing, Mode::Agile, &spec(levels), every, &steps);
        let mut slow = Slow {
            backing,
            levels: levels.into(),
            tables: Vec::new(),
            shadowed: Vec::new(),
            references: 0,
            exits: Exits::default(),
        };
        let mut passed = 0;
        for step in &steps {
            match *step {
                Ok(address) => {
                    slow.access(address);
                    passed += 1;
                    if passed % every == 0 {
                        slow.end_of_interval();
                    }
                }
                Err(Event::TableWrite { address, level }) => slow.write(address, level),
                Err(Event::Invalidate(address)) => {
                    slow.exits.invalidations += u64::from(slow.nested_from(address) == 0);
                }
                Err(_) => unreachable!("no other events"),
            }
        }
        prop_assert_eq!(counts.walkers[0].references(), slow.references);
        prop_assert_eq!(counts.exits, slow.exits);
    }

    #[test]
    fn without_writes_agile_paging_is_shadow_paging(
        steps in steps(), backing in backing(), entries in [0_u32..40, 0_u32..8, 0_u32..4, 0_u32..3],
    ) {
        let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Err(Event::TableWrite { .. }))).collect();
        let walker = WalkerSpec {
            caches: WalkCaches(entries),
            data_caches: vec![Cache::lru(4, 4), Cache::lru(64, 8)],
            with_data: true,
            ..spec(4)
        };
        let arrays = [Array::shared(1, &SIZES, 4, 4)];
        let agile = counted(&arrays, backing, Mode::Agile, &walker, 100, &steps);
        prop_assert_eq!(agile, counted(&arrays, backing, Mode::Shadow, &walker, 100, &steps));
    }
}
