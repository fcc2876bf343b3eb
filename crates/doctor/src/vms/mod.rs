//! Virtual machines, from inside, from the host, and in their files.

mod definitions;
mod guests;
mod vmware;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    guests::G01,
    guests::G02,
    guests::G03,
    definitions::G04,
    definitions::G05,
    vmware::G06,
    vmware::G07,
];
