//! The journal of one applied plan: the plan itself, and what stood at each place before it was changed, on disk before the
//! change.
//!
//! The first line holds the plan. A `set` line precedes every change, also those that undo; a `now` line follows it and says
//! what was read back. A place that has its previous value again is no longer tracked, and a journal without places
//! is removed. Unlike a lease's journal this one outlives its process and a restart of the machine.

use std::path::{Path, PathBuf};

use model::Unread;
use model::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::error::WriterError;
use crate::line_file::{LineFile, each_record};
use crate::place::{Place, State};
use crate::reserve::Moved;
use crate::state_dir::StateDir;

/// The layout of the lines below.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Record {
    /// What is applied: always the first line, and only there.
    Plan(Head),
    /// About to make `to` of what was read as `from`.
    Set { place: Place, from: State, to: State },
    /// What was read back.
    Now { place: Place, state: State },
    /// The kernel moved its reserve with that.
    Reserve {
        place: Place,
        #[serde(flatten)]
        moved: Moved,
    },
    /// Let go: its value is not ours to undo any more.
    Forget { place: Place },
    /// About to take the plan's part out of what later plans made of a place: these journals say so afterwards.
    Lift {
        place: Place,
        from: State,
        to: State,
        rebased: Vec<Rebased>,
    },
    /// It was not done.
    Dropped { place: Place },
    /// A plan below this one has gone, and left it what it did to the kernel's reserve.
    Rebase {
        place: Place,
        before: State,
        ours: State,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserve: Option<Moved>,
    },
    /// Every change of the plan was made.
    Complete,
}

/// What a later plan's journal says of a place, once a plan below it has gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rebased {
    /// The journal's name in the directory.
    pub(super) journal: String,
    pub(super) before: State,
    pub(super) ours: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reserve: Option<Moved>,
}

/// A change of several journals that is announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lift {
    pub(super) to: State,
    pub(super) rebased: Vec<Rebased>,
}

/// What is applied, when, and in which life of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    /// The kernel's boot id: settings and mounts do not survive a restart, files do.
    pub(super) boot: String,
    pub(super) pid: u32,
    pub(super) version: String,
    pub(super) time: String,
    pub(super) plan: Plan,
}

impl Head {
    pub(super) fn new(boot: String, plan: Plan) -> Self {
        Self {
            format: FORMAT,
            boot,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time: jiff::Timestamp::now().to_string(),
            plan,
        }
    }
}

/// A place that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    /// The value before the first change.
    pub(super) before: State,
    /// What was read back after the last.
    pub(super) ours: State,
    /// What a change that may or may not have happened wanted.
    pub(super) pending: Option<State>,
    /// What the change did to the kernel's reserve.
    pub(super) reserve: Option<Moved>,
    /// What taking it out from below others wants.
    pub(super) lift: Option<Lift>,
    /// Has a plan below it gone, so that the place is to have less than the plan says?
    pub(super) is_rebased: bool,
}

impl Entry {
    /// Is this what we put there, be it by a change that was cut short?
    pub(super) fn owns(&self, now: &State) -> bool {
        now.is(&self.ours)
            || self
                .pending
                .as_ref()
                .is_some_and(|to| now.is(to) || self.is_halfway(now, to))
    }

    /// A pool may have grown or shrunk in part. Of any other setting a value in between is another's.
    fn is_halfway(&self, now: &State, to: &State) -> bool {
        if !self.place.path().contains("/nr_hugepages") {
            return false;
        }
        let numbers = (self.ours.number(), now.number(), to.number());
        let (Some(from), Some(now), Some(to)) = numbers else {
            return false;
        };
        (from.min(to)..=from.max(to)).contains(&now)
    }
}

/// What a journal's bytes say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Story {
    pub(super) head: Head,
    /// Places that are still changed, in the order of their first change.
    pub(super) entries: Vec<Entry>,
    /// Did the run come to its end?
    pub(super) complete: bool,
    /// Has the machine been restarted since, as `undo` finds out? It is not in the journal.
    pub(super) is_restarted: bool,
}

impl Story {
    fn new(head: Head) -> Self {
        Self {
            head,
            entries: Vec::new(),
            complete: false,
            is_restarted: false,
        }
    }

    /// Is it a place that the plan changes, or a directory that one needs?
    fn plans(&self, place: &Place) -> bool {
        let mut places = self
            .head
            .plan
            .changes
            .iter()
            .filter_map(|change| Place::of(&change.target));
        places.any(|planned| planned == *place || planned.directories().contains(place))
    }

