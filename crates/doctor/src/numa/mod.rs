//! NUMA nodes.

mod pools;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[pools::A09, pools::A10];
