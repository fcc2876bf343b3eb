//! Walking back, one story each.

use model::plan::{Plan, Value};
use model::setup::{RevertOutcome, Verdict};

use super::scene::{M2, MOUNT, SYSCTL_D, Scene, nobody, only, plan, pool, setting};
use crate::fake::Fault;
use crate::place::{FileState, Place, State};

fn grow_pool(from: u64, to: u64) -> Plan {
    only(setting("pool", &pool(0), Value::Pages(from), Value::Pages(to)))
}

#[test]
fn a_value_that_others_changed_is_left_and_told_and_the_rest_undone() {
    let scene = Scene::new();
    scene.apply(&plan()).expect("applied");
    scene.machine.set_file("/proc/sys/kernel/shmmax", "777\n");
    let theirs = FileState {
        text: "theirs\n".to_owned(),
        mode: 0o644,
        uid: 0,
        gid: 0,
    };
    scene
        .machine
        .world()
        .disk
        .insert(SYSCTL_D.to_owned(), State::File(theirs.clone()));
    let undone = scene.undo();
    let changed = undone
        .steps
        .iter()
        .filter(|step| step.outcome == RevertOutcome::Changed);
    let changed: Vec<&str> = changed.map(|step| step.place.as_str()).collect();
    assert_eq!(changed, [SYSCTL_D, "/proc/sys/kernel/shmmax"]);
    assert!(!undone.is_settled());
    assert_eq!(scene.look(&Place::File(SYSCTL_D.to_owned())), State::File(theirs));
    assert_eq!(
        scene.look(&Place::Mount(MOUNT.to_owned())),
        State::Absent,
        "the rest is undone"
    );
    let run = scene.run().1.status().expect("status").runs.remove(0);
    assert_eq!(run.changes.len(), 2);

    let forgotten = scene.run().1.undo(None, true).expect("let go");
    assert!(
        forgotten
            .steps
            .iter()
            .all(|step| step.outcome == RevertOutcome::Forgotten),
        "{forgotten:?}"
    );
    assert_eq!(
        scene.look(&Place::Setting("/proc/sys/kernel/shmmax".to_owned())),
        State::Text("777".to_owned())
    );
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn undo_never_takes_pages_in_use_and_goes_on_when_they_are_free() {
    let scene = Scene::new();
    scene.apply(&grow_pool(5, 30)).expect("applied");
    scene.machine.pool(M2, |pool| (0..12).for_each(|_| pool.map()));
    let undone = scene.undo();
    assert_eq!(undone.steps[0].outcome, RevertOutcome::InUse, "{undone:?}");
    let node = |scene: &Scene| {
        scene
            .machine
            .pool(M2, |pool| (pool.nodes[0].persistent, pool.nodes[0].surplus))
    };
    assert_eq!(node(&scene), (12, 0), "no page in use became a surplus page");
    scene.machine.pool(M2, |pool| (0..12).for_each(|_| pool.unmap()));
    assert_eq!(scene.undo().steps[0].outcome, RevertOutcome::Restored);
    assert_eq!((node(&scene), scene.journals().len()), ((5, 0), 0));
}

#[test]
fn a_directory_that_others_use_stays() {
    let scene = Scene::new();
    scene.apply(&plan()).expect("applied");
    let theirs = "/etc/systemd/system/jboss.service.d/theirs.conf";
    scene.machine.world().disk.insert(theirs.to_owned(), State::Directory);
    let undone = scene.undo();
    let left: Vec<&str> = undone
        .steps
        .iter()
        .filter(|step| !step.outcome.is_settled())
        .map(|step| step.place.as_str())
        .collect();
    assert_eq!(left, ["/etc/systemd/system/jboss.service.d/"]);
    scene.machine.world().disk.remove(theirs);
    assert!(scene.undo().is_settled());
}

#[test]
fn after_a_restart_settings_are_gone_and_files_are_undone() {
    let scene = Scene::new();
    let before = scene.machine.world().set_up();
    scene.apply(&plan()).expect("applied");
    let disk = scene.machine.world().disk.clone();
    // The new boot: settings as before but for one that the sysctl file set, and one that another program sets.
    let mut world = before.clone();
    world.disk = disk;
    *scene.machine.world() = world;
    scene
        .machine
        .set_file("/proc/sys/kernel/random/boot_id", "second-boot\n");
    scene.machine.pool(M2, |pool| pool.nodes[0].set_persistent(16));
    scene.machine.set_file("/proc/sys/kernel/shmmax", "777\n");
    let verified = scene.run().1.verify(None, &nobody(), &|_| None).expect("verified");
    assert!(verified.plans[0].restarted && !verified.is_obtained());
    let verdict = |id: &str| {
        verified.plans[0]
            .checks
            .iter()
            .find(|check| check.id == id)
            .expect(id)
            .verdict
    };
    assert_eq!(
        [verdict("pool-0"), verdict("pool-1"), verdict("sysctl")],
        [Verdict::Obtained, Verdict::Short, Verdict::Obtained]
    );

    let undone = scene.undo();
    assert!(undone.is_settled(), "{undone:?}");
    let came = |place: &str| {
        undone
            .steps
            .iter()
            .find(|step| step.place == place)
            .expect(place)
            .outcome
    };
    assert_eq!(
        came(&pool(0)),
        RevertOutcome::Restored,
        "the plan's own file set it again"
    );
    assert_eq!(came("/proc/sys/kernel/shmmax"), RevertOutcome::Restarted);
    assert_eq!(came(SYSCTL_D), RevertOutcome::Restored);
    let world = scene.machine.world();
    assert_eq!(world.disk, before.disk);
    assert_eq!(world.pools, before.pools);
    assert_eq!(world.files["/proc/sys/kernel/shmmax"], "777\n");
}

#[test]
fn plans_are_stacked_and_undone_from_the_top() {
    let scene = Scene::new();
    for (from, to) in [(5, 8), (8, 20), (20, 11)] {
        scene.apply(&grow_pool(from, to)).expect("applied");
    }
    assert_eq!(scene.run().1.status().expect("status").runs.len(), 3);
    let founds: Vec<String> = scene.undo().steps.iter().map(|step| step.found.clone()).collect();
    assert_eq!(founds, ["11", "20", "8"]);
    assert_eq!(scene.machine.pool(M2, |pool| pool.nodes[0].persistent), 5);
}

#[test]
fn after_a_run_that_was_cut_short_undo_comes_first() {
    let scene = Scene::new();
    scene.apply_with(&plan(), Fault::DieAfter(4)).expect_err("struck");
    let error = scene.apply(&grow_pool(5, 6)).expect_err("refused");
    assert!(error.to_string().contains("run `hugewise undo` first"), "{error}");
    assert!(!scene.run().1.status().expect("status").runs[0].complete);
    assert!(scene.undo().is_settled());
    scene.apply(&grow_pool(5, 6)).expect("applied");
}
