//! Traces of other tools and our own, decoded as they are read: memory does not grow with a trace.

mod bytes;
mod foreign;
pub mod own;
#[cfg(test)]
mod tests;

use super::access::{Access, Side};
use super::engine::{Accesses, Event};
use super::front::BLOCK;
use super::names::TooSpread;
use crate::names::names;
use bytes::Bytes;
use std::fmt;
use std::io::{self, Read};

/// What a trace is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// The text of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// DynamoRIO's raw records of 12 bytes.
    Drmemtrace,
    /// ChampSim's instructions of 64 bytes.
    Champsim,
    /// Addresses of 8 bytes each, little endian.
    U64,
    /// `hugewise trace`.
    Hugewise,
}

names!(TraceFormat, "is no trace format", {
    Lackey => "lackey",
    Drmemtrace => "drmemtrace",
    Champsim => "champsim",
    U64 => "u64",
    Hugewise => "hugewise",
});

/// Where in a trace something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of a text, from 1.
    Line(u64),
    /// Of binary records: bytes before it.
    Offset(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Offset(offset) => write!(f, "offset {offset}"),
        }
    }
}

/// Why a trace is not read, or no further.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct TraceError {
    /// Where.
    pub place: Place,
    /// Why.
    pub reason: Reason,
}

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The system's.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
    /// No accesses at all.
    #[error("the trace holds no loads and stores")]
    Empty,
    /// Packed by a tool that is not part of this program.
    #[error("the trace is compressed by {0}: unpack it, as in `{0} -dc FILE | hugewise ... --trace /dev/stdin`")]
    Compressed(&'static str),
    /// None of the formats fits.
    #[error("the content fits no trace format: name it with --trace-format ({})", TraceFormat::ALL.map(TraceFormat::name).join(", "))]
    Unknown,
    /// More than one does.
    #[error("the content may be champsim or u64: name one with --trace-format")]
    Ambiguous,
    /// It begins unlike a trace of the format.
    #[error("expected {0}")]
    Magic(&'static str),
    /// It ends within something.
    #[error("the trace ends within {0}: it is truncated")]
    Truncated(&'static str),
    /// No address of a program has these bits.
    #[error("{0:#x} is no address: expected one below 2^52, or a kernel address")]
    Address(u64),
    /// A record that the format does not have.
    #[error("a record of type {0}, which drmemtrace does not have")]
    Record(u16),
    /// Not what stands in such a trace.
    #[error("{0}")]
    Malformed(&'static str),
    /// More memory than can be named.
    #[error(transparent)]
    TooSpread(#[from] TooSpread),
}

impl From<TooSpread> for TraceError {
    fn from(error: TooSpread) -> Self {
        Self {
            place: Place::Offset(0),
            reason: error.into(),
        }
    }
}

/// A trace that is being read.
pub struct Trace<R> {
    bytes: Bytes<R>,
    format: TraceFormat,
    fetches: bool,
    state: State,
    told: Told,
    head: Option<own::Head>,
}

/// What a trace said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Loads, and stores.
    pub data: u64,
    /// Instructions, where the format has them.
    pub instructions: u64,
    /// Windows of a program's run that began.
    pub windows: u64,
    /// The last of them.
    pub window: own::Told,
}

/// What a decoder remembers between records.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Lines so far.
    line: u64,
    /// Drmemtrace: is a footer awaited? Behind it another file may begin.
    is_open: bool,
    /// Drmemtrace: the end of the last instruction, from which bundles count.
    next_instruction: u64,
    /// Own format: accesses left in the window, and the address before by side.
    left: u64,
    last: [u64; 3],
    /// Own format: the window before this one.
    before: own::Told,
}

impl<R: Read> Trace<R> {
    /// Begins to read. The format is that of its content, unless it is named. Instruction fetches are left out unless asked for.
    ///
    /// # Errors
    /// That the content is no trace (of that format).
    pub fn open(read: R, format: Option<TraceFormat>, fetches: bool) -> Result<Self, TraceError> {
        let mut bytes = Bytes::new(read);
        let begin = |reason: Reason| TraceError {
            place: Place::Offset(0),
            reason,
        };
        let start = bytes.peek(bytes::PEEK).map_err(|error| begin(error.into()))?;
        let format = match format {
            Some(format) => format,
            None => foreign::recognised(start).map_err(begin)?,
        };
        foreign::begins_as(start, format).map_err(begin)?;
        let mut trace = Self {
            bytes,
            format,
            fetches,
            state: State::default(),
            told: Told::default(),
            head: None,
        };
        if format == TraceFormat::Hugewise {
            let head = own::head(&mut trace.bytes).map_err(|reason| trace.at(0, reason))?;
            trace.head = Some(head);
        }
        Ok(trace)
    }

    /// Its format.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// How it was made, if it says so.
    pub fn head(&self) -> Option<&own::Head> {
        self.head.as_ref()
    }

    /// Bytes that were read.
    pub fn offset(&self) -> u64 {
        self.bytes.offset()
    }

    /// The window whose accesses came last: all of them, or those before a gap.
    pub fn finished_window(&self) -> own::Told {
        match self.state.left {
            0 => self.told.window,
            _ => self.state.before,
        }
    }

    /// What it said so far.
    pub fn told(&self) -> Told {
        self.told
    }

    /// An error `back` bytes before what is read next.
    fn at(&self, back: u64, reason: Reason) -> TraceError {
        let place = match self.format {
            TraceFormat::Lackey => Place::Line(self.state.line),
            _ => Place::Offset(self.bytes.offset().saturating_sub(back)),
        };
        TraceError { place, reason }
    }

    /// Adds an access of a trace.
    fn add(&mut self, block: &mut Vec<Access>, word: u64, side: Side) -> Result<(), Reason> {
        self.told.data += u64::from(side != Side::Fetch);
        if side == Side::Fetch {
            self.told.instructions += 1;
            if !self.fetches {
                return Ok(());
            }
        }
        let address = Access::canonical(word).ok_or(Reason::Address(word))?;
        block.push(Access::new(address, side));
        Ok(())
    }
}

/// The most that one record of any format adds.
const MOST_OF_A_RECORD: usize = 16;

impl<R: Read> Accesses for Trace<R> {
    type Error = TraceError;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, TraceError> {
        let begun = block.len();
        while block.len() + MOST_OF_A_RECORD <= begun + BLOCK {
            if self.format == TraceFormat::Drmemtrace {
                self.loads_and_stores(block, begun + BLOCK - MOST_OF_A_RECORD - block.len());
            }
            let next = match self.format {
                TraceFormat::Lackey => self.line(block),
                TraceFormat::Drmemtrace => self.entry(block),
                TraceFormat::Champsim => self.instruction(block),
                TraceFormat::U64 => self.word(block),
                TraceFormat::Hugewise => self.window(block),
            }?;
            match next {
                Next::More => {}
                Next::Window => return Ok(Some(Event::Gap)),
                Next::End if self.told.data == 0 => return Err(self.at(0, Reason::Empty)),
                Next::End => break,
            }
        }
        Ok(None)
    }
}

/// What came of decoding one record.
enum Next {
    More,
    Window,
    End,
}
