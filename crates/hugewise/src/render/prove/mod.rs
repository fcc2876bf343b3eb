//! Comparisons, the suite, and where programs ran.

mod claims;
pub mod compare;
pub mod placement;
pub(crate) mod suite;
