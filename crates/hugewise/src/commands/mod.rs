//! The commands, one file each: they ask, measure, and hand a result to the session.

mod apply;
mod checkup;
mod collapse;
mod compare;
mod cores;
#[doc(hidden)]
pub mod diagnosis;
mod diff;
mod doctor;
mod explain;
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
mod session;
mod settings;
mod simulate;
mod size;
mod snapshot;
mod status;
mod suite;
mod tlb;
mod trace;
mod undo;
mod verify;
mod vm;

use crate::cli::Cli;
use crate::cli::args::{Command, Measure, Placement, Simulate};
use crate::files::Access;
use crate::stop;
use crate::ui::Outcome;
use session::Session;

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
    let mut session = Session::open(&cli.global, words, access)?;
    // What is applied can be read while another run is at work.
    if !matches!(cli.command, Command::Status) {
        pools::recover(&session.ui);
    }
    let outcome = match carry_out(&mut session, cli) {
        Err(error) if stop::is_interrupted(&error) => Outcome::Interrupted,
        outcome => outcome?,
    };
    Ok(session.ui.ended(outcome))
}

fn carry_out(session: &mut Session<'_>, cli: &Cli) -> anyhow::Result<Outcome> {
    match &cli.command {
        Command::Checkup(args) => checkup::run(session, args),
        Command::Doctor(args) => doctor::run(session, args),
        Command::Measure(Measure::Latency(args)) => latency::run(session, args),
        Command::Measure(Measure::Kernel(args)) => kernel::run(session, args),
        Command::Measure(Measure::Guest(args)) => guest::run(session, args),
        Command::Measure(Measure::Tlb(args)) => tlb::run(session, args),
        Command::Measure(Measure::Cores(args)) => cores::run(session, args),
        Command::Measure(Measure::Migration(args)) => migration::run(session, args),
        Command::Collapse(args) => collapse::run(session, args),
        Command::Compare(args) => compare::run(session, args),
        Command::Suite(args) => suite::run(session, args),
        Command::Placement(Placement::Record(args)) => placement::record::run(session, args),
        Command::Placement(Placement::Diff(args)) => placement::diff::run(session, args),
        Command::Placement(Placement::Check(args)) => placement::check::run(session, args),
        Command::Plan(args) => plan::run(session, args),
        Command::Size(args) => size::run(session, args),
        Command::Simulate(Simulate::Translation(args)) => simulate::translation::run(session, args),
        Command::Simulate(Simulate::Scheduler(args)) => simulate::scheduler::run(session, args),
        Command::Simulate(Simulate::Host(args)) => simulate::host_memory::run(session, args),
        Command::Trace(args) => trace::run(session, args),
        Command::Predict(args) => predict::run(session, args),
        Command::Apply(args) => apply::run(session, args),
        Command::Verify(args) => verify::run(session, args),
        Command::Undo(args) => undo::run(session, args),
        Command::Status => status::run(session),
        Command::Explain(args) => explain::run(session, args),
        Command::Diff(args) => diff::run(session, args),
        Command::Ps(args) => ps::run(session, args),
        Command::Vm(_) => vm::run(session),
        Command::Snapshot(args) => snapshot::run(session, args),
        Command::Report(args) => report::run(session, args),
        Command::Schema(args) => schema::run(session, args),
        Command::Completions(args) => schema::completions(session, args),
    }
}
