//! The command line: `typed` is what was typed, `meaning` what it means; neither does anything.

pub mod meaning;
pub mod typed;

pub use typed::Cli;
