//! Why a plan was not applied or not undone, and what to do about it.

use std::io;

use model::plan::PlanError;
use model::setup::RevertStep;
use model::{Bytes, Unread};

use crate::error::WriterError;
use crate::place::Place;

/// Why a plan was not applied, verified or undone.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The plan writes where no plan may write.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The journals or the lock could not be used, or a value not be read.
    #[error(transparent)]
    Writer(#[from] WriterError),
    /// Two changes of the plan write to one place, so undoing could not distinguish them.
    #[error("the plan changes {0} twice: make it one change")]
    Twice(Place),
    /// The machine is not as it was when the plan was made, as each of these says; nothing was changed.
    #[error("the machine has changed since the plan was made: {} (nothing was changed; make a new plan)", .0.join("; "))]
    Drift(Vec<String>),
    /// An earlier plan was neither applied to its end nor undone.
    #[error("the plan applied at {0} was interrupted: run `hugewise undo` first")]
    CutShort(String),
    /// It is not known what an earlier plan changed.
    #[error("a journal of an earlier plan cannot be read: {0} (repair or delete it; it lists what was changed)")]
    Journal(WriterError),
    /// The record of what was changed is another user's: root's, as a rule.
    #[error("what hugewise has changed is recorded in {0}, which this user may not read: run it with sudo")]
    NotOurs(String),
    /// No plan that is applied is meant.
    #[error("no plan for {0} is on record (`hugewise status` lists those that are; nothing was changed)")]
    NotOnRecord(String),
    /// No directory was named for the journals.
    #[error("changes cannot be recorded: no state directory")]
    Nowhere,
    /// The system did not take a value.
    #[error("cannot make {place} be {to}: {source}{}", advice(.source))]
    Put {
        place: Place,
        to: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The system accepted a value silently, but another is in place.
    #[error("{place} was to become {asked}, but reads {found} after the write")]
    NotTaken {
        place: Place,
        asked: String,
        /// What was read back.
        found: String,
    },
    /// A pool could not be changed beside a measurement that has borrowed from it.
    #[error("a measurement holds {pages} pages of {place}: try again when it is done")]
    OnLoan { place: Place, pages: u64 },
    /// A hugetlbfs with other options is mounted already, and may be in use.
    #[error("{0} is already mounted with other options: unmount it, or plan for another directory")]
    MountedOtherwise(Place),
    /// The machine would not survive it.
    #[error(
        "{place}: {what} is more than this machine can spare: {most} of its {total} (ask for less; nothing was changed)"
    )]
    TooMuch {
        place: Place,
        what: String,
        /// The most that can be had.
        most: Bytes,
        total: Bytes,
    },
    /// A pool got fewer pages than were asked for.
    #[error("a pool got fewer pages than requested")]
    Short,
    /// The user wanted it to end.
    #[error("interrupted")]
    Interrupted,
    /// Something went wrong on the way, and what had been done was undone.
    #[error("{cause}; {}", undone(.told))]
    RolledBack {
        /// What went wrong.
        cause: Box<SetupError>,
        /// What became of what had been done.
        told: Vec<RevertStep>,
    },
}

impl SetupError {
    /// Was this user not allowed to?
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Writer(error) => error.is_denied(),
            Self::Put { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::RolledBack { cause, .. } => cause.is_denied(),
            _ => false,
        }
    }

    /// Is some of the plan in place, because it could not be undone?
    pub fn is_in_part(&self) -> bool {
        matches!(self, Self::RolledBack { told, .. } if !told.iter().all(|back| back.outcome.is_settled()))
    }

    /// Did the user want it to end?
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::RolledBack { cause, told } => {
                cause.is_interrupted() && told.iter().all(|back| back.outcome.is_settled())
            }
            _ => false,
        }
    }
}

impl From<Unread> for SetupError {
    fn from(unread: Unread) -> Self {
        Self::Writer(unread.into())
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => " (run it with sudo)",
        io::ErrorKind::ResourceBusy => " (it is in use)",
        _ => "",
    }
}

fn undone(told: &[RevertStep]) -> String {
    let left: Vec<&RevertStep> = told.iter().filter(|back| !back.outcome.is_settled()).collect();
    if left.is_empty() {
        return "all changes were undone".to_owned();
    }
    let left = left
        .iter()
        .map(|back| format!("{} is {}: {}", back.place, back.found, back.note));
    format!(
        "undone but for: {} (`hugewise undo` tries again)",
        left.collect::<Vec<_>>().join("; ")
    )
}
