//! Traces of other tools and our own, decoded as they are read: memory does not grow with a trace.

mod bytes;
mod error;
mod foreign;
mod format;
pub mod own;
mod reader;
#[cfg(test)]
mod tests;
mod windows;

use bytes::Bytes;
pub use error::{Place, Reason, TraceError};
pub use format::TraceFormat;
use reader::{Next, State};
pub use reader::{Told, Trace};
use std::io::Read;
use translation::{Access, Accesses, BLOCK, Event};

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
