//! Traces of other tools and our own, decoded as they are read: memory does not grow with a trace.

mod bytes;
mod error;
mod foreign;
pub mod own;
#[cfg(test)]
mod tests;
mod windows;

use std::io::Read;

use bytes::Bytes;
pub use error::{Place, Reason, TraceError};
use model::names;
use translation::{Access, Accesses, BLOCK, Event, Side};

names! {
    /// What a trace is written as.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TraceFormat, "a trace format" {
        /// The text of `valgrind --tool=lackey --trace-mem=yes`.
        Lackey = "lackey",
        /// DynamoRIO's raw records of 12 bytes.
        Drmemtrace = "drmemtrace",
        /// ChampSim's instructions of 64 bytes.
        Champsim = "champsim",
        /// Addresses of 8 bytes each, little endian.
        U64 = "u64",
        Hugewise = "hugewise",
    }
}

/// A trace that is being read.
pub struct Trace<R> {
    bytes: Bytes<R>,
    pub format: TraceFormat,
    fetches: bool,
    state: State,
    /// What it said so far.
    pub told: Told,
    /// How it was made, if it says so.
    pub head: Option<own::Head>,
}

/// What a trace said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Loads, and stores.
    pub data: u64,
    /// Instructions, where the format has them.
    pub instructions: u64,
    /// Windows of a program's run that began.
    pub windows: u64,
    pub window: own::Told,
}

/// What a decoder remembers between records.
#[derive(Clone, Debug, Default)]
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

/// What came of decoding one record.
enum Next {
    More,
    Window,
    End,
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

    /// Bytes that were read.
    pub fn offset(&self) -> u64 {
        self.bytes.offset()
    }

    /// The window whose accesses came last: all of them, or those before a gap.
    pub fn finished_window(&self) -> &own::Told {
        match self.state.left {
            0 => &self.told.window,
            _ => &self.state.before,
        }
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
