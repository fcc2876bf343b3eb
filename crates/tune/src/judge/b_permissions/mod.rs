//! Group B: permissions and limits.

mod limits;
mod shm;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[shm::B01, limits::B02, limits::B03, limits::B04, shm::B05, shm::B06];
