//! The formats of traces, by name.

use model::names;

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
