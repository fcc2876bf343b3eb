//! Java virtual machines.

mod explicit;
mod files;
mod options;
mod transparent;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    explicit::E01,
    explicit::E02,
    options::E03,
    transparent::E05,
    transparent::E06,
    transparent::E07,
    transparent::E08,
    options::E13,
];
