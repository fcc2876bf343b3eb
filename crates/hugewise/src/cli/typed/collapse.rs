//! What was typed after `hugewise collapse`.

use clap::Args;
use compare::flip::{Budget, Span};

/// `hugewise collapse`
///
/// Puts memory of a running, unmodified process onto large pages (MADV_COLLAPSE, Linux 6.1), piece by piece, and proves by its
/// smaps what that changed. The kernel's settings stay as they are; the pages stay large until the process frees them or
/// the kernel splits them under pressure. Processes that this one started are left alone. Needs root, or CAP_SYS_NICE and the
/// right to trace the process.
#[derive(Args, Clone, Debug)]
pub struct Collapse {
    /// The process
    #[arg(value_name = "PID")]
    pub pid: u32,
    /// Which of its memory: anon, heap (of brk), text (code of files), or addresses in hex such as 7f00...-7f40...
    #[arg(long, value_name = "RANGE", default_value = "anon")]
    pub range: Span,
    /// Leave a piece alone if less of it is in use: a large page is whole, so the rest would be new memory
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub used: u8,
    /// Work at most so many milliseconds of each second: the process waits while a piece is copied [default: no limit]
    #[arg(long, value_name = "MS/S")]
    pub budget: Option<Budget>,
}
