//! Applying, verifying, undoing and status, one story each.

use host::{Source, Tree};
use model::plan::{Plan, Value};
use model::setup::{End, PlanState, Program, RevertOutcome, StepOutcome, Verdict};
use model::{Bytes, PageKind, Reading};

use super::scene::{
    DROP_IN, LIMITS_D, M2, OVERCOMMIT, SYSCTL_D, Scene, THP, file, how, nobody, only, plan, pool, setting, text,
};
use super::{How, SetupError};
use crate::error::WriterError;
use crate::place::{FileState, Place, State};
use crate::state_dir::StateDir;

fn grow_pool(from: u64, to: u64) -> Plan {
    only(setting("pool", &pool(0), Value::Pages(from), Value::Pages(to)))
}

fn drifts(error: SetupError) -> Vec<String> {
    let SetupError::Drift(drifts) = error else {
        panic!("{error}")
    };
    drifts
}

#[test]
fn a_plan_is_applied_verified_and_undone() {
    let scene = Scene::new();
    let before = scene.machine.world().set_up();
    let applied = scene.apply(&plan()).expect("applied");
    assert_eq!(applied.end, End::Applied);
    let came: Vec<StepOutcome> = applied.steps.iter().map(|step| step.outcome).collect();
    assert_eq!(came[..12], [StepOutcome::Done; 12], "{applied:?}");
    assert_eq!(
        (came[12], applied.steps[12].note.as_str()),
        (StepOutcome::ToDo, "java -XX:+UseLargePages")
    );
    let owned = FileState {
        text: "[Service]\nLimitMEMLOCK=48M\n".to_owned(),
        mode: 0o600,
        uid: 0,
        gid: 0,
    };
    assert_eq!(scene.look(&Place::File(DROP_IN.to_owned())), State::File(owned));
    let State::File(limits) = scene.look(&Place::File(LIMITS_D.to_owned())) else {
        panic!("a file")
    };
    assert_eq!(
        (limits.mode, limits.gid),
        (0o640, 42),
        "what the plan leaves open stays"
    );

    let verified = scene.run().1.verify(None, &nobody(), &|_| None).expect("verified");
    assert!(verified.is_obtained(), "{verified:?}");
    assert_eq!(verified.plans[0].checks.len(), 13);
    assert!(
        verified
            .notes
            .iter()
            .any(|note| note.contains("no process uses these pages yet"))
    );

    let status = scene.run().1.status().expect("status");
    let run = &status.runs[0];
    assert!(run.complete && !run.restarted && run.changes.len() >= 12);

    let undone = scene.undo();
    assert!(
        undone.steps.iter().all(|step| step.outcome == RevertOutcome::Restored),
        "{undone:?}"
    );
    assert_eq!(scene.machine.world().set_up(), before);
    assert_eq!(scene.run().1.status().expect("status").runs, []);
    assert_eq!(scene.undo().steps, []);
}

#[test]
fn status_is_given_while_another_run_holds_every_lock() {
    let scene = Scene::new();
    scene.apply(&plan()).expect("applied");
    let locks = [scene.leases(), scene.home()].map(|dir| StateDir(dir).lock().expect("a lock"));
    let status = scene.run().1.status().expect("status");
    let mut changes = status.runs[0].changes.iter();
    assert!(changes.all(|change| change.now.known().is_some()), "{status:?}");
    drop(locks);
}

#[test]
fn drift_is_refused_with_every_place_named_and_nothing_written() {
    let scene = Scene::new();
    scene
        .machine
        .set_file(&format!("{THP}/enabled"), "[always] madvise never\n");
    scene.machine.pool(M2, |pool| pool.nodes[1].set_persistent(6));
    scene
        .machine
        .world()
        .disk
        .insert(SYSCTL_D.to_owned(), State::Other("a symbolic link".to_owned()));
    let told = drifts(scene.apply(&plan()).expect_err("refused"));
    assert_eq!(
        told,
        [
            format!("{THP}/enabled: planned over `madvise`, found `always`, which is the planned value"),
            format!("{}: planned over `5`, found `6`", pool(1)),
            format!("{SYSCTL_D}: planned over `(nothing)`, found `a symbolic link`"),
        ]
    );
    assert_eq!((scene.machine.world().written.len(), scene.journals().len()), (0, 0));
}

#[test]
fn a_plan_that_does_not_know_what_was_there_is_refused() {
    let mut plan = grow_pool(5, 6);
    plan.changes[0].before = model::Reading::absent("nowhere");
    let told = drifts(Scene::new().apply(&plan).expect_err("refused"));
    assert!(told[0].contains("could not be put back"), "{told:?}");
}

#[test]
fn a_place_can_be_changed_once_only() {
    let mut plan = grow_pool(5, 6);
    plan.changes
        .push(setting("again", &pool(0), Value::Pages(5), Value::Pages(7)));
    let error = Scene::new().apply(&plan).expect_err("refused");
    assert!(matches!(error, SetupError::Twice(_)), "{error}");
}

