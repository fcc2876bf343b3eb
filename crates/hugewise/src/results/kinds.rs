//! All kinds of results: their published names and versions, and the forms that each has.

use model::collapse::Collapse;
use model::compare::Compare;
use model::cores::Cores;
use model::guest::Guest;
use model::kernelops::KernelOps;
use model::latency::Latency;
use model::migration::Migration;
use model::placement::{self, Check, Published, Recording};
use model::plan::Plan;
use model::setup::{Applied, Status, Undone, Verified};
use model::suite::{Suite, SuiteList};
use model::tlb::Tlb;
use predict::Prediction;
use programs::image::Images;
use studies::claims::Claims;
use studies::host_memory::HostMemory;
use studies::scheduler::Schedule;
use studies::size::Sizing;
use translation::study::Simulation;

use crate::results::{Checkup, Diff, Doctor, Explain, OneProcess, ProcessList, ReachTable, VmList};
use crate::show::{CHARTS, FINDINGS, Format, PLANS, Shape, TABLES, reads, schema};

/// What is done with a result of whichever kind.
pub trait WithResult {
    /// What is returned for a result of any kind.
    type Outcome;
    /// Does it with a result of this kind.
    fn with<T: Shape>(self) -> Self::Outcome;
}

/// The kinds of results, in one table: name and version in `hugewise/NAME/VERSION`, the oldest version that reads as this one (those since only
/// added to it), and the forms it has.
macro_rules! kinds {
    ($($kind:ty: $name:literal $version:literal $(from $oldest:literal)?, $forms:expr;)+) => {
        $(impl Shape for $kind {
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            $(const OLDEST: u32 = $oldest;)?
            const FORMS: &'static [Format] = &$forms;
        })+

        /// Names and schemas of all results.
        pub(crate) fn all() -> Vec<(&'static str, schemars::Schema)> {
            vec![$((<$kind>::NAME, schema::<$kind>())),+]
        }

        /// Does it with the kind of result that a schema names, if it is known.
        pub fn by_schema<W: WithResult>(schema: &str, with: W) -> Option<W::Outcome> {
            $(if reads::<$kind>(schema) {
                return Some(with.with::<$kind>());
            })+
            None
        }
    };
}

kinds! {
    Applied: "applied" 3, TABLES;
    Checkup: "checkup" 3, CHARTS;
    Claims: "claims" 2, TABLES;
    Collapse: "collapse" 2, TABLES;
    Compare: "compare" 4 from 3, CHARTS;
    Cores: "cores" 2, TABLES;
    Diff: "diff" 2, CHARTS;
    Doctor: "doctor" 2, FINDINGS;
    Explain: "explain" 2, TABLES;
    Guest: "guest" 2, CHARTS;
    HostMemory: "host-memory" 1, CHARTS;
    Images: "image" 2, TABLES;
    KernelOps: "kernel" 2, TABLES;
    Latency: "latency" 2, CHARTS;
    Migration: "migration" 1, CHARTS;
    OneProcess: "process" 2, TABLES;
    Recording: "placement" 1, CHARTS;
    Check: "placement-check" 1, TABLES;
    placement::Diff: "placement-diff" 1, TABLES;
    Published: "placement-published" 1, TABLES;
    Plan: "plan" 3, PLANS;
    Prediction: "prediction" 2, TABLES;
    ProcessList: "ps" 2, TABLES;
    ReachTable: "reach" 2, TABLES;
    Schedule: "schedule" 1, CHARTS;
    Simulation: "simulation" 2, CHARTS;
    Sizing: "size" 2, TABLES;
    Status: "status" 2, TABLES;
    Suite: "suite" 2, CHARTS;
    SuiteList: "suite-list" 2, TABLES;
    Tlb: "tlb" 2, CHARTS;
    Undone: "undone" 3, TABLES;
    Verified: "verified" 2, TABLES;
    VmList: "vms" 2, TABLES;
}
