//! What was typed after `apply`, `verify` and `undo`, word for word; its doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::Args;
use model::Bytes;

/// `hugewise apply`
///
/// Reads every value again and refuses a machine that is not as the plan found it. Each change is recorded on disk before
/// it is made, and read back; if one fails, those before it are undone. What this host cannot do itself is printed as
/// instructions. Asks before it begins (--yes does not). Exit codes: 0 applied; 1 a pool got fewer pages than were asked
/// for; 2 refused or failed, and nothing stays changed; 130 interrupted, everything undone.
#[derive(Args, Debug)]
pub struct Apply {
    /// The plan, from `hugewise plan --for GOAL --json`
    #[arg(value_name = "PLAN.json")]
    pub plan: PathBuf,
    /// Undo everything if a pool gets fewer pages than were asked for
    #[arg(long)]
    pub exact: bool,
    /// Memory that growing pools leaves to everybody else [default: 10 % of memory, at least 512M]
    #[arg(long, value_name = "SIZE")]
    pub leave: Option<Bytes>,
}

/// `hugewise verify`
///
/// Holds what was asked for against what is there, at every layer, also after a restart of the machine; and lists the
/// processes that use such pages, by the kernel's own account of their mappings. Exit codes: 0 obtained; 1 something is
/// not there; 2 could not do it.
#[derive(Args, Debug)]
pub struct Verify {
    /// A plan [default: every plan that was applied and not undone]
    #[arg(value_name = "PLAN.json")]
    pub plan: Option<PathBuf>,
}

/// `hugewise undo`
///
/// Walks back over every plan that was applied, the last change first, to what stood there before. A value that others
/// have changed since is left as it is, and a pool never loses pages in use; both are told, and stay on record for the
/// next time. Exit codes: 0 everything is undone; 1 something is left; 2 could not do it.
#[derive(Args, Debug)]
pub struct Undo {
    /// Let go of values that others have changed since: they stay as they are, and are not kept account of any more
    #[arg(long)]
    pub forget: bool,
}
