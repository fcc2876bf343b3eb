//! Control groups, containers, Kubernetes.

mod kubernetes;
mod limits;
mod memory;
mod pods;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const CGROUP: &str = "https://docs.kernel.org/admin-guide/cgroup-v2.html";

pub(super) const RULES: &[Rule] = &[
    limits::C01,
    limits::C02,
    limits::C03,
    kubernetes::C04,
    kubernetes::C05,
    kubernetes::C06,
    memory::C09,
];
