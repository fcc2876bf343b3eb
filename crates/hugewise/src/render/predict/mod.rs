//! Simulations and predictions.

pub(crate) mod host_memory;
pub(crate) mod prediction;
pub mod reach;
pub(crate) mod scheduler;
pub(crate) mod simulate;
