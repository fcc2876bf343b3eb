//! Arguments of `collapse` as typed. Their doc comments are the help texts and the man page.

use clap::Args;
use compare::flip::{Budget, Span};

/// Arguments of `hugewise collapse`.
#[derive(Args, Clone, Debug)]
pub struct Collapse {
    /// Collapse memory of this process
    #[arg(value_name = "PID", value_parser = crate::cli::values::pid)]
    pub pid: u32,
    /// Collapse anon, heap (of brk), text (code of files), or hex addresses such as 7f00...-7f40...
    #[arg(long, value_name = "RANGE", default_value = "anon")]
    pub range: Span,
    /// Leave a range alone if less of it is in use
    ///
    /// A huge page is allocated as a whole, so the rest of the range adds memory.
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub used: u8,
    /// Work at most this many milliseconds of each second, such as 50ms/s [default: no limit]
    ///
    /// The process waits while a range is copied.
    #[arg(long, value_name = "MS/S")]
    pub budget: Option<Budget>,
}
