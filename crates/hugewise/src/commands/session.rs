//! What every command works with: the machine, the way out, and the marks of its run.

use std::io::IsTerminal;

use anyhow::bail;
use host::{Snapshot, Source};
use model::{Envelope, Machine, Tool, Warning};

use crate::cli::args::{Format, Global};
use crate::files::Access;
use crate::show::{Shape, form, schema_name, write};
use crate::ui::{Outcome, Ui};
use draw::Look;

/// What every command works with: the machine it is about, the way out, and what a result says about its run.
pub(super) struct Session<'a> {
    pub(super) global: &'a Global,
    pub(super) source: Source,
    pub(super) ui: Ui,
    pub(super) words: Vec<String>,
    pub(super) seed: u64,
    pub(super) started: String,
}

impl<'a> Session<'a> {
    pub(super) fn open(global: &'a Global, words: Vec<String>, access: Access) -> anyhow::Result<Self> {
        let source = match &global.root {
            Some(root) => Source::open(root)?,
            None => Source::live(),
        };
        Ok(Self {
            global,
            source,
            ui: Ui::open(global, access)?,
            words,
            seed: seed(global),
            started: now(),
        })
    }

    /// For commands that need the machine itself.
    pub(super) fn must_be_live(&self, what: &str) -> anyhow::Result<()> {
        if !self.source.is_live() {
            bail!("{what} needs the machine itself: leave --root away");
        }
        Ok(())
    }

    /// Says that the standard input of this program is none of a program's that it starts, where something waits in it.
    pub(super) fn say_unread_input(&self) {
        let input = std::io::stdin();
        let waiting = rustix::io::ioctl_fionread(&input).unwrap_or(0);
        if waiting > 0 && !input.is_terminal() {
            self.ui
                .say("the program gets no input: standard input is not passed on (write sh -c 'PROGRAM < FILE')");
        }
    }

    /// A result with everything that says where it comes from.
    pub(super) fn envelope<T: Shape>(&self, machine: Machine, warnings: Vec<Warning>, data: T) -> Envelope<T> {
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
    pub(super) fn about<T: Shape>(&self, snapshot: &Snapshot, warnings: Vec<Warning>, data: T) -> Envelope<T> {
        self.envelope(snapshot.machine(), warnings, data)
    }

    /// The form asked for, if this kind of result has it. Called before any work is done.
    pub(super) fn form<T: Shape>(&self) -> anyhow::Result<Format> {
        Ok(form(self.global, Format::Text, T::FORMS)?)
    }

    /// A result about the machine as it is now, which has no warnings.
    pub(super) fn here<T: Shape>(&self, data: T) -> Envelope<T> {
        self.about(&Snapshot::take(&self.source), Vec::new(), data)
    }

    /// Gives one.
    pub(super) fn give_here<T: Shape>(&mut self, data: T, form: Format) -> anyhow::Result<Outcome> {
        let result = self.here(data);
        self.give(&result, form)
    }

    /// Gives a result about the machine at hand.
    pub(super) fn give_about<T: Shape>(
        &mut self,
        snapshot: &Snapshot,
        warnings: Vec<Warning>,
        data: T,
        form: Format,
    ) -> anyhow::Result<Outcome> {
        let result = self.about(snapshot, warnings, data);
        self.give(&result, form)
    }

    /// Gives the account of what was done to the machine. That it could not be printed is said, and changes nothing of what was done, so that
    /// the exit code tells that.
    pub(super) fn give_what_was_done<T: Shape>(&mut self, result: &Envelope<T>, form: Format) -> Outcome {
        self.give(result, form).unwrap_or_else(|error| {
            let what = "it was done, but the account of it could not be written (of plans, `hugewise status` shows what is applied)";
            self.ui.say(&format!("{what}: {error:#}"));
            Outcome::Done
        })
    }

    /// Gives a result to the user: its warnings first, then itself.
    pub(super) fn give<T: Shape>(&mut self, result: &Envelope<T>, form: Format) -> anyhow::Result<Outcome> {
        self.warn(result);
        self.print(result, form, self.ui.look())
    }

    pub(super) fn warn<T>(&self, result: &Envelope<T>) {
        result.warnings.iter().for_each(|warning| self.ui.warning(warning));
    }

    /// A result without its warnings.
    pub(super) fn print<T: Shape>(
        &mut self,
        result: &Envelope<T>,
        form: Format,
        look: Look,
    ) -> anyhow::Result<Outcome> {
        self.ui.result_by(&mut |out| Ok(write(result, form, look, out)?))?;
        Ok(Outcome::Done)
    }
}

/// The seed typed, or a new one. 32 bits: every JSON reader keeps them exactly.
fn seed(global: &Global) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let drawn = RandomState::new().build_hasher().finish() >> 32;
    global.seed.map_or(drawn, u64::from)
}

/// The moment, in UTC.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
