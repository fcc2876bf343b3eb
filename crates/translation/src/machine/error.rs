//! Why there is no such machine.

use crate::toml_file::FileError;

/// Why there is no such machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The table has no such id.
    #[error("`{typed}` is neither a CPU of the table nor a file ending in .toml (CPUs: {known})")]
    Unknown { typed: String, known: String },
    /// The table knows no TLB of it.
    #[error("{0}: no public source for its TLBs is known; describe them in a TOML file")]
    NoTlb(String),
    /// The file is not of that shape.
    #[error(transparent)]
    Toml(#[from] FileError),
    /// Nor what its data caches are.
    #[error(
        "{0}: no data cache; add [[cache]] with level, kind = \"data\", kib and ways, or like = \"ID\" for those of a CPU of the table"
    )]
    NoCache(String),
    /// A number that no machine has.
    #[error("{place}: {name} is {value}, expected {least} to {most}")]
    Value {
        place: String,
        name: &'static str,
        value: f64,
        least: f64,
        most: f64,
    },
    /// An array that cannot be.
    #[error(
        "{place}: {entries} entries in {ways} ways: expected at least one set, a whole number of sets, and at most 65,536 entries"
    )]
    Geometry { place: String, entries: u32, ways: u32 },
    /// Fields that make sense together only.
    #[error("{0}: {1}")]
    Missing(String, &'static str),
}
