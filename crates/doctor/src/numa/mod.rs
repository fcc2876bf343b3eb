//! NUMA nodes.

mod pools;

#[cfg(test)]
mod tests;

use programs::config::given::FileKind;

use super::rule::Checks;
use super::topic::Topic;

/// Files that start a program of DPDK.
const STARTERS: &[FileKind] = &[FileKind::Unit, FileKind::Pod, FileKind::Compose, FileKind::Dpdk];

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("A09", pools::imbalance),
        Checks::of_both("A10", pools::mismatch, STARTERS, pools::in_files),
    ],
};
