//! The command line: `args` has the arguments, `values` what their values may be, `help` what help shows beside them.

pub mod args;
pub mod help;
pub mod values;

pub use args::Cli;
