//! Whatever runs, crashes and other people do in whatever order: at the end only what other people did is left.

use std::collections::{BTreeMap, BTreeSet};

use model::Bytes;
use proptest::prelude::*;

use crate::fake::{Fault, Machine, Process};
use crate::lease::PoolLease;
use crate::pool_setting::{PoolSetting, Which};
use crate::scene::quick_directory;
use crate::writer::Writer;

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
        setting: PoolSetting,
        by: u64,
    },
    Lower {
        setting: PoolSetting,
        by: u64,
    },
    Map {
        page: Bytes,
    },
    Unmap {
        page: Bytes,
    },
}

fn settings() -> Vec<PoolSetting> {
    let node = |page, node| PoolSetting {
        page,
        which: Which::NodePages(node),
    };
    let [small, large] = PAGES;
    vec![
        PoolSetting::overcommit(small),
        node(small, 0),
        node(large, 0),
        node(large, 1),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = 0..RUNS;
    let page = || prop::sample::select(&PAGES[..]);
    let setting = || prop::sample::select(settings());
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
        2 => (setting(), 1..6u64).prop_map(|(setting, by)| Step::Raise { setting, by }),
        2 => (setting(), 1..6u64).prop_map(|(setting, by)| Step::Lower { setting, by }),
        2 => page().prop_map(|page| Step::Map { page }),
        2 => page().prop_map(|page| Step::Unmap { page }),
    ];
    prop::collection::vec(step, 0..40)
}

struct Run {
    process: Process,
    writer: Writer,
    leases: Vec<PoolLease>,
}

/// The machine, its runs, and what the values would be without any of them.
struct Play {
    machine: Machine,
    temp: tempfile::TempDir,
    runs: Vec<Run>,
    next_pid: u32,
    others: BTreeMap<PoolSetting, u64>,
    bases: Vec<(PoolSetting, u64)>,
    /// Settings that others took below the base of a lease, so that a value may have looked as if put back by hand.
    low: BTreeSet<PoolSetting>,
}

impl Play {
    fn new() -> Self {
        let machine = Machine::new(NODES, 10);
        let mut play = Self {
            machine,
            temp: quick_directory(),
            runs: Vec::new(),
            next_pid: 1,
            others: settings().into_iter().map(|setting| (setting, 0)).collect(),
            bases: Vec::new(),
            low: BTreeSet::new(),
        };
        play.runs = (0..RUNS).map(|_| play.start()).collect();
        for setting in settings() {
            play.raise(setting, 5);
        }
        play
    }

    fn start(&mut self) -> Run {
        let process = self.machine.process(self.next_pid);
        self.next_pid += 1;
        let writer = Writer::new(self.temp.path().join("state"), Box::new(process.clone()));
        let leases = Vec::new();
        Run {
            process,
            writer,
            leases,
        }
    }

    fn value(&self, setting: PoolSetting) -> u64 {
        setting.read(&self.machine.process(0)).expect("a pool's value")
    }

    /// Sets a value as someone else does.
    fn set(&self, setting: PoolSetting, value: u64) {
        self.machine.pool(setting.page, |pool| match setting.which {
            Which::Overcommit => pool.overcommit = value,
            Which::NodePages(node) => pool.nodes[node as usize].set_persistent(value),
            Which::Pages => unreachable!("this machine has nodes"),
        });
    }

    fn raise(&mut self, setting: PoolSetting, by: u64) {
        let before = self.value(setting);
        self.set(setting, before + by);
        *self.others.entry(setting).or_default() += self.value(setting) - before;
    }

    fn lower(&mut self, setting: PoolSetting, by: u64) {
        let theirs = self.others[&setting];
        if by > theirs {
            return;
        }
        self.set(setting, self.value(setting) - by);
        self.others.insert(setting, theirs - by);
        if self.bases.iter().any(|&(of, base)| of == setting && theirs - by < base) {
            self.low.insert(setting);
        }
    }

    fn lease(&mut self, run: usize, page: Bytes, pages: u64) {
        let run = &mut self.runs[run];
        if let Ok(lease) = run.writer.lease_pool(page, pages) {
            self.bases
                .extend(lease.held.iter().map(|held| (held.setting, held.base)));
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
        for told in self.runs[run].writer.recover().expect("recovered") {
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
            Step::Raise { setting, by } => self.raise(setting, by),
            Step::Lower { setting, by } => self.lower(setting, by),
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
        for setting in settings() {
            let (value, theirs) = (play.value(setting), play.others[&setting]);
            prop_assert!(value >= theirs, "took {} of {setting} from others", theirs - value);
            prop_assert!(value == theirs || play.low.contains(&setting), "left {} of {setting}", value - theirs);
        }
        let left = std::fs::read_dir(play.temp.path().join("state"));
        prop_assert!(left.map_or(0, Iterator::count) <= 1, "no journal, only the lock");
    }
}
