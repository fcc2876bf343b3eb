//! Every parser that meets bytes from outside of hugewise, and what must hold of it whatever the bytes are.
//!
//! `fuzz/` feeds these targets with made-up inputs, from seeds on: those that are texts are files in `fuzz/seeds`, the others are made
//! here. The inputs that were worth keeping are in `fuzz/corpus`, and a test runs every target over its corpus.

mod kernel;
mod machine;
pub(crate) mod plans;
mod programs;
mod results;
mod scenarios;
mod seeds;
mod traces;

use seeds::files;

/// A parser with what must hold of it: a panic is a defect.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub(crate) name: &'static str,
    /// Checks one input.
    pub(crate) check: fn(&[u8]),
    /// Inputs to begin with.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub(crate) const TARGETS: [Target; 21] = [
    target("tree", machine::tree, machine::trees),
    target("snapshot", machine::snapshot, machine::snapshots),
    target("machine", machine::machine, machine::files),
    target("cpuid", kernel::cpuid, machine::leaves),
    target("smaps", kernel::smaps, || files("smaps")),
    target("kvm-stats", kernel::kvm_stats, kernel::statistics),
    target("given", programs::given, programs::configurations),
    target("server", programs::server, || files("server")),
    target("output", programs::output, || files("output")),
    target("elf", programs::elf, programs::elves),
    target("gc-log", programs::gc_log, || files("gc-log")),
    target("arms", programs::arms, || files("arms")),
    target("goals", plans::goals, plans::all_goals),
    target("plan", plans::plan, plans::made),
    target("plan-file", plans::plan_file, plans::contents),
    target("journal", plans::journal, plans::journals),
    target("result", results::result, results::made),
    target("runs", results::runs, || files("runs")),
    target("trace", traces::trace, traces::traces),
    target("scenario", scenarios::scenario, || files("scenario")),
    target("host-memory", scenarios::memory, || files("host-memory")),
];

const fn target(name: &'static str, check: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, check, seeds }
}
