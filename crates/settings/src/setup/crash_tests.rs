//! Whatever write an apply or an undo is killed at, before it or after it: the next `undo` restores everything.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::scene::{Scene, how, plan};
use super::{Setup, SetupError};
use crate::fake::{Fault, Process};
use crate::place::{Place, State};
use crate::sink::Sink;
use crate::writer::Writer;

/// More writes than the plan needs: twelve changes and the directories for them.
const MOST: u64 = 40;

fn faults() -> impl Iterator<Item = Fault> {
    (0..MOST).flat_map(|n| [Fault::DieBefore(n), Fault::DieAfter(n)])
}

/// Undoes until nothing is left, and holds the machine against what it was.
fn restored(scene: &Scene, before: &crate::fake::World, fault: &str) {
    let undone = scene.undo();
    assert!(undone.is_settled(), "{fault}: {undone:?}");
    assert_eq!(scene.machine.world().set_up(), *before, "{fault}");
    assert_eq!(scene.journals().len(), 0, "{fault}");
}

#[test]
fn an_apply_killed_at_any_write_is_undone_by_the_next_run() {
    let mut struck = 0;
    for fault in faults() {
        let scene = Scene::new();
        let before = scene.machine.world().set_up();
        struck += u32::from(scene.apply_with(&plan(), fault).is_err());
        restored(&scene, &before, &format!("{fault:?}"));
    }
    assert!((30..80).contains(&struck), "{struck} of {MOST} writes were struck");
}

#[test]
fn an_undo_killed_at_any_write_is_finished_by_the_next() {
    let mut points = 0;
    // An apply that came to its end, and some that did not.
    for cut in [
        None,
        Some(Fault::DieAfter(3)),
        Some(Fault::DieBefore(9)),
        Some(Fault::DieAfter(14)),
    ] {
        for fault in faults() {
            let scene = Scene::new();
            let before = scene.machine.world().set_up();
            match cut {
                None => scene.apply(&plan()).map(drop).expect("applied"),
                Some(cut) => drop(scene.apply_with(&plan(), cut).expect_err("struck")),
            }
            let (process, setup) = scene.run();
            process.expect(fault);
            let _ = setup.undo(None, false);
            points += u32::from(process.is_dead());
            process.die();
            restored(&scene, &before, &format!("{cut:?}, {fault:?}"));
        }
    }
    assert!(points >= 70, "{points}");
}

#[test]
fn an_apply_that_fails_at_any_write_undoes_itself() {
    let mut struck = 0;
    for n in 0..MOST {
        let scene = Scene::new();
        let before = scene.machine.world().set_up();
        let applied = scene.apply_with(&plan(), Fault::Fail(n, io::ErrorKind::InvalidInput));
        let Err(SetupError::RolledBack { told, .. }) = applied else {
            continue;
        };
        struck += 1;
        assert!(told.iter().all(|back| back.outcome.is_settled()), "{n}: {told:?}");
        assert_eq!(scene.machine.world().set_up(), before, "{n}");
        assert_eq!(scene.journals().len(), 0, "{n}");
    }
    assert!(struck >= 15, "{struck}");
}

#[test]
fn a_journal_whose_last_line_is_torn_at_any_byte_still_restores() {
    for fault in [Fault::DieBefore(7), Fault::DieBefore(12)] {
        let scene = Scene::new();
        let before = scene.machine.world().set_up();
        scene.apply_with(&plan(), fault).expect_err("struck");
        let journal = scene.journals().remove(0);
        let (whole, world) = (std::fs::read(&journal).expect("read"), scene.machine.world().clone());
        let last = whole[..whole.len() - 1]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .expect("lines");
        for end in (last + 1..whole.len()).step_by(7) {
            *scene.machine.world() = world.clone();
            std::fs::write(&journal, &whole[..end]).expect("torn");
            restored(&scene, &before, &format!("{fault:?}, {end} bytes"));
        }
    }
}

/// A sink that holds every write against what the journal says at that moment.
struct Watched {
    process: Process,
    home: std::path::PathBuf,
    writes: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    /// The last line of the journal announces exactly this write.
    fn check(&self, path: &str) {
        self.writes.lock().expect("a lock").push(path.to_owned());
        if path.ends_with("/compact") {
            return;
        }
        let mut entries = std::fs::read_dir(&self.home).expect("journals");
        let journal = entries.find_map(|entry| Some(entry.ok()?.path()).filter(|path| path.extension().is_some()));
        let text = std::fs::read_to_string(journal.expect("a journal")).expect("read");
        let last = text.lines().last().expect("a line");
        assert!(last.starts_with("{\"set\":"), "{path}: {last}");
        assert!(last.contains(&format!("\"{path}\"")), "{path}: {last}");
        assert!(text.ends_with('\n'));
    }
}

impl Sink for Watched {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.process.read(path)
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        self.check(path.to_str().expect("UTF-8"));
        self.process.write(path, value)
    }

    fn look(&self, place: &Place) -> io::Result<State> {
        self.process.look(place)
    }

    fn put(&self, place: &Place, from: &State, to: &State) -> io::Result<()> {
        self.check(place.path());
        self.process.put(place, from, to)
    }
}

#[test]
fn nothing_is_written_that_the_journal_has_not_announced_nor_outside_of_the_plan() {
    let scene = Scene::new();
    let writes = Arc::default();
    let watched = Watched {
        process: scene.run().0,
        home: scene.home(),
        writes: Arc::clone(&writes),
    };
    let setup = Setup::new(Writer::new(scene.leases(), Box::new(watched)), [scene.home()]);
    let plan = plan();
    setup.apply(&plan, &how()).expect("applied");
    assert!(setup.undo(None, false).expect("undone").is_settled());
    let mut planned: Vec<String> = plan
        .changes
        .iter()
        .filter_map(|change| change.target.path().map(str::to_owned))
        .collect();
    // The directories that the plan's own places need.
    planned.extend(["/etc/systemd/system/jboss.service.d", "/mnt/huge", "/mnt/huge/jboss"].map(str::to_owned));
    let writes = writes.lock().expect("a lock");
    assert!(writes.len() >= 2 * 14, "{writes:?}");
    let beyond: Vec<_> = writes.iter().filter(|path| !planned.contains(path)).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
}
