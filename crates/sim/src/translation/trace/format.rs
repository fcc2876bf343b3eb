//! The formats of traces, by name.

use crate::names::names;

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
