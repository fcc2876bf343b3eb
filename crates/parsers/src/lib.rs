//! Every parser that meets bytes from outside of hugewise, and what must hold of it whatever the bytes are.
//!
//! `fuzz/` feeds these targets with made-up inputs; the inputs that were worth keeping are in `fuzz/corpus`, and a test of this
//! crate runs every target over its corpus.

mod kernel;
mod machine;
mod plans;
mod programs;
mod results;
mod scenarios;
mod sweeps;
mod traces;

#[cfg(test)]
mod plans_tests;
#[cfg(test)]
mod tests;

/// A parser with what must hold of it: a panic is a defect.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Checks one input.
    pub check: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: [Target; 23] = [
    target("tree", machine::tree, machine::trees),
    target("snapshot", machine::snapshot, machine::snapshots),
    target("machine", machine::machine, machine::files),
    target("cpuid", kernel::cpuid, machine::leaves),
    target("smaps", kernel::smaps, kernel::accounts),
    target("kvm-stats", kernel::kvm_stats, kernel::statistics),
    target("given", programs::given, programs::configurations),
    target("server", programs::server, programs::servers),
    target("output", programs::output, programs::outputs),
    target("elf", programs::elf, programs::elves),
    target("gc-log", programs::gc_log, programs::gc_logs),
    target("arms", programs::arms, programs::arms_files),
    target("goals", plans::goals, plans::all_goals),
    target("plan", plans::plan, plans::made),
    target("plan-file", plans::plan_file, plans::contents),
    target("journal", plans::journal, plans::journals),
    target("result", results::result, results::made),
    target("runs", results::runs, results::logs),
    target("trace", traces::trace, traces::traces),
    target("sweep", sweeps::sweep, sweeps::sweeps),
    target("points", sweeps::points, sweeps::files),
    target("scenario", scenarios::scenario, scenarios::scenarios),
    target("host-memory", scenarios::memory, scenarios::memories),
];

/// The target of that name.
pub fn find(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

const fn target(name: &'static str, check: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, check, seeds }
}

/// The first byte chooses one of a list, the rest is its content.
fn chosen<'a, T: Copy>(list: &[T], bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
    let (which, content) = bytes.split_first()?;
    Some((*list.get(usize::from(*which) % list.len())?, content))
}

/// Inputs for [`chosen`].
fn choosing<'a>(inputs: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Vec<u8>> {
    let input = |(which, text): (usize, &str)| [&[which as u8], text.as_bytes()].concat();
    inputs.into_iter().map(input).collect()
}
