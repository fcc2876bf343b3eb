//! The command line: `typed` has the arguments, `meaning` the validated options, `help` what help shows beside them.

pub mod help;
pub mod meaning;
pub mod typed;

pub use typed::Cli;
