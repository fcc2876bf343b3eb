//! The switches of the THP sizes that a lease may change: named by type, so that no other file can ever be written back from a journal.

use std::fmt;

use host::snapshot::hugetlb::directory_name;
use host::snapshot::thp::THP;
use model::{Bytes, Cause, Unread};
use serde::{Deserialize, Serialize};

use crate::error::WriterError;
use crate::sink::{self, Sink};

/// The switch that sizes may inherit.
pub(crate) const ALL_SIZES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Orders of two whose sizes a kernel may have: 8K, the least of any, to 1G, above the largest.
const ORDERS: std::ops::Range<u32> = 13..31;

/// Which anonymous memory may have THP of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThpSwitch(pub(crate) Bytes);

model::names! {
    /// What it says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum Word, "what a THP switch says" {
        Always = "always",
        /// What the switch of all sizes says.
        Inherit = "inherit",
        Madvise = "madvise",
        Never = "never",
    }
}

impl ThpSwitch {
    /// Those of this kernel (Linux 6.8 and later), smallest size first.
    pub(crate) fn all(sink: &dyn Sink) -> Result<Vec<Self>, Unread> {
        let mut all = Vec::new();
        for switch in ORDERS.map(|order| Self(Bytes(1 << order))) {
            match switch.read(sink) {
                Ok(_) => all.push(switch),
                Err(why) if why.unread == Cause::Absent => {}
                Err(why) => return Err(why),
            }
        }
        Ok(all)
    }

    /// The file's path; [`ThpSwitch::parse`] reads it back.
    pub(crate) fn path(self) -> String {
        format!("{THP}/{}/enabled", directory_name(self.0))
    }

    /// The switch with exactly this path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut all = ORDERS.map(|order| Self(Bytes(1 << order)));
        all.find(|switch| switch.path() == path)
    }

    pub(crate) fn read(self, sink: &dyn Sink) -> Result<Word, Unread> {
        word(sink, &self.path())
    }

    /// Does memory that no program advises get this size, by its own switch or by that of all sizes?
    pub(crate) fn is_always(self, sink: &dyn Sink) -> Result<bool, Unread> {
        let own = self.read(sink)?;
        Ok(match own {
            Word::Inherit => word(sink, ALL_SIZES)? == Word::Always,
            own => own == Word::Always,
        })
    }

    pub(crate) fn write(self, sink: &dyn Sink, word: Word) -> Result<(), WriterError> {
        sink::write(sink, &self.path(), word.to_string())
    }
}

/// The word in brackets.
fn word(sink: &dyn Sink, path: &str) -> Result<Word, Unread> {
    let text = sink::text(sink, path)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    chosen.and_then(Word::named).ok_or_else(|| {
        let why = format!(
            "expected always, inherit, madvise or never in [brackets], got `{}`",
            text.trim()
        );
        Unread::new(Cause::Garbled, format!("{path}:1"), why)
    })
}

impl fmt::Display for ThpSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "THP of {}", self.0.exact())
    }
}
