//! NUMA nodes.

mod confined;
mod pools;

#[cfg(test)]
mod tests;

use programs::Evidence;
use programs::config::given::FileKind;

use super::rule::answers::parts;
use super::rule::{Answer, Checks};
use super::topics::Topic;

pub(super) use confined::{is_confined, shares_cpus};

/// Files that start a program of DPDK.
const STARTERS: &[FileKind] = &[FileKind::Unit, FileKind::Pod, FileKind::Compose, FileKind::Dpdk];

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("A09", pools::imbalance),
        Checks::of_both("A10", mismatch, STARTERS, pools::in_files),
    ],
};

/// Memory of nodes that a program may not use: pages of a pool, or any.
fn mismatch(evidence: &Evidence) -> Answer {
    parts([pools::mismatch(evidence), confined::confined(evidence)])
}
