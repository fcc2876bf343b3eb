//! An arm as a run needs it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use model::compare::Start;
use model::{Bytes, PageKind};
use process::rights::ShutIn;

use crate::Named;
use crate::around::Shortage;
use crate::place::Bound;
use crate::technique::Setup;

/// Everything about one arm that a run needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    pub name: String,
    /// The program and its arguments; `{arm}` in them stands for the name.
    pub command: Vec<OsString>,
    /// The page kind that shows whether it took effect.
    pub kind: Option<PageKind>,
    /// Page kinds that need something on loan: pages of a pool, or the switches of a THP size.
    pub lent: Vec<PageKind>,
    /// What is done to the child.
    pub setup: Setup,
    /// What could be done instead, in order, if that does not reach the program's memory.
    pub others: Vec<Setup>,
    /// Variables that are not to be there.
    pub unset: Vec<String>,
    /// A file of the LD_PRELOAD library that every user can load.
    pub library: Option<Arc<Path>>,
    /// Where it has to run (`--place`), and what that means here.
    pub place: Option<String>,
    pub bound: Bound,
    /// What the program, and the commands that wait for it, load and stop it, have in place of what this process has.
    pub shut_in: Option<Arc<ShutIn>>,
    /// Commands of the shell before and after each run, outside of what is timed.
    pub before: Option<String>,
    /// See `before`.
    pub after: Option<String>,
}

impl Arm {
    /// As results have it.
    pub(crate) fn named(&self) -> Named {
        let words = &self.setup.words;
        Named {
            name: self.name.clone(),
            technique: match &self.setup.lacks {
                None => words.clone(),
                Some(why) => format!("{words}; {why}"),
            },
            kind: self.kind,
            place: self.place.clone(),
        }
    }

    /// What the pool of its pages lacks is said of it in every way to them.
    pub(crate) fn lack(&mut self, short: &[Shortage]) {
        let found = short.iter().find(|shortage| Some(shortage.kind) == self.kind);
        for setup in [&mut self.setup].into_iter().chain(&mut self.others) {
            setup.lacks = found.map(|shortage| shortage.why.clone());
        }
    }

    pub(crate) fn start(&self) -> Start {
        let text = |(name, value): &(OsString, OsString)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        };
        Start {
            arm: self.name.clone(),
            env: self.setup.env.iter().map(text).collect(),
            technique: self.setup.way.map(|way| way.to_string()),
        }
    }

    /// The THP size whose pages have to be told from base pages.
    pub(super) fn thp_size(&self) -> Option<Bytes> {
        self.kind.and_then(PageKind::mthp)
    }
}
