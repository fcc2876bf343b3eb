//! Accesses and events that a test lists.

use std::convert::Infallible;

use crate::access::Access;
use crate::engine::BLOCK;
use crate::engine::{Accesses, Event};

/// A load of an address, or something else that happens.
pub(crate) type Step = Result<u64, Event>;

/// What is left of a list.
pub(crate) struct Given<'a>(pub(crate) &'a [Step]);

impl Accesses for Given<'_> {
    type Error = Infallible;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, Infallible> {
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
