//! Group G: virtual machines, from inside, from the host, and in VMware's files.

mod guests;
mod vmware;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[guests::G01, guests::G02, guests::G03, vmware::G06, vmware::G07];
