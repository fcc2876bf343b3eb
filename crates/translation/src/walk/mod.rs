//! Page walks: which entries of which tables are read, natively, in two dimensions and under shadow paging, and in which cache they are found.

pub(crate) mod caches;
pub(crate) mod nested;
pub(crate) mod radix;
pub(crate) mod scatter;
pub(crate) mod shadow;
pub(crate) mod spec;
#[cfg(test)]
mod walk_tests;
pub(crate) mod walker;
#[cfg(test)]
mod walker_tests;
