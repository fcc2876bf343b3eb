//! What is left after every kind of end, and what the next run makes of it.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::fake::{Fault, stat};
use crate::scene::{G1, M2, Scene, only};

fn header(pid: u32, boot: &str) -> String {
    let start = u64::from(pid) * 10;
    format!(
        r#"{{"run":{{"format":1,"boot":"{boot}","pid":{pid},"start":{start},"version":"0.1.0","time":"2026-01-01T00:00:00Z"}}}}"#
    )
}

#[test]
fn wherever_a_run_dies_the_next_one_gives_back() {
    for n in 0..6 {
        for fault in [Fault::DieBefore(n), Fault::DieAfter(n)] {
            let scene = Scene::new(2, 2);
            scene.machine.pool(G1, |pool| pool.nodes[0].set_persistent(1));
            let (process, writer) = scene.run(1);
            process.expect(fault);
            // Six writes: overcommit refused, two nodes up, two nodes down; and one for the 2M pool.
            let two_m = writer.lease_pool(M2, 3);
            let gigantic = writer.lease_pool(G1, 4);
            drop(gigantic);
            process.die();
            drop(two_m);
            scene.recover();
            let after = (scene.overcommit(), scene.persistent(G1), scene.journals().len());
            assert_eq!(after, (0, vec![1, 0], 0), "{fault:?}");
            assert_eq!(scene.recover(), Vec::<String>::new(), "{fault:?}");
        }
    }
}

#[test]
fn wherever_a_recovery_dies_the_next_one_goes_on() {
    for fault in [
        Fault::DieBefore(0),
        Fault::DieAfter(0),
        Fault::DieBefore(1),
        Fault::DieAfter(1),
    ] {
        let scene = Scene::new(2, 2);
        let (process, writer) = scene.run(1);
        let lease = writer.lease_pool(G1, 4).expect("lease");
        process.die();
        drop(lease);
        let (second, writer) = scene.run(2);
        second.expect(fault);
        let _ = writer.recover();
        scene.recover();
        assert_eq!(
            (scene.persistent(G1), scene.journals().len()),
            (vec![0, 0], 0),
            "{fault:?}"
        );
    }
}

#[test]
fn a_run_that_lives_is_left_alone_and_a_recycled_id_is_not_it() {
    let scene = Scene::new(1, 0);
    let (_process, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 5).expect("lease");
    assert_eq!(scene.recover(), Vec::<String>::new());
    assert_eq!(scene.overcommit(), 5);
    scene.machine.set_file("/proc/1/stat", &stat(2, 'S', 0));
    let told = only(scene.recover());
    let sentence = "hugewise (process 1) ended without giving back: nr_overcommit_hugepages of 2M pages 5 -> 0";
    assert_eq!((told.as_str(), scene.overcommit()), (sentence, 0));
    std::mem::forget(lease);
}

#[test]
fn a_run_that_was_killed_a_moment_ago_is_waited_for() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 5).expect("lease");
    scene.machine.set_file("/proc/1/stat", &stat(1, 'R', 0x100));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            process.die();
        });
        assert_eq!(scene.recover().len(), 1);
    });
    assert_eq!(scene.overcommit(), 0);
    drop(lease);
}

#[test]
fn after_a_reboot_the_journal_goes_and_no_value_is_touched() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 5).expect("lease");
    process.die();
    drop(lease);
    scene
        .machine
        .set_file("/proc/sys/kernel/random/boot_id", "second-boot\n");
    let written = scene.machine.world().written.len();
    assert!(only(scene.recover()).contains("restarted"));
    assert_eq!(
        (scene.machine.world().written.len(), scene.journals().len()),
        (written, 0)
    );
}

#[test]
fn a_cut_short_write_that_someone_overwrote_is_left_and_told() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| pool.overcommit = 16);
    let (process, writer) = scene.run(1);
    process.expect(Fault::DieAfter(0));
    writer.lease_pool(M2, 2).expect_err("died");
    scene.machine.pool(M2, |pool| pool.overcommit = 40);
    let told = only(scene.recover());
    assert!(
        told.contains("is 40") && told.contains("16 -> 18") && told.contains("by hand"),
        "{told}"
    );
    assert_eq!((scene.overcommit(), scene.journals().len()), (40, 0));
}

