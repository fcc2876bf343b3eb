//! A program of an arm that is about to run: its words, and everything that the arm does to it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use model::Bytes;
use process::{Attention, Bound, Failure, Order, Process, Step, ThpSwitch};

use super::counted::Counting;
use super::{Arm, Setup};
use crate::Error;
use crate::preload::{self, Armed, Layout, Preload};

/// What to start.
pub(crate) struct Spawned<'a> {
    pub(super) arm: &'a Arm,
    command: Vec<OsString>,
    pub(super) setup: Cow<'a, Setup>,
    bound: Bound,
    /// Keeps the library's page of counts until the program has ended.
    pub(super) armed: Option<Armed>,
    counting: Option<&'a Counting>,
    attention: Attention,
    /// May processes with sessions of their own outlive it, as a server that a command of the user's starts?
    may_leave_servers: bool,
}

impl<'a> Spawned<'a> {
    /// The arm's program.
    ///
    /// # Errors
    /// If the library that it needs in front cannot be had.
    pub(crate) fn of(arm: &'a Arm) -> Result<Self, Error> {
        let mut setup = Cow::Borrowed(&arm.setup);
        let layout = arm.setup.preload.as_ref();
        let armed = layout.map(|layout| armed(arm, layout)).transpose()?;
        if let Some(armed) = &armed {
            setup.to_mut().env.extend(armed.env.iter().cloned());
        }
        Ok(Self {
            arm,
            command: arm.command.iter().map(|word| own(arm, word)).collect(),
            setup,
            bound: arm.bound.clone(),
            armed,
            counting: None,
            attention: Attention::Measured(Bytes::default()),
            may_leave_servers: false,
        })
    }

    /// Starts it.
    pub(super) fn start(&self) -> Result<Process, Error> {
        let order = Order {
            words: &self.command,
            env: &self.setup.env,
            unset: &self.arm.unset,
            thp: self.setup.thp,
            bound: &self.bound,
            events: self.counting.map_or(&[], Counting::events),
        };
        let started = Process::start(&order, self.attention, self.may_leave_servers);
        started.map_err(|failure| self.failed(failure))
    }

    /// What a failure to start it means to the user.
    fn failed(&self, Failure { step, error }: Failure) -> Error {
        let is_unknown = self.setup.thp == ThpSwitch::ExceptAdvised && error.kind() == std::io::ErrorKind::InvalidInput;
        let what = match step {
            Step::Program => {
                let program = self.command.first().map_or(OsStr::new(""), OsString::as_os_str);
                return Error::Start {
                    program: program.to_string_lossy().into_owned(),
                    error,
                };
            }
            Step::Switch if is_unknown => "prctl PR_THP_DISABLE_EXCEPT_ADVISED, which needs Linux 6.18",
            other => other.title(),
        };
        Error::Setup {
            arm: self.arm.name.clone(),
            what: what.to_owned(),
            error,
        }
    }

    /// The same with counters.
    pub(crate) fn counted(self, counting: &'a Counting) -> Self {
        Self {
            counting: Some(counting),
            ..self
        }
    }

    /// The same, looked at so closely.
    pub(super) fn with(self, attention: Attention) -> Self {
        Self { attention, ..self }
    }

    /// A command of the shell, without what the arm does to its program.
    pub(super) fn shell(arm: &'a Arm, line: &str) -> Self {
        Self {
            arm,
            command: ["/bin/sh", "-c", &line.replace("{arm}", &arm.name)]
                .map(OsString::from)
                .to_vec(),
            setup: Cow::Owned(Setup::default()),
            bound: Bound::default(),
            armed: None,
            counting: None,
            attention: Attention::Measured(Bytes::default()),
            may_leave_servers: true,
        }
    }
}

/// A word of a command as it is for one arm; what is no text stays as it is.
fn own(arm: &Arm, word: &OsStr) -> OsString {
    let text = word.to_str().map(|text| text.replace("{arm}", &arm.name).into());
    text.unwrap_or_else(|| word.to_owned())
}

/// The library with a page of counts of its own, behind those that the arm preloads anyway.
fn armed(arm: &Arm, layout: &Layout) -> Result<Armed, Error> {
    let own = arm.setup.env.iter().rev().find(|(name, _)| name == "LD_PRELOAD");
    let others = own.map(|(_, list)| list.clone());
    let armed = Preload::ready().and_then(|preload| preload.arm(layout, others.or_else(preload::given)));
    armed.map_err(|why| Error::Arm {
        arm: arm.name.clone(),
        why: why.to_string(),
    })
}
