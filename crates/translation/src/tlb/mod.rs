//! TLBs: arrays of entries under LRU replacement, asked level by level.

pub(crate) mod front;
#[cfg(test)]
mod front_tests;
#[cfg(test)]
pub(crate) mod given;
pub(crate) mod level;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod sets;
