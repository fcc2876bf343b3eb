//! The commands, one file each: they ask, measure, and hand a result to the desk.

mod apply;
mod checkup;
mod collapse;
mod compare;
mod cores;
mod desk;
#[doc(hidden)]
pub mod diagnosis;
mod diff;
mod doctor;
mod explain;
#[doc(hidden)]
pub mod foreign;
mod guest;
mod kernel;
mod latency;
mod measuring;
mod migration;
mod placement;
mod plan;
mod pools;
mod predict;
mod ps;
mod report;
mod running;
mod schema;
mod settings;
mod simulate;
mod size;
mod snapshot;
mod status;
mod stop;
mod suite;
mod tlb;
mod trace;
mod undo;
mod verify;
mod vm;

pub(crate) use stop::is_asked as is_stop_asked;
pub(crate) use stop::watch as watch_signals;

use crate::cli::Cli;
use crate::cli::typed::{self, Command, Measure};
use crate::files::Access;
use crate::ui::Outcome;
use desk::Desk;

/// Carries out a command line. `words` is the command line as typed, which every result quotes.
///
/// # Errors
/// Whatever kept the command from doing what was asked, in words for the user.
pub fn run(cli: &Cli, words: Vec<String>) -> anyhow::Result<Outcome> {
    stop::survive_file_limit()?;
    // A plan shows lines of servers' files.
    let access = match cli.command {
        Command::Plan(_) => Access::Private,
        _ => Access::Usual,
    };
    let mut desk = Desk::open(&cli.global, words, access)?;
    pools::recover(&desk.ui);
    let outcome = carry_out(&mut desk, cli)?;
    Ok(desk.ui.ended(outcome))
}

fn carry_out(desk: &mut Desk<'_>, cli: &Cli) -> anyhow::Result<Outcome> {
    match &cli.command {
        Command::Checkup(typed) => checkup::run(desk, typed),
        Command::Doctor(typed) => doctor::run(desk, typed),
        Command::Measure(Measure::Latency(typed)) => latency::run(desk, typed),
        Command::Measure(Measure::Kernel(typed)) => kernel::run(desk, typed),
        Command::Measure(Measure::Guest(typed)) => guest::run(desk, typed),
        Command::Measure(Measure::Tlb(typed)) => tlb::run(desk, typed),
        Command::Measure(Measure::Cores(typed)) => cores::run(desk, typed),
        Command::Measure(Measure::Migration(typed)) => migration::run(desk, typed),
        Command::Collapse(typed) => collapse::run(desk, typed),
        Command::Compare(typed) => compare::run(desk, typed),
        Command::Suite(typed) => suite::run(desk, typed),
        Command::Placement(typed) => placement::run(desk, typed),
        Command::Plan(typed) => plan::run(desk, typed),
        Command::Size(typed) => size::run(desk, typed),
        Command::Simulate(typed) => simulate::run(desk, typed),
        Command::Trace(typed) => trace::run(desk, typed),
        Command::Predict(typed) => predict::run(desk, typed),
        Command::Apply(typed) => apply::run(desk, typed),
        Command::Verify(typed) => verify::run(desk, typed),
        Command::Undo(typed) => undo::run(desk, typed),
        Command::Status => status::run(desk),
        Command::Explain(typed) => explain::run(desk, typed),
        Command::Diff(typed) => diff::run(desk, typed),
        Command::Ps(typed) => ps::run(desk, typed),
        Command::Vm(typed::Vm {
            what: None | Some(typed::VmWhat::List),
        }) => vm::run(desk),
        Command::Snapshot(typed) => snapshot::run(desk, typed),
        Command::Report(typed) => report::run(desk, typed),
        Command::Schema(typed) => schema::run(desk, typed),
        Command::Completions(typed) => schema::completions(desk, typed),
    }
}
