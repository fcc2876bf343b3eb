//! Our own format, read: the head of each window, and its accesses.

use std::io::Read;
use std::sync::Arc;

use super::error::{Reason, TraceError};
use super::own::{self, Followed, MOST_OF_A_WINDOW, Told};
use super::reader::{Next, Trace};
use crate::pipeline::{Code, Instruction, LONGEST as LONGEST_INSTRUCTION};
use translation::{ADDRESS_BITS, Access, Side};

/// The longest LEB128 of 64 bits.
const LONGEST: usize = 10;
/// What is being read.
const HEAD: &str = "the head of a window";
const CODE: &str = "the code of a window";

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
        let used = match self.state.is_second {
            true => self.number(HEAD)?,
            false => 0,
        };
        let accesses = self.number(HEAD)?;
        if !(1..=MOST_OF_A_WINDOW).contains(&accesses) {
            let reason = Reason::Malformed("a window without accesses, or of more than 4,194,304");
            return Err(self.at(0, reason));
        }
        let code = match self.state.is_second {
            true => self.code(accesses)?,
            false => None,
        };
        self.state.left = accesses;
        self.state.last = [0; 3];
        self.state.before = std::mem::take(&mut self.told.window);
        self.told.windows += 1;
        self.told.instructions = self.told.instructions.saturating_add(instructions);
        self.told.window = Told {
            instructions,
            at_us,
            used_pages: (used > 0).then_some(used),
            code: code.map(Arc::new),
        };
        Ok(Next::Window)
    }

    /// The instructions of a window with so many accesses, if it has them.
    fn code(&mut self, accesses: u64) -> Result<Option<Code>, TraceError> {
        let known = self.number(CODE)?;
        if known == 0 {
            return Ok(None);
        }
        let malformed = |trace: &Self, what| trace.at(0, Reason::Malformed(what));
        let (mut code, mut last) = (Code::default(), 0_u64);
        for _ in 0..known {
            last = last.wrapping_add(own::step(self.number(CODE)?));
            let touched = u8::try_from(self.number(CODE)?);
            let touched = touched.map_err(|_| malformed(self, "an instruction of more than 255 accesses"))?;
            let long = usize::try_from(self.number(CODE)?).unwrap_or(usize::MAX);
            if !(1..=LONGEST_INSTRUCTION).contains(&long) {
                return Err(malformed(self, "an instruction without bytes, or of more than 15"));
            }
            code.known.push(Instruction {
                at: last,
                bytes: self.raw(long)?,
                accesses: touched,
            });
        }
        self.order(&mut code)?;
        match code.accesses() == accesses {
            true => Ok(Some(code)),
            false => Err(malformed(
                self,
                "a window whose instructions have another number of accesses than it says",
            )),
        }
    }

    fn order(&mut self, code: &mut Code) -> Result<(), TraceError> {
        let steps = self.number(CODE)?;
        if steps > MOST_OF_A_WINDOW {
            let reason = Reason::Malformed("a window of more than 4,194,304 steps");
            return Err(self.at(0, reason));
        }
        let steps = steps as usize;
        let mut followed = Followed::new(code.known.len());
        while code.order.len() < steps {
            let as_before = self.number(CODE)?.min((steps - code.order.len()) as u64);
            for _ in 0..as_before {
                let place = followed.expected();
                followed.goes_on(place);
                code.order.push(place);
            }
            if code.order.len() < steps {
                let place = u32::try_from(self.number(CODE)?).unwrap_or(u32::MAX);
                if place as usize >= code.known.len() {
                    let reason = Reason::Malformed("a step to an instruction that the window does not have");
                    return Err(self.at(0, reason));
                }
                followed.goes_on(place);
                code.order.push(place);
            }
        }
        Ok(())
    }

    /// So many bytes.
    fn raw(&mut self, long: usize) -> Result<Vec<u8>, TraceError> {
        let bytes = self.bytes.peek(long).map(<[u8]>::to_vec);
        let bytes = bytes.map_err(|error| self.at(0, error.into()))?;
        if bytes.len() < long {
            return Err(self.at(0, Reason::Truncated(CODE)));
        }
        self.bytes.take(long);
        Ok(bytes)
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
