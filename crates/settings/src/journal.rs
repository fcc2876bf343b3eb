//! The journal of one run: what it was about to change and what it holds, one JSON line each, on disk before the change.
//!
//! The first line says whose run it is. A `write` line precedes every write, also those that give back; a `done` line
//! follows it and says how much of the setting is the run's own from then on. A journal whose shares are all zero is removed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Unread;
use serde::{Deserialize, Serialize};

use crate::error::WriterError;
use crate::line_file::{LineFile, each_record};
use crate::owner::Owner;
use crate::pool_setting::{PoolSetting, Which};
use crate::reserve::Moved;
use crate::state_dir::StateDir;
use crate::thp_switch::{ThpSwitch, Word};

/// The layout of the lines below.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Record {
    /// Whose journal this is: always the first line, and only there.
    Run(Run),
    /// About to write `after` where `before` was read.
    Write {
        path: String,
        before: u64,
        after: u64,
        /// The value without any share of hugewise's.
        base: u64,
    },
    /// About to write a word in the place of another: whichever is there shows whether that has happened.
    Turn { path: String, before: Word, after: Word },
    /// The kernel moved its reserve with that: khugepaged was started.
    Reserve {
        path: String,
        #[serde(flatten)]
        moved: Moved,
    },
    /// The write was read back, or given up: this much of the value is the run's own now. 0: a switch was put back.
    Done { path: String, share: u64 },
}

/// Whose journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) format: u32,
    /// The kernel's boot id: settings do not survive a reboot.
    pub(crate) boot: String,
    #[serde(flatten)]
    pub(crate) owner: Owner,
    pub(crate) version: String,
    pub(crate) time: String,
}

impl Run {
    pub(crate) fn new(boot: String, owner: Owner) -> Self {
        Self {
            format: FORMAT,
            boot,
            owner,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: jiff::Timestamp::now().to_string(),
        }
    }
}

/// What a run holds of one setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// How much of the value is the run's own.
    pub(crate) pages: u64,
    /// The value without any share of hugewise's, when the first was taken.
    pub(crate) base: u64,
    /// A write that may or may not have happened: the value before, and the value wanted.
    pub(crate) pending: Option<(u64, u64)>,
}

impl Share {
    /// How much is the run's own, given that the value is `now`, if its last write was cut short between journal and
    /// read-back. `None` if that is not known, because something else changed the value in between.
    pub(crate) fn resolved(self, now: u64, which: Which) -> Option<u64> {
        let Some((before, after)) = self.pending else {
            return Some(self.pages);
        };
        if now == before {
            Some(self.pages)
        } else if now == after || which != Which::Overcommit && (before..=after).contains(&now) {
            // A pool may have grown in part; a limit has the value that was written, or another's.
            let (more, less) = (now.saturating_sub(before), before.saturating_sub(now));
            Some(self.pages.saturating_add(more).saturating_sub(less))
        } else {
            None
        }
    }
}

/// All that a run holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) pools: BTreeMap<PoolSetting, Share>,
    pub(crate) switches: BTreeMap<ThpSwitch, Turn>,
}

/// What a run holds of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The word before the first change.
    pub(crate) before: Word,
    /// The last that was to be written.
    pub(crate) after: Word,
    pub(crate) reserve: Option<Moved>,
}

impl Ledger {
    pub(crate) fn share(&self, setting: PoolSetting) -> Share {
        self.pools.get(&setting).copied().unwrap_or_default()
    }

    /// All of both, in words.
    pub(crate) fn names(&self) -> Vec<String> {
        let pools = self.pools.keys().map(ToString::to_string);
        pools.chain(self.switches.keys().map(ToString::to_string)).collect()
    }

    /// Nothing is held, and no write is unfinished.
    pub(crate) fn is_settled(&self) -> bool {
        self.pools.is_empty() && self.switches.is_empty()
    }

