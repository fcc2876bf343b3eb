//! Our own format, read: the head of each window, and its accesses.

use std::io::Read;

use super::error::{Reason, TraceError};
use super::own::{self, MOST_OF_A_WINDOW, Told};
use super::{Next, Trace};
use translation::{ADDRESS_BITS, Access, Side};

/// The longest LEB128 of 64 bits.
const LONGEST: usize = 10;
/// What is being read.
const HEAD: &str = "the head of a window";

impl<R: Read> Trace<R> {
    /// The next access, or the head of the next window.
    pub(super) fn window(&mut self, block: &mut Vec<Access>) -> Result<Next, TraceError> {
        if self.state.left > 0 {
            let number = self.number("a window")?;
            self.state.left -= 1;
            return self
                .step(number, block)
                .map(|()| Next::More)
                .map_err(|reason| self.at(1, reason));
        }
        let is_end = self.bytes.peek(1).map(<[u8]>::is_empty);
        if is_end.map_err(|error| self.at(0, error.into()))? {
            return Ok(Next::End);
        }
        let instructions = self.number(HEAD)?;
        let at_us = self.number(HEAD)?;
        let used = self.number(HEAD)?;
        let accesses = self.number(HEAD)?;
        if !(1..=MOST_OF_A_WINDOW).contains(&accesses) {
            let reason = Reason::Malformed("a window without accesses, or of more than 4,194,304");
            return Err(self.at(0, reason));
        }
        self.state.left = accesses;
        self.state.last = [0; 3];
        self.state.before = std::mem::take(&mut self.told.window);
        self.told.windows += 1;
        self.told.instructions = self.told.instructions.saturating_add(instructions);
        self.told.window = Told {
            instructions,
            at_us,
            used_pages: (used > 0).then_some(used),
        };
        Ok(Next::Window)
    }

    fn step(&mut self, number: u64, block: &mut Vec<Access>) -> Result<(), Reason> {
        let side = Side::ALL.into_iter().find(|&side| side as u64 == number & 3);
        let side = side.ok_or(Reason::Malformed("an access that is no load, store or fetch"))?;
        let last = &mut self.state.last[side as usize];
        *last = last.wrapping_add(own::step(number >> 2));
        let address = *last;
        // Kernel addresses were shortened when the trace was made.
        if address >> ADDRESS_BITS != 0 {
            return Err(Reason::Address(address));
        }
        let before = self.told.instructions;
        self.add(block, address, side)?;
        self.told.instructions = before;
        Ok(())
    }

    #[inline]
    fn number(&mut self, within: &'static str) -> Result<u64, TraceError> {
        let decoded = self
            .bytes
            .peek(LONGEST)
            .map_err(Reason::from)
            .and_then(|start| decoded(start, within));
        let (number, length) = decoded.map_err(|reason| self.at(0, reason))?;
        self.bytes.take(length);
        Ok(number)
    }
}

#[inline]
fn decoded(start: &[u8], within: &'static str) -> Result<(u64, usize), Reason> {
    let mut number = 0;
    for (place, &byte) in start.iter().enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Ok((number, place + 1));
        }
    }
    match start.len() {
        LONGEST => Err(Reason::Malformed("a number of more than 64 bits")),
        _ => Err(Reason::Truncated(within)),
    }
}