#[test]
fn hostile_paths_are_refused_before_anything_is_looked_at() {
    for path in [
        "/etc/passwd",
        "/etc/sysctl.d/../passwd",
        "/etc/sysctl.d/x\n.conf",
        "/root/.ssh/authorized_keys",
    ] {
        let error = Scene::new()
            .apply(&only(file("x", path, Value::Absent, "x")))
            .expect_err(path);
        assert!(matches!(error, SetupError::Plan(_)), "{path}: {error}");
    }
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/sys/../etc/passwd",
        "/proc/sys/vm/../kernel/core_pattern",
    ] {
        let error = Scene::new()
            .apply(&only(setting("x", path, text("a"), text("b"))))
            .expect_err(path);
        assert!(matches!(error, SetupError::Plan(_)), "{path}: {error}");
    }
}

#[test]
fn a_pool_that_cannot_be_had_whole_is_a_shortfall_with_what_was_obtained() {
    let scene = Scene::new();
    scene.machine.pool(M2, |pool| pool.nodes[0].room = 20);
    let applied = scene.apply(&grow_pool(5, 64)).expect("applied");
    assert_eq!(applied.end, End::Short);
    let step = &applied.steps[0];
    assert_eq!(
        (step.outcome, step.asked.as_str(), step.obtained.as_str()),
        (StepOutcome::Short, "64", "25")
    );
    let verified = scene.run().1.verify(None, &nobody(), &|_| None).expect("verified");
    assert_eq!(verified.plans[0].checks[0].verdict, Verdict::Short);
    assert!(!verified.is_obtained());
    assert_eq!(scene.undo().steps[0].outcome, RevertOutcome::Restored);
    assert_eq!(
        scene
            .machine
            .pool(M2, |pool| (pool.nodes[0].persistent, pool.nodes[0].room)),
        (5, 20)
    );
}

#[test]
fn a_plan_is_in_use_once_its_own_program_has_the_pages() {
    let scene = Scene::new();
    scene.apply(&grow_pool(5, 16)).expect("applied");
    let hugetlb = "7f0000000000-7f0000400000 rw-s 00000000 00:0f 9 /anon_hugepage (deleted)\nSize: 4096 kB\nKernelPageSize: 2048 kB\n\
                   Rss: 0 kB\nShared_Hugetlb: 4096 kB\nVmFlags: rd wr sh ht\n";
    let status = "Name:\tother\nVmRSS:\t8 kB\nHugetlbPages:\t4096 kB\n";
    let others = ["/proc/8", "/proc/9"].iter().fold(Tree::new(), |tree, process| {
        let tree = tree.file(&format!("{process}/status"), status);
        tree.file(&format!("{process}/smaps"), hugetlb)
    });
    let others = host::processes::list(&Source::from_tree("made", others));
    let state = |programs: &dyn Fn() -> Option<Vec<Program>>| {
        let verified = scene.run().1.verify(None, &others, &|_| programs());
        let verified = verified.expect("verified");
        let users = verified.users.known().expect("read");
        let shared: Vec<(u32, u64, u64)> = users.iter().map(|user| (user.pid, user.bytes.0, user.others)).collect();
        assert_eq!(shared, [(8, 4 << 20, 1)], "a segment counts once");
        verified.plans[0].state
    };
    let server = |mib: u64| {
        let backing = [(PageKind::HUGETLB_2M, Bytes::mib(mib))].into_iter().collect();
        Some(vec![Program {
            pid: 7,
            name: "postgres".to_owned(),
            unit: None,
            started: None,
            since: None,
            backing: Reading::Known(backing),
        }])
    };
    assert_eq!(state(&|| server(20)), PlanState::InUse);
    assert_eq!(state(&|| server(0)), PlanState::Set, "those of others are not its own");
    assert_eq!(state(&|| Some(Vec::new())), PlanState::Set, "it is not running");
    assert_eq!(state(&|| None), PlanState::InUse, "pages for any program");
}