    /// Enters one line; `Err` says what is wrong with it.
    fn enter(&mut self, record: &Record) -> Result<(), &'static str> {
        let setting = |path: &str| PoolSetting::parse(path).ok_or("wanted the path of a hugetlb pool's setting");
        match record {
            Record::Run(_) => return Err("wanted one `run`, on the first line only"),
            Record::Write {
                path,
                before,
                after,
                base,
            } => {
                let share = self.pools.entry(setting(path)?).or_default();
                if share.pages == 0 {
                    share.base = *base;
                }
                share.pending = Some((*before, *after));
            }
            Record::Turn { path, before, after } => {
                let switch = ThpSwitch::parse(path).ok_or("expected the path of a THP size's switch")?;
                let first = Turn {
                    before: *before,
                    after: *after,
                    reserve: None,
                };
                self.switches.entry(switch).or_insert(first).after = *after;
            }
            Record::Reserve { path, moved } => {
                let turned = ThpSwitch::parse(path).and_then(|switch| self.switches.get_mut(&switch));
                turned.ok_or("expected a `turn` before its `reserve`")?.reserve = Some(*moved);
            }
            Record::Done { path, share: 0 } if ThpSwitch::parse(path).is_some() => {
                let turned = ThpSwitch::parse(path).and_then(|switch| self.switches.remove(&switch));
                turned.ok_or("expected a `turn` before its `done`")?;
            }
            Record::Done { path, share } => match (self.pools.entry(setting(path)?), *share) {
                (Entry::Occupied(entry), 0) => {
                    entry.remove();
                }
                (Entry::Occupied(mut entry), pages) => {
                    let entry = entry.get_mut();
                    entry.pages = pages;
                    entry.pending = None;
                }
                (Entry::Vacant(_), _) => return Err("wanted a `write` before its `done`"),
            },
        }
        Ok(())
    }
}

/// What a journal's bytes say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Story {
    /// Whose it is; `None` if the run ended before it could say, and so before it changed anything.
    pub(crate) run: Option<Run>,
    pub(crate) ledger: Ledger,
}

/// Reads a journal. A last line without its end was cut off before its write was made, and is left out.
pub(crate) fn parse(bytes: &[u8], place: &str) -> Result<Story, Unread> {
    let mut story = Story::default();
    each_record(bytes, place, |n, record| match record {
        Record::Run(first) if n == 0 && first.format == FORMAT => {
            story.run = Some(first);
            Ok(())
        }
        Record::Run(Run { format, version, .. }) if n == 0 => {
            Err(format!("format {format} of hugewise {version} is not known here"))
        }
        _ if n == 0 => Err("wanted `run` on the first line".to_owned()),
        record => story.ledger.enter(&record).map_err(str::to_owned),
    })?;
    Ok(story)
}

/// A journal that is open for more lines.
#[derive(Debug)]
pub(crate) struct Journal {
    file: LineFile,
    pub(crate) ledger: Ledger,
}

impl Journal {
    /// A new journal for this run, on disk when this returns. Call under the lock.
    pub(crate) fn create(dir: &StateDir, run: Run) -> Result<Self, WriterError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Owner { pid, start } = run.owner;
        let name = format!("run-{pid}-{start}-{}.jsonl", COUNT.fetch_add(1, Ordering::Relaxed));
        let file = LineFile::create(dir, &name, &Record::Run(run))?;
        let ledger = Ledger::default();
        Ok(Self { file, ledger })
    }

    /// Opens another run's journal, ready for lines after its last whole one. Call under the lock.
    pub(crate) fn open(path: &Path) -> Result<(Self, Option<Run>), WriterError> {
        let (file, bytes) = LineFile::open(path)?;
        let Story { run, ledger } = parse(&bytes, &path.display().to_string())?;
        Ok((Self { file, ledger }, run))
    }

    /// What a run holds by its journal, read as it is; nothing if that is gone, or cannot be read, which `recover` reports. Needs no lock.
    pub(crate) fn ledger(path: &Path) -> Ledger {
        let bytes = LineFile::read(path).ok().flatten().unwrap_or_default();
        let story = parse(&bytes, &path.display().to_string());
        story.map(|story| story.ledger).unwrap_or_default()
    }

    /// Adds a line, and returns when it is on disk.
    pub(crate) fn append(&mut self, record: &Record) -> Result<(), WriterError> {
        self.file.add(record)?;
        self.ledger.enter(record).map_err(|why| self.file.garbled(why))
    }

    /// Removes the file of a run that holds nothing any more.
    pub(crate) fn remove(&self, dir: &StateDir) -> Result<(), WriterError> {
        self.file.remove(dir)
    }
}

#[cfg(test)]
mod tests;
