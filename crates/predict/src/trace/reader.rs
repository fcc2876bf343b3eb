//! A trace that is being read: its bytes, what it said so far, and what decoders remember.

use std::io::Read;

use super::bytes::Bytes;
use super::error::{Place, Reason, TraceError};
use super::format::TraceFormat;
use super::own;
use translation::{Access, Side};

/// A trace that is being read.
pub struct Trace<R> {
    pub(super) bytes: Bytes<R>,
    pub format: TraceFormat,
    pub(super) fetches: bool,
    pub(super) state: State,
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
pub(super) struct State {
    /// Lines so far.
    pub(super) line: u64,
    /// Drmemtrace: is a footer awaited? Behind it another file may begin.
    pub(super) is_open: bool,
    /// Drmemtrace: the end of the last instruction, from which bundles count.
    pub(super) next_instruction: u64,
    /// Own format: accesses left in the window, and the address before by side.
    pub(super) left: u64,
    pub(super) last: [u64; 3],
    /// Own format: the window before this one.
    pub(super) before: own::Told,
}

impl<R: Read> Trace<R> {
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
    pub(super) fn at(&self, back: u64, reason: Reason) -> TraceError {
        let place = match self.format {
            TraceFormat::Lackey => Place::Line(self.state.line),
            _ => Place::Offset(self.bytes.offset().saturating_sub(back)),
        };
        TraceError { place, reason }
    }

    /// Adds an access of a trace.
    pub(super) fn add(&mut self, block: &mut Vec<Access>, word: u64, side: Side) -> Result<(), Reason> {
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

/// What came of decoding one record.
pub(super) enum Next {
    More,
    Window,
    End,
}
