//! Arguments of `apply`, `verify` and `undo` as typed.

use std::path::PathBuf;

use clap::Args;
use model::Bytes;

/// Arguments of `hugewise apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// Apply this plan, from `hugewise plan --for GOAL --json`
    #[arg(value_name = "PLAN.json")]
    pub plan: PathBuf,
    /// Revert everything if a pool gets fewer pages than planned
    #[arg(long)]
    pub exact: bool,
    /// Leave this much memory outside of pools [default: 10 % of memory, at least 512M]
    #[arg(long, value_name = "SIZE")]
    pub leave: Option<Bytes>,
}

/// Arguments of `hugewise verify`.
#[derive(Args, Debug)]
pub struct Verify {
    /// Check this plan [default: every plan that was applied and not undone]
    #[arg(value_name = "PLAN.json")]
    pub plan: Option<PathBuf>,
    /// Exit with 1 also if a setting is not in use yet: a restart is pending, or no process has the pages
    #[arg(long)]
    pub in_use: bool,
}

/// Arguments of `hugewise undo`.
#[derive(Args, Debug)]
pub struct Undo {
    /// Revert this plan alone: its file, or one of its goals as `status` prints it [default: every plan that was applied]
    #[arg(value_name = "PLAN.json|GOAL")]
    pub plan: Option<String>,
    /// Leave values that have changed since as they are, and remove them from the record
    #[arg(long)]
    pub forget: bool,
}
