//! Comparisons, the suite, and where programs ran.

pub mod compare;
pub mod placement;
pub(crate) mod suite;
