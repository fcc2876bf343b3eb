//! What a finding advises, and whether this machine can take it: every fix and plan goes through here before it is shown.

mod account;
mod at_once;
mod count;
mod draft;
mod ledger;

use host::snapshot::Feature;
use model::Bytes;
use model::findings::Finding;
use programs::Evidence;
use programs::config::Boot;

use crate::facts::default_size;
pub(super) use at_once::hindrance;
pub(super) use count::Count;
pub(super) use draft::Draft;
pub(super) use ledger::{Ledger, fit_together, fits_alone, most_pages};

/// Something to do, and what the machine must have for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remedy {
    text: String,
    needs: Vec<Need>,
    /// The goal of `hugewise plan`, if it is a plan.
    goal: Option<String>,
    /// Is it for the case that no other can be taken?
    is_last: bool,
    /// Does it do in place of those before it?
    is_instead: bool,
}

/// What a machine must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A file below the directory of THP that takes this value.
    Thp(String, String),
    /// A kernel setting, by its sysctl name.
    Sysctl(&'static str),
    Feature(Feature),
    /// Room for so many pages of a pool in all, by their size.
    Pool(Bytes, u64),
    /// Room for so many pages beside those in use, for one program.
    More(Bytes, u64),
    /// Room for so many pages of a pool in all, for what runs and for all programs of the files that were given.
    Files(Bytes, u64),
    /// At least so much memory.
    Memory(Bytes),
    /// Transparent huge pages.
    HasThp,
    /// No finding wants the pool for a program.
    Unwanted(Bytes),
}

impl Need {
    pub(super) fn thp(name: &str, value: &str) -> Self {
        Self::Thp(name.to_owned(), value.to_owned())
    }

    /// The page size of the pool that needs room.
    fn page(&self) -> Option<Bytes> {
        match self {
            Self::Pool(page, _) | Self::More(page, _) | Self::Files(page, _) => Some(*page),
            _ => None,
        }
    }
}

impl Remedy {
    /// Something that every machine takes.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            needs: Vec::new(),
            goal: None,
            is_last: false,
            is_instead: false,
        }
    }

    pub(super) fn plan(goal: &str) -> Self {
        Self {
            goal: Some(goal.to_owned()),
            ..Self::new(Finding::command_of(goal))
        }
    }

    pub(super) fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// The machine has room for the pools of this boot line.
    pub(super) fn with_line(self, evidence: &Evidence, words: &str) -> Self {
        let boot = Boot::parse(words, None);
        let default = boot
            .default_size
            .or(default_size(evidence).ok())
            .unwrap_or(Bytes::mib(2));
        boot.pools.iter().fold(self, |remedy, pool| {
            remedy.need(Need::Pool(pool.size.unwrap_or(default), pool.pages.total()))
        })
    }

    pub(super) fn last(mut self) -> Self {
        self.is_last = true;
        self
    }

    pub(super) fn instead(mut self) -> Self {
        self.is_instead = true;
        self
    }
}
