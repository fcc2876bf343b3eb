//! The commands, one file each: they ask, measure, and hand a result to the desk.

mod apply;
mod checkup;
mod collapse;
mod compare;
mod cores;
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

pub(crate) use stop::watch as watch_signals;

use std::path::Path;

use anyhow::bail;
use host::{Snapshot, Source};
use model::{Envelope, Machine, Tool, Warning};

use crate::cli::Cli;
use crate::cli::typed::{self, Command, Format, Global, Measure};
use crate::show::{Shape, form, schema_name, write};
use crate::ui::{Outcome, Ui};

/// Carries out a command line. `words` is the command line as typed, which every result quotes.
///
/// # Errors
/// Whatever kept the command from doing what was asked, in words for the user.
pub fn run(cli: &Cli, words: Vec<String>) -> anyhow::Result<Outcome> {
    stop::survive_file_limit()?;
    let mut desk = Desk::open(&cli.global, words)?;
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

/// What every command works at: the machine it is about, the way out, and what a result says about its run.
struct Desk<'a> {
    global: &'a Global,
    source: Source,
    ui: Ui,
    words: Vec<String>,
    seed: u64,
    started: String,
}

impl<'a> Desk<'a> {
    fn open(global: &'a Global, words: Vec<String>) -> anyhow::Result<Self> {
        let source = match &global.root {
            Some(root) => Source::open(root)?,
            None => Source::live(),
        };
        Ok(Self {
            global,
            source,
            ui: Ui::open(global)?,
            words,
            seed: seed(global),
            started: now(),
        })
    }

    /// For commands that need the machine itself.
    fn must_be_live(&self, what: &str) -> anyhow::Result<()> {
        if !self.source.is_live() {
            bail!("{what} needs the machine itself: leave --root away");
        }
        Ok(())
    }

    /// A result with everything that says where it comes from.
    fn envelope<T: Shape>(&self, machine: Machine, warnings: Vec<Warning>, data: T) -> Envelope<T> {
        Envelope {
            schema: schema_name::<T>(),
            tool: Tool {
                name: "hugewise".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            machine,
            command: self.words.clone(),
            seed: self.seed,
            started: self.started.clone(),
            warnings,
            data,
        }
    }

    /// A result about the machine at hand.
    fn about<T: Shape>(&self, snapshot: &Snapshot, warnings: Vec<Warning>, data: T) -> Envelope<T> {
        self.envelope(snapshot.machine(), warnings, data)
    }

    /// The form asked for, if this kind of result has it. Called before any work is done.
    fn form<T: Shape>(&self, usual: Format) -> anyhow::Result<Format> {
        let form = form(self.global, usual, T::FORMS)?;
        if form == Format::Png && self.ui.shows_on_terminal() {
            bail!("--format png: a terminal cannot show it (write --output FILE.png, or pipe it on)");
        }
        Ok(form)
    }

    /// Gives a result about the machine as it is now, which has no warnings.
    fn give_here<T: Shape>(&mut self, data: T, form: Format) -> anyhow::Result<Outcome> {
        let result = self.about(&Snapshot::take(&self.source), Vec::new(), data);
        self.give(&result, form)
    }

    /// Gives a result to the user: its warnings first, then itself.
    fn give<T: Shape>(&mut self, result: &Envelope<T>, form: Format) -> anyhow::Result<Outcome> {
        let look = self.ui.look();
        self.give_with(result, form, look)
    }

    /// The same with another look.
    fn give_with<T: Shape>(
        &mut self,
        result: &Envelope<T>,
        form: Format,
        look: crate::render::look::Look,
    ) -> anyhow::Result<Outcome> {
        result.warnings.iter().for_each(|warning| self.ui.warning(warning));
        self.ui.result_by(&mut |out| Ok(write(result, form, look, out)?))?;
        Ok(Outcome::Done)
    }
}

impl Outcome {
    /// What the exit code is to report, if it is bad.
    fn or_bad_news(self, is_bad: bool) -> Self {
        if is_bad { Self::BadNews } else { self }
    }
}

/// The seed typed, or a new one. 32 bits: every JSON reader keeps them exactly.
fn seed(global: &Global) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let drawn = RandomState::new().build_hasher().finish() >> 32;
    global.seed.map_or(drawn, u64::from)
}

/// The moment, in UTC.
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// Whether a file of that name is there already.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
