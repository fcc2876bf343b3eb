//! THP, and how programs and libraries ask for it.

mod advice;
mod databases;
mod drift;
mod effort;
mod eligible;
mod files;
mod glibc;
mod shared;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const TRANSHUGE: &str = "https://docs.kernel.org/admin-guide/mm/transhuge.html";

pub(super) const RULES: &[Rule] = &[
    advice::D01,
    databases::D02,
    databases::D03,
    effort::D05,
    effort::D06,
    effort::D08,
    effort::D09,
    eligible::D10,
    advice::D11,
    advice::D12,
    glibc::D14,
    glibc::D15,
    glibc::D16,
    glibc::D18,
    shared::D21,
    drift::D22,
    drift::D23,
    drift::D24,
    eligible::D25,
    shared::D27,
    eligible::D32,
];
