//! Control groups, containers, Kubernetes.

mod kubernetes;
mod limits;
mod memory;
mod pods;

#[cfg(test)]
mod tests;

use super::rule::Checks;
use super::topics::Topic;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_machine("C01", limits::limit),
        Checks::of_machine("C02", limits::reservation),
        Checks::of_machine("C03", limits::no_controller),
        Checks::of_both("C04", kubernetes::no_mount, pods::OF, pods::no_volume),
        Checks::of_machine("C05", kubernetes::stale),
        Checks::of_files("C06", pods::OF, pods::specification),
        Checks::of_machine("C09", memory::blocked),
        Checks::of_machine("C10", memory::counts_hugetlb),
    ],
};