    fn entry(&mut self, place: &Place) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.place == *place)
    }

    /// The machine has been restarted since. What a change did to the kernel's reserve ended with that.
    pub(super) fn restarted(&mut self) {
        self.is_restarted = true;
        self.entries.iter_mut().for_each(|entry| entry.reserve = None);
    }

    /// Enters one line; `Err` says what is wrong with it.
    fn enter(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Plan(_) => return Err("wanted one `plan`, on the first line only"),
            Record::Complete => self.complete = true,
            Record::Set { place, .. } if !self.plans(&place) => return Err("wanted a place that the plan changes"),
            Record::Set { place, from, to } => self.set(place, from, to),
            Record::Now { place, state } => {
                let entry = self.entry(&place).ok_or("wanted a `set` before its `now`")?;
                let back = state.is(&entry.before);
                (entry.ours, entry.pending) = (state, None);
                if back {
                    self.forget(&place);
                }
            }
            Record::Reserve { place, moved } => {
                let entry = self.entry(&place).ok_or("wanted a `set` before its `reserve`")?;
                entry.reserve = Some(moved);
            }
            Record::Forget { place } => self.forget(&place),
            Record::Lift { place, to, rebased, .. } => {
                let entry = self.entry(&place).ok_or("wanted a `set` before its `lift`")?;
                entry.lift = Some(Lift { to, rebased });
            }
            Record::Dropped { place } => {
                let entry = self.entry(&place).ok_or("wanted a `set` before its `dropped`")?;
                entry.lift = None;
            }
            Record::Rebase {
                place,
                before,
                ours,
                reserve,
            } => self.rebase(&place, (before, ours), reserve),
        }
        Ok(())
    }

    fn set(&mut self, place: Place, from: State, to: State) {
        match self.entry(&place) {
            // What a change that was cut short wanted has turned out to be there, or not.
            Some(entry) => (entry.ours, entry.pending) = (from, Some(to)),
            None => self.entries.push(Entry {
                place,
                before: from.clone(),
                ours: from,
                pending: Some(to),
                reserve: None,
                lift: None,
                is_rebased: false,
            }),
        }
    }

    fn rebase(&mut self, place: &Place, (before, ours): (State, State), reserve: Option<Moved>) {
        // Said twice where a kill came in between.
        let Some(entry) = self.entry(place) else { return };
        let is_back = ours.is(&before);
        (entry.before, entry.ours, entry.is_rebased) = (before, ours, true);
        entry.reserve = reserve;
        if is_back {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: &Place) {
        self.entries.retain(|entry| entry.place != *place);
    }
}

/// Reads a journal; `None` if the run ended before its first line, and so before it changed anything. A last line without
/// its end was cut off before its change was made, and is left out.
pub(super) fn parse(bytes: &[u8], name: &str) -> Result<Option<Story>, Unread> {
    let mut story: Option<Story> = None;
    each_record(bytes, name, |_, record| match (&mut story, record) {
        (None, Record::Plan(head)) => {
            check(&head)?;
            story = Some(Story::new(head));
            Ok(())
        }
        (None, _) => Err("wanted `plan` on the first line".to_owned()),
        (Some(story), record) => story.enter(record).map_err(str::to_owned),
    })?;
    Ok(story)
}

fn check(head: &Head) -> Result<(), String> {
    let Head {
        format, version, plan, ..
    } = head;
    if *format != FORMAT {
        return Err(format!("format {format} of hugewise {version} is not known here"));
    }
    plan.check_places().map_err(|error| error.to_string())
}

/// Reads a journal as it is, beside a run that may be at work; `None` if it is gone, or has no whole line yet.
pub(super) fn story(path: &Path) -> Result<Option<Story>, WriterError> {
    let bytes = LineFile::read(path)?;
    let story = bytes.map(|bytes| parse(&bytes, &path.display().to_string()));
    Ok(story.transpose()?.flatten())
}

/// In order of name journals are in order of their making, whatever the clock says: each has the number behind the last.
fn next_number(dir: &StateDir) -> Result<u64, WriterError> {
    let number = |path: &PathBuf| {
        let digits = path.file_name()?.to_str()?.strip_prefix("plan-")?.get(..20)?;
        digits.parse::<u64>().ok()
    };
    let last = dir.journals()?.iter().filter_map(number).max();
    Ok(last.map_or(1, |last| last.saturating_add(1)))
}

/// A journal that is open for more lines.
#[derive(Debug)]
pub(super) struct ChangeLog {
    file: LineFile,
    pub(super) story: Story,
}

impl ChangeLog {
    /// A new journal, on disk when this returns. Call under the lock.
    pub(super) fn create(dir: &StateDir, head: Head) -> Result<Self, WriterError> {
        let name = format!("plan-{:020}-{}.jsonl", next_number(dir)?, head.pid);
        let file = LineFile::create(dir, &name, &Record::Plan(head.clone()))?;
        let story = Story::new(head);
        Ok(Self { file, story })
    }

    /// Opens a journal; one that ended before its first line changed nothing and is removed. Call under the lock.
    pub(super) fn open(dir: &StateDir, path: &Path) -> Result<Option<Self>, WriterError> {
        let (file, bytes) = LineFile::open(path)?;
        match parse(&bytes, &path.display().to_string())? {
            Some(story) => Ok(Some(Self { file, story })),
            None => file.remove(dir).map(|()| None),
        }
    }

    /// The journal's name in the directory.
    pub(super) fn name(&self) -> String {
        let name = self.file.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Adds a line, and returns when it is on disk.
    pub(super) fn append(&mut self, record: Record) -> Result<(), WriterError> {
        self.file.add(&record)?;
        self.story.enter(record).map_err(|why| self.file.garbled(why))
    }

    /// Removes the journal, if nothing in it is left to undo.
    pub(super) fn remove_if_settled(self, dir: &StateDir) -> Result<(), WriterError> {
        if self.story.entries.is_empty() {
            self.file.remove(dir)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
