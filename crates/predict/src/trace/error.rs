//! Why a trace is not read, or no further, and where.

use std::{fmt, io};

use super::TraceFormat;

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
    pub place: Place,
    pub reason: Reason,
}

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
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
    /// It was made by another version of this program.
    #[error("the trace is of another version of hugewise: make it again with `hugewise trace` of this one")]
    OtherVersion,
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
}
