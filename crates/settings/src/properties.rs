//! Whatever runs, crashes and other people do in whatever order: at the end only what other people did is left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::Bytes;
use proptest::prelude::*;

use crate::door::Door;
use crate::fake::{Fault, Machine, Process};
use crate::knob::{Knob, Which};
use crate::lease::PoolLease;

const PAGES: [Bytes; 2] = [Bytes::mib(2), Bytes::gib(1)];
const RUNS: usize = 3;
const NODES: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    Lease {
        run: usize,
        page: Bytes,
        pages: u64,
    },
    Release {
        run: usize,
        lease: usize,
    },
    /// Killed between two writes.
    Crash {
        run: usize,
    },
    /// Killed around one of the writes of a lease or release; another run recovers before anyone else changes anything.
    CrashWithin {
        run: usize,
        page: Bytes,
        pages: u64,
        fault: Fault,
    },
    Recover {
        run: usize,
    },
    Raise {
        knob: Knob,
        by: u64,
    },
    Lower {
        knob: Knob,
        by: u64,
    },
    Map {
        page: Bytes,
    },
    Unmap {
        page: Bytes,
    },
}

fn knobs() -> Vec<Knob> {
    let node = |page, node| Knob {
        page,
        which: Which::NodePages(node),
    };
    let [small, large] = PAGES;
    vec![Knob::overcommit(small), node(small, 0), node(large, 0), node(large, 1)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = 0..RUNS;
    let page = || prop::sample::select(&PAGES[..]);
    let knob = || prop::sample::select(knobs());
    let fault = (0..4u64, any::<bool>()).prop_map(|(n, before)| match before {
        true => Fault::DieBefore(n),
        false => Fault::DieAfter(n),
    });
    let step = prop_oneof![
        4 => (run.clone(), page(), 1..8u64).prop_map(|(run, page, pages)| Step::Lease { run, page, pages }),
        3 => (run.clone(), 0..4usize).prop_map(|(run, lease)| Step::Release { run, lease }),
        1 => run.clone().prop_map(|run| Step::Crash { run }),
        2 => (run.clone(), page(), 1..8u64, fault)
            .prop_map(|(run, page, pages, fault)| Step::CrashWithin { run, page, pages, fault }),
        1 => run.prop_map(|run| Step::Recover { run }),
        2 => (knob(), 1..6u64).prop_map(|(knob, by)| Step::Raise { knob, by }),
        2 => (knob(), 1..6u64).prop_map(|(knob, by)| Step::Lower { knob, by }),
        2 => page().prop_map(|page| Step::Map { page }),
        2 => page().prop_map(|page| Step::Unmap { page }),
    ];
    prop::collection::vec(step, 0..40)
}

struct Run {
    process: Process,
    door: Door,
    leases: Vec<PoolLease>,
}

/// The machine, its runs, and what the values would be without any of them.
struct Play {
    machine: Machine,
    temp: tempfile::TempDir,
    runs: Vec<Run>,
    next_pid: u32,
    others: BTreeMap<Knob, u64>,
    bases: Vec<(Knob, u64)>,
    /// Settings that others took below the base of a lease, so that a value may have looked as if put back by hand.
    low: BTreeSet<Knob>,
}

impl Play {
    fn new() -> Self {
        let machine = Machine::new(NODES, 10);
        // Thousands of syncs: in memory where there is such a place.
        let memory = Some(Path::new("/dev/shm")).filter(|dir| dir.is_dir());
        let temp = memory.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
        let mut play = Self {
            machine,
            temp: temp.expect("tempdir"),
            runs: Vec::new(),
            next_pid: 1,
            others: knobs().into_iter().map(|knob| (knob, 0)).collect(),
            bases: Vec::new(),
            low: BTreeSet::new(),
        };
        play.runs = (0..RUNS).map(|_| play.start()).collect();
        for knob in knobs() {
            play.raise(knob, 5);
        }
        play
    }

    fn start(&mut self) -> Run {
        let process = self.machine.process(self.next_pid);
        self.next_pid += 1;
        let door = Door::new(self.temp.path().join("state"), Box::new(process.clone()));
        let leases = Vec::new();
        Run { process, door, leases }
    }

    fn value(&self, knob: Knob) -> u64 {
        knob.read(&self.machine.process(0)).expect("a pool's value")
    }

    /// Sets a value as someone else does.
    fn set(&self, knob: Knob, value: u64) {
        self.machine.pool(knob.page, |pool| match knob.which {
            Which::Overcommit => pool.overcommit = value,
            Which::NodePages(node) => pool.nodes[node as usize].set_persistent(value),
            Which::Pages => unreachable!("this machine has nodes"),
        });
    }

    fn raise(&mut self, knob: Knob, by: u64) {
        let before = self.value(knob);
        self.set(knob, before + by);
        *self.others.entry(knob).or_default() += self.value(knob) - before;
    }

    fn lower(&mut self, knob: Knob, by: u64) {
        let theirs = self.others[&knob];
        if by > theirs {
            return;
        }
        self.set(knob, self.value(knob) - by);
        self.others.insert(knob, theirs - by);
        if self.bases.iter().any(|&(of, base)| of == knob && theirs - by < base) {
            self.low.insert(knob);
        }
    }

    fn lease(&mut self, run: usize, page: Bytes, pages: u64) {
        let run = &mut self.runs[run];
        if let Ok(lease) = run.door.lease_pool(page, pages) {
            self.bases
                .extend(lease.held().iter().map(|held| (held.knob, held.base)));
            run.leases.push(lease);
        } else {
            assert!(run.process.is_dead(), "only death refuses a lease here");
        }
    }

    fn release(&mut self, run: usize, lease: usize) {
        let run = &mut self.runs[run];
        if lease < run.leases.len() {
            drop(run.leases.remove(lease));
        }
    }

    fn crash(&mut self, run: usize) {
        self.runs[run].process.die();
        let new = self.start();
        // What a dead process drops has no effect.
        self.runs[run] = new;
    }

    fn crash_within(&mut self, run: usize, page: Bytes, pages: u64, fault: Fault) {
        self.runs[run].process.expect(fault);
        self.lease(run, page, pages);
        self.release(run, 0);
        self.crash(run);
        self.recover((run + 1) % RUNS);
    }

    fn recover(&self, run: usize) {
        for told in self.runs[run].door.recover().expect("recovered") {
            assert!(told.is_clean(), "{told}");
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Lease { run, page, pages } => self.lease(run, page, pages),
            Step::Release { run, lease } => self.release(run, lease),
            Step::Crash { run } => self.crash(run),
            Step::CrashWithin {
                run,
                page,
                pages,
                fault,
            } => self.crash_within(run, page, pages, fault),
            Step::Recover { run } => self.recover(run),
            Step::Raise { knob, by } => self.raise(knob, by),
            Step::Lower { knob, by } => self.lower(knob, by),
            Step::Map { page } => self.machine.pool(page, |pool| pool.map()),
            Step::Unmap { page } => self.machine.pool(page, |pool| pool.unmap()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_what_others_did_is_left(steps in steps()) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        for run in &mut play.runs {
            run.leases.clear();
        }
        play.recover(0);
        for knob in knobs() {
            let (value, theirs) = (play.value(knob), play.others[&knob]);
            prop_assert!(value >= theirs, "took {} of {knob} from others", theirs - value);
            prop_assert!(value == theirs || play.low.contains(&knob), "left {} of {knob}", value - theirs);
        }
        let left = std::fs::read_dir(play.temp.path().join("state"));
        prop_assert!(left.map_or(0, Iterator::count) <= 1, "no journal, only the lock");
    }
}
