//! A machine's set-up: a plan is applied, verified and undone here, and everything that was changed is kept account of.
//!
//! Every change is in a journal on disk before it is made, so that whatever ends the run (an error, SIGKILL, a power cut),
//! [`Setup::undo`] can revert to the previous values.

mod access;
mod apply;
mod bounds;
mod change_log;
mod error;
mod grow;
mod lift;
mod status;
mod survey;
mod undo;
mod verify;
mod without;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod reserve_tests;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod stack_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod undo_tests;

use std::io;
use std::path::{Path, PathBuf};

use model::Bytes;
use model::plan::PoolNeed;

use crate::error::WriterError;
use crate::place::{Place, State};
use crate::reserve;
use crate::state_dir::StateDir;
use crate::writer::Writer;
use access::Access;
use change_log::{ChangeLog, Record, Story};
use survey::told;

pub use error::SetupError;
pub use undo::Which;
pub use verify::{Programs, users};

/// Applies plans to the machine, and reverts them.
pub struct Setup {
    writer: Writer,
    homes: Vec<StateDir>,
}

/// How a plan is to be applied.
pub struct How<'a> {
    /// Undo everything if a pool gets fewer pages than were asked for.
    pub exact: bool,
    /// Memory that growing pools leaves to other programs [usual: 10 % of memory, at least 512M].
    pub leave: Option<Bytes>,
    /// Asked before every change: does the user want it to end?
    pub stop: &'a dyn Fn() -> bool,
}

impl Setup {
    /// A set-up whose journals are in the first of `homes` that is there, or else can be made. Nothing is read or made
    /// until it is used.
    pub fn new(writer: Writer, homes: impl IntoIterator<Item = PathBuf>) -> Self {
        let homes = homes.into_iter().map(StateDir).collect();
        Self { writer, homes }
    }

    /// The directory of the journals, if there is one.
    fn home(&self) -> Result<Option<&StateDir>, SetupError> {
        for home in &self.homes {
            match home.check() {
                Ok(()) => return Ok(Some(home)),
                Err(WriterError::State { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(_) if !rustix::process::geteuid().is_root() => {
                    return Err(SetupError::NotOurs(home.0.display().to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The directory of the journals, made if need be, and why it is not where it should be.
    fn make_home(&self) -> Result<(&StateDir, Vec<String>), SetupError> {
        let mut notes = Vec::new();
        if let Some(home) = self.home()? {
            return Ok((home, notes));
        }
        let [first, others @ ..] = &self.homes[..] else {
            return Err(SetupError::Nowhere);
        };
        let Err(failed) = first.create() else {
            return Ok((first, notes));
        };
        let made = others.iter().find(|home| home.create().is_ok());
        notes.push(format!("{failed}; a restart may lose the record of what was changed"));
        made.map(|home| (home, notes)).ok_or(SetupError::Writer(failed))
    }

    /// The journals, oldest first. Call under the lock.
    fn logs(home: &StateDir) -> Result<Vec<ChangeLog>, SetupError> {
        each_journal(home, |path| ChangeLog::open(home, path))
    }

    /// What the journals say, oldest first, without the lock: for those who only read.
    fn stories(&self) -> Result<Vec<Story>, SetupError> {
        self.home()?
            .map_or(Ok(Vec::new()), |home| each_journal(home, change_log::story))
    }

    /// The pool pages that plans on record are for.
    ///
    /// # Errors
    /// When the journals cannot be read.
    pub fn needs(&self) -> Result<Vec<PoolNeed>, SetupError> {
        let stories = self.stories()?;
        Ok(stories.into_iter().flat_map(|story| story.head.plan.needs).collect())
    }

    /// Has the machine been restarted since?
    fn is_restarted(&self, story: &Story) -> Result<bool, SetupError> {
        Ok(self.writer.boot()? != story.head.boot)
    }
}

/// What there is in each journal, oldest first.
fn each_journal<T>(
    home: &StateDir,
    read: impl Fn(&Path) -> Result<Option<T>, WriterError>,
) -> Result<Vec<T>, SetupError> {
    let journals = home.journals()?;
    let read: Result<Vec<T>, WriterError> = journals.iter().filter_map(|path| read(path).transpose()).collect();
    read.map_err(SetupError::Journal)
}

/// For the fuzz target: the journal of a plan is read, or refused with a place in the file.
pub(crate) fn read_any(bytes: &[u8]) {
    if let Err(error) = change_log::parse(bytes, "fuzz") {
        assert!(error.place.starts_with("fuzz:"), "{error}");
    }
}

/// Makes one change: announced in the journal, made, and read back. Refuses when something else than `from` stands there.
fn change(
    access: &Access<'_>,
    log: &mut ChangeLog,
    place: &Place,
    from: &State,
    to: &State,
) -> Result<State, SetupError> {
    log.append(Record::Set {
        place: place.clone(),
        from: from.clone(),
        to: to.clone(),
    })?;
    let read_back = |log: &mut ChangeLog, state: &State| {
        let (place, state) = (place.clone(), state.clone());
        log.append(Record::Now { place, state })
    };
    // Syncing takes a while, so this is read after it. If it cannot be, the change stays unfinished, for `undo` to decide.
    let found = access.look(place)?;
    if !found.is(from) {
        read_back(log, from)?;
        return Err(SetupError::Drift(vec![survey::differs(place, &told(from), &found, to)]));
    }
    let moves = matches!(place, Place::Setting(path) if reserve::moves_with(path));
    let kept = reserve::now(access.sink()).filter(|_| moves);
    let put = access.put(place, from, to);
    keep_reserve(access, log, place, to, kept)?;
    let now = access.look(place)?;
    read_back(log, &now)?;
    put.map(|()| now)
}

/// Enters what a change did to the kernel's reserve, which was `kept`, and takes it back with one that goes back. After a restart it is
/// not known whether the kernel or an administrator made it what it is, and it is left to the kernel.
fn keep_reserve(
    access: &Access<'_>,
    log: &mut ChangeLog,
    place: &Place,
    to: &State,
    kept: Option<u64>,
) -> Result<(), SetupError> {
    let Some(entry) = log.story.entries.iter().find(|entry| entry.place == *place) else {
        return Ok(());
    };
    let is_back = to.is(&entry.before);
    if is_back && log.story.is_restarted {
        return Ok(());
    }
    let wanted = match is_back {
        true => reserve::wanted(entry.reserve, kept, reserve::now(access.sink())),
        false => kept,
    };
    if let Some(moved) = reserve::moved(access.sink(), wanted) {
        let place = place.clone();
        log.append(Record::Reserve { place, moved })?;
    }
    match is_back {
        true => Ok(reserve::restore(access.sink(), wanted)?),
        false => Ok(()),
    }
}