#[test]
fn exact_undoes_everything_on_a_shortfall_and_still_tells_what_could_be_had() {
    let scene = Scene::new();
    scene.machine.pool(M2, |pool| pool.nodes[0].room = 3);
    let before = scene.machine.world().set_up();
    let exact = How { exact: true, ..how() };
    let applied = scene.run().1.apply(&plan(), &exact).expect("an answer");
    assert_eq!(applied.end, End::RolledBack);
    let short = applied
        .steps
        .iter()
        .find(|step| step.outcome == StepOutcome::Short)
        .expect("short");
    assert_eq!(short.obtained, "8");
    assert_eq!(scene.machine.world().set_up(), before);
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn broken_memory_is_compacted_and_tried_again() {
    let scene = Scene::new();
    scene
        .machine
        .pool(M2, |pool| (pool.nodes[0].room, pool.nodes[0].broken) = (10, 30));
    let applied = scene.apply(&grow_pool(5, 40)).expect("applied");
    assert_eq!((applied.end, applied.steps[0].obtained.as_str()), (End::Applied, "40"));
    let world = scene.machine.world();
    assert!(
        world
            .written
            .iter()
            .any(|(path, _)| path == "/sys/devices/system/node/node0/compact")
    );
}

#[test]
fn a_shortfall_says_what_was_tried_and_what_is_in_the_way() {
    let note = |cache: &str| {
        let scene = Scene::new();
        scene.machine.pool(M2, |pool| pool.nodes[0].room = 20);
        let memory = format!("MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n{cache}");
        scene.machine.set_file("/proc/meminfo", &memory);
        let steps = scene.apply(&grow_pool(5, 64)).expect("applied").steps;
        let compacted = scene.machine.world().written.clone();
        let compacted = compacted.iter().filter(|(path, _)| path.ends_with("/compact")).count();
        assert_eq!(compacted, 3, "compaction goes on from where it stopped");
        steps[0].note.clone()
    };
    let cached = note("Cached: 23068672 kB\nShmem: 0 kB\n");
    for part in [
        "asked to compact memory",
        "22G of it is page cache",
        "drop_caches",
        "read from disk",
    ] {
        assert!(cached.contains(part), "{part}: {cached}");
    }
    for other in ["Cached: 23068672 kB\nShmem: 23068672 kB\n", ""] {
        assert!(!note(other).contains("drop_caches"), "shared memory cannot be dropped");
    }
}

#[test]
fn a_pool_never_takes_the_memory_that_is_to_be_left() {
    let scene = Scene::new();
    scene
        .machine
        .set_file("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 20480 kB\n");
    let leave = How {
        leave: Some(Bytes::mib(10)),
        ..how()
    };
    let applied = scene.run().1.apply(&grow_pool(5, 500), &leave).expect("applied");
    let first = scene.machine.world().written.first().cloned().expect("a write");
    assert_eq!(
        (applied.end, first.1.as_str()),
        (End::Short, "10"),
        "10 MiB are five pages more"
    );
    let nothing = scene
        .run()
        .1
        .apply(&only(setting("p", &pool(1), Value::Pages(5), Value::Pages(9))), &how());
    let nothing = nothing.expect("an answer");
    assert_eq!((nothing.end, nothing.steps[0].obtained.as_str()), (End::Short, "5"));
    let note = &nothing.steps[0].note;
    assert!(
        note.contains("is left to programs") && note.contains("--leave"),
        "{note}"
    );
}

#[test]
fn of_two_at_once_one_is_refused() {
    let scene = Scene::new();
    let home = StateDir(scene.home());
    home.create().expect("made");
    let _lock = home.try_lock().expect("the first");
    let error = scene.apply(&plan()).expect_err("busy");
    assert!(matches!(error, SetupError::Writer(WriterError::Busy { .. })), "{error}");
    assert_eq!(scene.machine.world().written.len(), 0);
}

#[test]
fn what_measurements_have_on_loan_is_left_to_them() {
    let scene = Scene::new();
    let lender = crate::writer::Writer::new(scene.leases(), Box::new(scene.run().0));
    let lease = lender.lease_pool(M2, 100).expect("a lease");
    let value = || scene.machine.pool(M2, |pool| pool.overcommit);
    let lent = value();
    assert!(lent > 2, "the lease raised it");
    let plan = only(setting("overcommit", OVERCOMMIT, Value::Pages(2), Value::Pages(12)));
    scene.apply(&plan).expect("applied beside the lease");
    assert_eq!(value(), lent + 10);
    assert!(
        scene
            .run()
            .1
            .verify(None, &nobody(), &|_| None)
            .expect("verified")
            .is_obtained()
    );
    assert!(scene.undo().is_settled());
    assert_eq!(value(), lent);
    drop(lease);
    assert_eq!(value(), 2);
}

#[test]
fn a_wish_to_end_undoes_what_was_done() {
    let scene = Scene::new();
    let before = scene.machine.world().set_up();
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) == 6;
    let how = How { stop: &stop, ..how() };
    let error = scene.run().1.apply(&plan(), &how).expect_err("interrupted");
    assert!(error.is_interrupted(), "{error}");
    assert_eq!(scene.machine.world().set_up(), before);
    assert!(scene.machine.world().written.len() >= 12);
}

#[test]
fn what_is_as_wanted_already_is_not_written() {
    let scene = Scene::new();
    let applied = scene.apply(&grow_pool(5, 5)).expect("applied");
    assert_eq!(applied.steps[0].outcome, StepOutcome::Already);
    assert_eq!((scene.machine.world().written.len(), scene.journals().len()), (0, 0));
}
