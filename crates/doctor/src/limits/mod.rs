//! Permissions and limits.

mod files;
mod memlock;
mod shm;

#[cfg(test)]
mod tests;

use super::rule::Rule;

pub(super) const RULES: &[Rule] = &[shm::B01, memlock::B02, memlock::B03, memlock::B04, shm::B05, shm::B06];
