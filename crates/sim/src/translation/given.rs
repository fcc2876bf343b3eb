//! Accesses and events that a test lists.

use super::access::Access;
use super::engine::{Accesses, Event};
use super::front::BLOCK;
use super::names::TooSpread;

/// A load of an address, or something else that happens.
pub(super) type Step = Result<u64, Event>;

/// What is left of a list.
pub(super) struct Given<'a>(pub(super) &'a [Step]);

impl Accesses for Given<'_> {
    type Error = TooSpread;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, TooSpread> {
        while let Some((first, rest)) = self.0.split_first() {
            self.0 = rest;
            match first {
                Ok(address) => block.push(Access::load(*address)),
                Err(event) => return Ok(Some(*event)),
            }
            if block.len() == BLOCK {
                break;
            }
        }
        Ok(None)
    }
}
