//! Virtual CPUs share page tables and nothing else, and an invalidation reaches all of them: as with a slow and obvious TLB for each.

use std::convert::Infallible;

use model::Bytes;
use proptest::prelude::*;

use super::patterns::Pattern;
use super::{Access, Accesses, Array, Counts, Engine, Event, Mode, Shared, WalkCaches, WalkerSpec};
use crate::setting::Setting;
use crate::tlb::reference::Reference;
use crate::walk::shadow::Exits;

const BASE: Bytes = Bytes::kib(4);

/// A virtual CPU's accesses, and the event behind them.
type Turn = (usize, Vec<u64>, Option<Event>);

struct Given<'a> {
    turns: &'a [Turn],
    vcpu: usize,
}

impl Accesses for Given<'_> {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
        let Some(((vcpu, accesses, event), rest)) = self.turns.split_first() else {
            return Ok(None);
        };
        self.turns = rest;
        self.vcpu = *vcpu;
        block.extend(accesses.iter().map(|&address| Access::load(address)));
        Ok(*event)
    }

    fn vcpu(&self) -> usize {
        self.vcpu
    }
}

fn arrays() -> Vec<Array> {
    vec![Array::new(1, &[BASE], 2, 2), Array::new(2, &[BASE], 4, 4)]
}

fn engine(mode: Mode, vcpus: usize) -> Engine {
    let walker = WalkerSpec {
        levels: 4,
        host_levels: 4,
        caches: WalkCaches::default(),
        nested_tlb: 0,
        scatter: None,
        data_caches: Vec::new(),
        shared: Shared::InOrder,
        fetches_ahead: false,
    };
    Engine::new(&arrays(), Setting::new(mode, BASE, BASE), &[walker]).with_vcpus(vcpus)
}

fn fast(mode: Mode, vcpus: usize, turns: &[Turn]) -> Counts {
    let mut engine = engine(mode, vcpus);
    engine
        .run(&mut Given { turns, vcpu: 0 }, u64::MAX)
        .expect("few regions");
    engine.counts()
}

/// Lookups and misses by level, exits, and interrupts.
fn slow(mode: Mode, vcpus: usize, turns: &[Turn]) -> (Vec<(u64, u64)>, Exits, u64) {
    let mut tlbs: Vec<Reference> = (0..vcpus)
        .map(|_| Reference::new(&arrays(), Setting::new(mode, BASE, BASE)))
        .collect();
    let (mut shadowed, mut exits, mut interrupts) = (Vec::new(), Exits::default(), 0);
    let is_shadow = mode == Mode::Shadow;
    for (vcpu, accesses, event) in turns {
        for &address in accesses {
            let is_walked = tlbs[*vcpu].access(Access::load(address));
            if is_shadow && is_walked && !shadowed.contains(&(address >> 12)) {
                shadowed.push(address >> 12);
                exits.hidden_faults += 1;
            }
        }
        match *event {
            Some(Event::TableWrite(address)) if is_shadow => {
                exits.table_writes += 1;
                shadowed.retain(|&page| page != address >> 12);
            }
            Some(Event::Invalidate(address)) => {
                for (number, tlb) in tlbs.iter_mut().enumerate() {
                    tlb.invalidate(address);
                    interrupts += u64::from(number != *vcpu);
                    exits.invalidations += u64::from(is_shadow);
                }
            }
            Some(Event::Switch) => {
                tlbs[*vcpu].flush();
                exits.switches += u64::from(is_shadow);
            }
            _ => {}
        }
    }
    let level = |number: usize| {
        let counts = tlbs.iter().map(|tlb| tlb.counts[number]);
        counts.fold((0, 0), |sum, level| (sum.0 + level.0, sum.1 + level.1))
    };
    (vec![level(0), level(1)], exits, interrupts)
}

fn turns(vcpus: usize) -> impl Strategy<Value = Vec<Turn>> {
    let address = (0_u64..60).prop_map(|page| page << 12);
    let event = (address.clone(), 0..10_u32).prop_map(|(address, what)| match what {
        0..2 => Some(Event::TableWrite(address)),
        2..5 => Some(Event::Invalidate(address)),
        5 => Some(Event::Switch),
        _ => None,
    });
    // No access and no event is the end.
    let turn = (0..vcpus, prop::collection::vec(address, 1..30), event);
    prop::collection::vec(turn, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shootdowns_reach_every_virtual_cpu_and_cost_what_a_slow_model_counts(
        (vcpus, turns) in (1..6_usize).prop_flat_map(|vcpus| (Just(vcpus), turns(vcpus))), mode in 0..3_usize,
    ) {
        let mode = [Mode::Native, Mode::Nested, Mode::Shadow][mode];
        let counts = fast(mode, vcpus, &turns);
        let levels: Vec<(u64, u64)> = counts.levels.iter().map(|level| (level.lookups, level.misses)).collect();
        prop_assert_eq!((levels, counts.exits, counts.shootdowns), slow(mode, vcpus, &turns));
        prop_assert_eq!(counts.walkers[0].walks, counts.levels[1].misses);
    }
}

#[test]
fn one_thread_is_the_pattern_itself_and_the_first_of_several() {
    let run = |vcpus: u16| {
        let mut engine = engine(Mode::Nested, vcpus.into());
        let mut threads = Pattern::Churn.threads(Bytes::mib(64), 3, vcpus);
        engine.run(&mut threads, 50_000).expect("few regions");
        engine.counts()
    };
    let mut alone = engine(Mode::Nested, 1);
    alone
        .run(&mut Pattern::Churn.threads(Bytes::mib(64), 3, 1), 50_000)
        .expect("few regions");
    assert_eq!(run(1), alone.counts());
    assert_eq!(run(1).shootdowns, 0);
    let (two, four) = (run(2).shootdowns as f64, run(4).shootdowns as f64);
    assert!(two > 0.0 && (2.5..3.5).contains(&(four / two)), "{four} of {two}");
}