#[test]
fn a_torn_last_line_is_left_out() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 3).expect("lease");
    process.die();
    drop(lease);
    let path = only(scene.journals());
    let mut bytes = fs::read(&path).expect("journal");
    bytes.extend_from_slice(br#"{"write":{"path":"/sys/ker"#);
    fs::write(&path, bytes).expect("torn");
    scene.recover();
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
    scene.plant("run-1-10-0.jsonl", r#"{"run":{"fo"#);
    assert_eq!(scene.recover(), Vec::<String>::new());
    assert_eq!(scene.journals().len(), 0, "it never wrote anything");
}

#[test]
fn a_planted_or_garbled_journal_makes_nobody_write() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let lines = [
        r#"{"write":{"path":"/etc/passwd","before":0,"after":1,"base":0}}"#.to_owned(),
        format!(r#"{{"write":{{"path":"{pool}","before":"0","after":1,"base":0}}}}"#),
        format!(r#"{{"write":{{"path":"{pool}","before":-1,"after":1,"base":0}}}}"#),
        format!(r#"{{"done":{{"path":"{pool}","share":1}}}}"#),
        "nonsense".to_owned(),
        header(1, "first-boot"),
    ];
    for line in lines {
        let scene = Scene::new(1, 0);
        let path = scene.plant("run-1-10-0.jsonl", &format!("{}\n{line}\n", header(1, "first-boot")));
        let told = only(scene.recover());
        assert!(
            told.contains("run-1-10-0.jsonl:2") && told.contains("then delete the file"),
            "{told}"
        );
        assert!(path.exists(), "kept for a human to look at");
        assert_eq!(scene.machine.world().written, []);
        let (_, writer) = scene.run(2);
        let lease = writer.lease_pool(M2, 1).expect("others go on");
        assert_eq!(lease.obtained, 1);
    }
}

#[test]
fn another_format_is_left_to_its_own_version() {
    let scene = Scene::new(1, 0);
    let line = header(1, "first-boot").replace(r#""format":1"#, r#""format":2"#);
    scene.plant("run-1-10-0.jsonl", &format!("{line}\n"));
    assert!(only(scene.recover()).contains("format 2 of hugewise 0.1.0 is not known here"));
}

#[test]
fn a_journal_that_is_a_link_or_another_users_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scene = Scene::new(1, 0);
    let real = scene.plant("elsewhere", &format!("{}\n", header(1, "first-boot")));
    let link = scene.state().join("run-1-10-0.jsonl");
    symlink(&real, &link).expect("link");
    assert!(only(scene.recover()).contains("run-1-10-0.jsonl"));
    fs::remove_file(&link).expect("removed");
    let open = scene.plant("run-1-10-1.jsonl", &format!("{}\n", header(1, "first-boot")));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).expect("chmod");
    assert!(only(scene.recover()).contains("may be changed by other users"));
}

#[test]
fn without_a_state_directory_there_is_nothing_to_recover() {
    let scene = Scene::new(1, 0);
    assert_eq!(scene.recover(), Vec::<String>::new());
    assert!(!scene.state().exists());
}

#[test]
fn writes_in_doubt_are_decided_before_any_value_changes() {
    let scene = Scene::new(1, 0);
    let ((first, one), (second, two)) = (scene.run(1), scene.run(2));
    let leases = (one.lease_pool(M2, 3), two.lease_pool(M2, 4));
    second.die();
    // The first, which holds pages itself, dies while it undoes the second.
    first.expect(Fault::DieBefore(0));
    one.recover().expect("told what failed");
    assert!(first.is_dead());
    drop(leases);
    assert_eq!(scene.recover().len(), 2);
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
}

#[test]
fn a_lease_first_decides_what_ended_runs_left() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    process.expect(Fault::DieAfter(0));
    writer.lease_pool(M2, 3).expect_err("died");
    let (_, writer) = scene.run(2);
    let lease = writer.lease_pool(M2, 2).expect("lease");
    assert_eq!(lease.how(), "raised nr_overcommit_hugepages of 2M pages 0 -> 2");
}
