//! The hugetlb pools.

mod asked;
mod boot;
mod files;
mod memory;
mod path;
mod size;
mod used;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const HUGETLBPAGE: &str = "https://docs.kernel.org/admin-guide/mm/hugetlbpage.html";

pub(super) const RULES: &[Rule] = &[
    asked::A01,
    used::A02,
    memory::A03,
    used::A04,
    size::A05,
    size::A06,
    size::A07,
    size::A08,
    asked::A12,
    boot::A13,
    boot::A14,
    boot::A15,
    path::A18,
    path::A20,
    memory::A23,
    used::A24,
];
