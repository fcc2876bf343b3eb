//! Our own format: a head in text, then windows of a program's run, each access a few bytes.
//!
//! `hugewise trace 1`, a line of JSON ([`Head`]), then for each window three numbers (instructions in it, microseconds of the
//! program's processor time before it, accesses) and its accesses. A number is LEB128. An access is one number: its side in the two low bits,
//! above them the zigzag difference to the last address of that side in the window.

use std::io::{self, Read, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::access::{ADDRESS_BITS, Access, Side};
use super::bytes::Bytes;
use super::{Next, Reason, Trace, TraceError};

/// The first line.
pub(super) const MAGIC: &[u8] = b"hugewise trace 1\n";
/// The longest line of the head.
const HEAD: usize = 1 << 16;
/// Accesses of one window, all of which are in memory at a time.
pub const MOST_OF_A_WINDOW: u64 = 1 << 22;
/// The longest LEB128 of 64 bits.
const LONGEST: usize = 10;

/// How a trace was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How accesses were seen.
    pub method: Method,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the trace cannot show.
    pub blind_spots: Vec<BlindSpot>,
}

/// How the accesses of a program were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One thread was stepped instruction by instruction for windows of the run (ptrace).
    #[default]
    Steps,
}

/// What a trace cannot show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlindSpot {
    /// What the kernel accesses for the program.
    Kernel,
    /// What other threads do during a window.
    OtherThreads,
    /// What lies between the windows.
    BetweenWindows,
    /// Addresses of gathers, scatters, XSAVE and the like.
    SpecialInstructions,
    /// All behind the last window: the time for capturing was up.
    AfterBudget,
}

/// A window of a program's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Instructions in it.
    pub instructions: u64,
    /// Microseconds of the program's processor time before it.
    pub at_us: u64,
    /// Its accesses.
    pub accesses: Vec<Access>,
}

/// Writes a trace.
///
/// # Errors
/// As the writer.
pub fn write(head: &Head, windows: &[Window], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(MAGIC)?;
    serde_json::to_writer(&mut *out, head)?;
    out.write_all(b"\n")?;
    let mut bytes = Vec::new();
    for window in windows {
        bytes.clear();
        for number in [window.instructions, window.at_us, window.accesses.len() as u64] {
            put(number, &mut bytes);
        }
        let mut last = [0; 3];
        for access in &window.accesses {
            let (side, address) = (access.side() as usize, access.address());
            let step = address.wrapping_sub(last[side]).cast_signed();
            last[side] = address;
            let zigzag = (step << 1 ^ step >> 63).cast_unsigned();
            put(zigzag << 2 | side as u64, &mut bytes);
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn put(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What heads a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Instructions in it.
    pub instructions: u64,
    /// Microseconds of the program's processor time before it.
    pub at_us: u64,
    /// And before the window before it.
    pub before_us: u64,
}

/// The head, of which the first line was seen.
pub(super) fn head<R: Read>(bytes: &mut Bytes<R>) -> Result<Head, Reason> {
    const EXPECTED: Reason =
        Reason::Malformed("the second line is not the head of a trace: expected JSON of at most 64 KiB");
    bytes.take(MAGIC.len());
    let start = bytes.peek(HEAD)?;
    let end = start.iter().position(|&byte| byte == b'\n').ok_or(EXPECTED)?;
    let head = serde_json::from_slice(&start[..end]).map_err(|_| EXPECTED)?;
    bytes.take(end + 1);
    Ok(head)
}

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
        let instructions = self.number("the head of a window")?;
        let at_us = self.number("the head of a window")?;
        self.state.left = self.number("the head of a window")?;
        if !(1..=MOST_OF_A_WINDOW).contains(&self.state.left) {
            let reason = Reason::Malformed("a window without accesses, or of more than 4,194,304");
            return Err(self.at(0, reason));
        }
        self.state.last = [0; 3];
        self.state.before = self.told.window;
        self.told.windows += 1;
        self.told.instructions = self.told.instructions.saturating_add(instructions);
        let before_us = self.state.before.at_us;
        self.told.window = Told {
            instructions,
            at_us,
            before_us,
        };
        Ok(Next::Window)
    }

    fn step(&mut self, number: u64, block: &mut Vec<Access>) -> Result<(), Reason> {
        let side = Side::ALL.into_iter().find(|&side| side as u64 == number & 3);
        let side = side.ok_or(Reason::Malformed("an access that is no load, store or fetch"))?;
        let zigzag = number >> 2;
        let step = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        let last = &mut self.state.last[side as usize];
        *last = last.wrapping_add(step);
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
