//! How many pages does it take? Calculators of published studies and manuals, each with its arithmetic line by line.

pub mod esx;
pub mod gain;
pub mod ksm;

#[cfg(test)]
mod vectors_tests;

pub use model::sizing::{Quantity, SizeError, Sizing, Step};
