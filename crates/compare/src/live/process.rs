//! One process of an arm: its program, and what the arm does to it before and while it runs.

use std::ffi::{OsStr, OsString};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use ::process::{Attention, Failure, Order, Step, ThpSwitch, WaitError};
use chase::counters::program::Event;
use model::Bytes;
use model::compare::Ran;
use model::placement::Method;
use placement::Collector;

use super::arm::Arm;
use super::counted::Counting;
use super::squeeze::Squeeze;
use crate::excerpt::said;
use crate::preload::{Armed, Layout, Report};
use crate::{Error, switches};

/// Of a program whose memory is not known.
pub(crate) const UNKNOWN: Attention = Attention::Measured(Bytes(0));

/// Why an arm is none of the LD_PRELOAD library's.
const UNREACHED: &str = "the program starts another one that cannot load the LD_PRELOAD library, and the loader says so in its output: it has another \
                         root directory, other mounts or another word size (choose another --technique)";

/// A child in a process group of its own.
pub(crate) struct Process {
    pub(super) arm: String,
    /// Dropped first: it has ended when the library's page of counts goes.
    pub(super) process: ::process::Process,
    pub(super) squeeze: Option<Squeeze>,
    pub(super) armed: Option<Armed>,
    pub(super) collector: Option<Collector>,
}

/// A process that has ended.
pub(super) struct Done {
    /// Its accounts, what it wrote and what it had.
    pub(super) process: ::process::Done,
    pub(super) note: Option<String>,
    /// CPU time of this process that went into collapsing its pages.
    pub(super) collapsing: Duration,
    /// Where it ran since that was last taken.
    pub(super) ran: Option<Ran>,
}

impl Process {
    /// Starts the program of an arm, with counters.
    pub(crate) fn start(arm: &Arm, counting: &Counting, attention: Attention) -> Result<Self, Error> {
        let layout = arm.setup.preload.as_ref();
        let armed = layout.map(|layout| armed(arm, layout)).transpose()?;
        let variables = armed.iter().flat_map(|armed| armed.env.iter());
        let env: Vec<_> = arm.setup.env.iter().chain(variables).cloned().collect();
        let words: Vec<OsString> = arm.command.iter().map(|word| own(arm, word)).collect();
        let words = arm.setup.own.map_or(words.clone(), |own| switches::set(&words, own));
        let order = Order {
            env: &env,
            unset: &arm.unset,
            thp: arm.setup.thp,
            thp_size: arm.thp_size(),
            bound: Some(&arm.bound),
            events: &counting.events,
            places: &counting.cpus,
            shut_in: arm.shut_in.as_deref(),
            inherited: armed.as_ref().map_or(&[], |armed| &armed.inherited[..]),
            ..Order::plain(&words)
        };
        let process = ::process::Process::start(&order, attention, false);
        let mut process = process.map_err(|failure| not_started(arm, &order, failure))?;
        Ok(Self {
            collector: counting.collector(&mut process),
            arm: arm.name.clone(),
            squeeze: arm.setup.collapse.map(|what| Squeeze::new(what, process.id())),
            process,
            armed,
        })
    }

    /// Waits until it ends, or for the given time; returns whether it has ended.
    pub(crate) fn wait(&mut self, at_most: Option<Duration>, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let waited = self.process.wait(at_most, stop, &mut || {
            self.squeeze.iter_mut().for_each(Squeeze::tick);
            self.collector.iter_mut().for_each(Collector::look);
        });
        waited.map_err(|error| self.not_waited(error))
    }

    /// Likewise, without a reading or anything else that it could feel.
    pub(crate) fn rest(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let rested = self.process.rest(time, stop);
        rested.map_err(|error| self.not_waited(error))
    }

    fn not_waited(&self, error: WaitError) -> Error {
        match error {
            WaitError::Interrupted => Error::Interrupted,
            WaitError::Failed(error) => Error::asked(format!("arm {}: waiting for it", self.arm), error.to_string()),
        }
    }

    /// Collapses what came since the last time, where the arm is about that.
    pub(crate) fn squeeze(&mut self) {
        self.squeeze.iter_mut().for_each(Squeeze::tick);
    }

    /// The end of what it wrote so far, errors if there are any.
    pub(super) fn said(&self) -> String {
        Some(self.outputs.errors())
            .filter(|said| !said.trim().is_empty())
            .unwrap_or_else(|| self.outputs.output())
    }

    /// That it has ended, as an error.
    pub(crate) fn gone(&self) -> Error {
        let status = self.process.status();
        Error::Gone {
            arm: self.arm.clone(),
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            said: said(&self.outputs.errors()),
        }
    }

