//! TLBs: arrays of entries under any replacement policy, asked level by level.

pub(crate) mod fresh;
pub(crate) mod front;
#[cfg(test)]
mod front_tests;
#[cfg(test)]
pub(crate) mod given;
pub(crate) mod layout;
pub(crate) mod level;
pub(crate) mod names;
mod recency;
mod recent;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod sets;
pub(crate) mod touch;
pub(crate) mod uses;
pub(crate) mod ways;
