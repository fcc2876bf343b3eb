//! What a verdict rests on.

use host::Snapshot;
use model::headline::Headline;
use model::tlb::Tlb;

use crate::results::{Doctor, ProcessList};

/// What a verdict rests on.
pub(crate) struct Grounds<'a> {
    /// The measurement, or why there is none.
    pub headline: Result<&'a Headline, &'a str>,
    pub tlb: Option<&'a Tlb>,
    pub snapshot: &'a Snapshot,
    pub processes: Option<&'a ProcessList>,
    pub doctor: Option<&'a Doctor>,
    /// Programs that run here and have huge page settings of their own, the largest first.
    pub servers: &'a [Server],
    /// What a captured machine is read from; none of this machine.
    pub root: Option<&'a str>,
}

/// A program that has huge page settings of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// As `explain` takes it.
    pub name: String,
    pub pid: u32,
    pub runs_machines: bool,
}