    /// Its accounts. What it started and left behind ends with it, and has ended when this returns. A program that the loader wrote to about
    /// the library has not the output that it has without us.
    pub(super) fn end(mut self) -> Result<Done, Error> {
        if let Some(collector) = &mut self.collector {
            collector.look_last(&self.process);
        }
        let accounts = || format!("arm {}: its accounts", self.arm);
        let process = self.process.end();
        let mut process = process.map_err(|error| Error::asked(accounts(), error.to_string()))?;
        let errors = process.outputs.errors();
        if self.armed.as_ref().is_some_and(|armed| armed.is_complained_of(&errors)) {
            return Err(Error::asked(format!("--arms {}", self.arm), UNREACHED));
        }
        let (ran, moves) = self.collector.as_mut().map(Collector::take_all).unzip();
        let usage = process.ended.cpu.map_or(0.0, |cpu| cpu.total());
        let is_whole = |ran: &Ran| {
            let moves = ran.migrations.map_or(u64::MAX, |moves| moves.total());
            !Method::Clocks.is_cut_off(ran.cpu_s.values().sum(), usage, 0, moves)
        };
        // Of a program whose recording the kernel ended it is not known where it ran.
        let ran = ran.filter(is_whole);
        process
            .counts
            .extend(moves.flatten().filter(|_| ran.is_some()).map(counted));
        Ok(Done {
            note: note(
                self.squeeze.as_ref(),
                self.armed.as_ref(),
                ", counted in as its system time",
            ),
            collapsing: self.squeeze.as_ref().map_or(Duration::ZERO, |squeeze| squeeze.took),
            ran,
            process,
        })
    }

    /// What was counted of it since that was last taken, or from its start.
    pub(crate) fn counted(&mut self) -> Vec<(Event, f64)> {
        let mut counts = self.process.counted();
        counts.extend(self.collector.as_mut().and_then(Collector::moved).map(counted));
        counts
    }

    /// Where it ran since that was last taken, or from its start.
    pub(crate) fn ran(&mut self) -> Option<Ran> {
        self.collector.iter_mut().for_each(Collector::look_now);
        self.collector.as_mut().map(Collector::take)
    }

    /// What was done to it between slices, in words.
    pub(crate) fn note(&self) -> Option<String> {
        note(self.squeeze.as_ref(), self.armed.as_ref(), ", which is in no slice")
    }
}

/// Moves are counted by the events that record them.
fn counted(moves: u64) -> (Event, f64) {
    (Event::Migrations, moves as f64)
}

/// It is a process like any other.
impl Deref for Process {
    type Target = ::process::Process;

    fn deref(&self) -> &Self::Target {
        &self.process
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.process
    }
}

/// A word of a command as it is for one arm; what is no text stays as it is.
fn own(arm: &Arm, word: &OsStr) -> OsString {
    let text = word.to_str().map(|text| text.replace("{arm}", &arm.name).into());
    text.unwrap_or_else(|| word.to_owned())
}

/// The library with a page of counts of its own, behind those that the arm preloads anyway.
fn armed(arm: &Arm, layout: &Layout) -> Result<Armed, Error> {
    let given = |name: &str| {
        let own = arm.setup.env.iter().rev().find(|(own, _)| own == name);
        own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let armed = Armed::new(arm.library.as_deref(), layout, &given);
    armed.map_err(|why| Error::asked(format!("--arms {}", arm.name), why))
}

/// What a failure to start a program means to the user.
pub(super) fn not_started(arm: &Arm, order: &Order<'_>, Failure { step, error }: Failure) -> Error {
    let is_unknown = order.thp == ThpSwitch::ExceptAdvised && error.kind() == std::io::ErrorKind::InvalidInput;
    let what = match step {
        Step::Program => {
            let program = order.words.first().map_or(OsStr::new(""), OsString::as_os_str);
            return Error::Start {
                program: program.to_string_lossy().into_owned(),
                error,
            };
        }
        Step::Switch if is_unknown => "prctl PR_THP_DISABLE_EXCEPT_ADVISED, which needs Linux 6.18",
        other => other.title(),
    };
    Error::asked(format!("arm {}: {what}", arm.name), error.to_string())
}

/// What was done to a process while it ran, in words, and where the time for that is.
fn note(squeeze: Option<&Squeeze>, armed: Option<&Armed>, place: &str) -> Option<String> {
    let squeezed = squeeze.map(|squeeze| squeeze.told(place));
    let armed = armed.map(|armed| armed.report().map_or_else(|why| why, |report| served(&report)));
    squeezed.or(armed)
}

/// What the library ordered and was refused.
fn served(report: &Report) -> String {
    let served = report
        .served
        .iter()
        .map(|(kind, tally)| format!("{kind} {} in {} regions", tally.bytes, tally.regions));
    let refused = report.fallbacks.iter().map(|(errno, count)| {
        format!(
            "{count} regions fell back: {}",
            std::io::Error::from_raw_os_error(*errno)
        )
    });
    let all: Vec<String> = served.chain(refused).collect();
    if all.is_empty() {
        "the LD_PRELOAD library saw no mapping large enough".to_owned()
    } else {
        format!("advised or mapped by the LD_PRELOAD library: {}", all.join(", "))
    }
}
