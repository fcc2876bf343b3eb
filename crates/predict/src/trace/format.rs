//! The formats of traces, by name.

use model::names;

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
    Hugewise,
}

names!(TraceFormat, "a trace format", {
    Lackey => "lackey",
    Drmemtrace => "drmemtrace",
    Champsim => "champsim",
    U64 => "u64",
    Hugewise => "hugewise",
});
