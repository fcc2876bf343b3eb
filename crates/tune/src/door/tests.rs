//! The door on a made machine: what it changes, what it refuses, and what is left after every kind of end.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use model::Bytes;
use tempfile::TempDir;

use super::Door;
use crate::error::LeaseError;
use crate::fake::{Fault, Machine, Process, stat};
use crate::gave_back::Outcome;

const M2: Bytes = Bytes::mib(2);
const G1: Bytes = Bytes::gib(1);

/// A machine and a state directory.
struct Scene {
    machine: Machine,
    temp: TempDir,
}

impl Scene {
    fn new(nodes: usize, gigantic: u64) -> Self {
        let machine = Machine::new(nodes, gigantic);
        let temp = tempfile::tempdir().expect("tempdir");
        Self { machine, temp }
    }

    fn state(&self) -> PathBuf {
        self.temp.path().join("state")
    }

    /// A hugewise process.
    fn run(&self, pid: u32) -> (Process, Door) {
        let process = self.machine.process(pid);
        let door = Door::new(self.state(), Box::new(process.clone()));
        (process, door)
    }

    fn overcommit(&self) -> u64 {
        self.machine.pool(M2, |pool| pool.overcommit)
    }

    fn persistent(&self, page: Bytes) -> Vec<u64> {
        self.machine
            .pool(page, |pool| pool.nodes.iter().map(|node| node.persistent).collect())
    }

    fn journals(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state()) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.expect("entry").path());
        paths.filter(|path| path.extension().is_some()).collect()
    }

    /// The next run gives back; the sentences it has to say.
    fn recover(&self) -> Vec<String> {
        let (_, door) = self.run(9999);
        let told = door.recover().expect("recovered");
        told.iter().map(ToString::to_string).collect()
    }

    fn plant(&self, name: &str, text: &str) -> PathBuf {
        let path = self.state().join(name);
        fs::create_dir_all(self.state()).expect("state directory");
        fs::write(&path, text).expect("planted");
        path
    }
}

fn header(pid: u32, boot: &str) -> String {
    let start = u64::from(pid) * 10;
    format!(
        r#"{{"run":{{"format":1,"boot":"{boot}","pid":{pid},"start":{start},"version":"0.1.0","time":"2026-01-01T00:00:00Z"}}}}"#
    )
}

fn only<T>(mut list: Vec<T>) -> T {
    assert_eq!(list.len(), 1);
    list.remove(0)
}

#[test]
fn a_lease_lets_the_kernel_add_pages_and_takes_that_back() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| pool.overcommit = 7);
    let (_, door) = scene.run(1);
    let lease = door.lease_pool(M2, 512).expect("lease");
    assert_eq!((lease.page(), lease.asked(), lease.obtained()), (M2, 512, 512));
    assert_eq!(lease.how(), "raised nr_overcommit_hugepages of 2M pages 7 -> 519");
    assert_eq!(lease.shortfall(), None);
    assert_eq!(scene.overcommit(), 519);
    assert_eq!(scene.journals().len(), 1);
    let told = only(lease.give_back().expect("given back"));
    assert_eq!(told.outcome, Outcome::Restored { from: 519, to: 7 });
    assert_eq!(told.to_string(), "nr_overcommit_hugepages of 2M pages 519 -> 7");
    assert_eq!((scene.overcommit(), scene.journals().len()), (7, 0));
}

#[test]
fn the_journal_is_there_before_the_write() {
    let scene = Scene::new(1, 0);
    let (process, door) = scene.run(1);
    process.expect(Fault::DieBefore(0));
    door.lease_pool(M2, 4).expect_err("died");
    let text = fs::read_to_string(only(scene.journals())).expect("journal");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with(r#"{"run":{"format":1,"boot":"first-boot","pid":1,"start":10,"#),
        "{text}"
    );
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
    assert_eq!(
        lines[1],
        format!(r#"{{"write":{{"path":"{path}","before":0,"after":4,"base":0}}}}"#)
    );
    assert_eq!(scene.machine.world().written, []);
}

#[test]
fn unreserved_free_pages_of_the_pool_count_first() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| {
        pool.nodes[0].persistent = 10;
        pool.resv = 3;
    });
    let (_, door) = scene.run(1);
    let enough = door.lease_pool(M2, 7).expect("lease");
    assert_eq!(enough.how(), "changed nothing, 7 pages of 2M were free in the pool");
    assert!(!scene.state().exists(), "nothing to write, nothing to journal");
    let more = door.lease_pool(M2, 9).expect("lease");
    assert_eq!((more.obtained(), scene.overcommit()), (9, 2));
}

#[test]
fn gigantic_pages_grow_the_pools_node_by_node_and_a_shortfall_is_told() {
    let scene = Scene::new(2, 3);
    scene.machine.pool(G1, |pool| pool.nodes[1].set_persistent(1));
    let (_, door) = scene.run(1);
    let lease = door.lease_pool(G1, 9).expect("lease");
    assert_eq!(scene.persistent(G1), [3, 3]);
    let short = lease.shortfall().expect("short");
    assert_eq!((short.asked, short.obtained), (9, 6));
    assert!(short.to_string().contains("early after boot or not at all"), "{short}");
    let how = "raised nr_hugepages of 1G pages on node 0 0 -> 3, nr_hugepages of 1G pages on node 1 1 -> 3";
    assert_eq!(lease.how(), how);
    assert_eq!(lease.give_back().expect("given back").len(), 2);
    assert_eq!(scene.persistent(G1), [0, 1]);
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn surplus_pages_of_others_stay_surplus() {
    let scene = Scene::new(1, 4);
    // Someone maps two pages, then the administrator shrinks the pool under them.
    scene.machine.pool(G1, |pool| {
        pool.nodes[0].set_persistent(2);
        pool.map();
        pool.map();
        pool.nodes[0].set_persistent(0);
    });
    let (_, door) = scene.run(1);
    let lease = door.lease_pool(G1, 1).expect("lease");
    assert_eq!((lease.obtained(), scene.persistent(G1)), (1, vec![3]));
    drop(lease);
    let after = scene.machine.pool(G1, |pool| pool.nodes[0].clone());
    assert_eq!((after.persistent, after.surplus, after.in_use), (0, 2, 2));
}

#[test]
fn pages_in_use_outlive_a_lease_that_is_dropped_too_early() {
    let scene = Scene::new(1, 2);
    let (_, door) = scene.run(1);
    let lease = door.lease_pool(G1, 2).expect("lease");
    scene.machine.pool(G1, |pool| pool.map());
    drop(lease);
    let early = scene.machine.pool(G1, |pool| pool.nodes[0].clone());
    assert_eq!((early.persistent, early.surplus, early.in_use), (0, 1, 1));
    scene.machine.pool(G1, |pool| pool.unmap());
    assert_eq!(scene.machine.pool(G1, |pool| pool.nodes[0].room), 2);
}

#[test]
fn too_little_memory_is_refused_with_the_numbers_and_changes_nothing() {
    let scene = Scene::new(1, 60);
    let (_, door) = scene.run(1);
    let error = door.lease_pool(G1, 51).expect_err("refused").to_string();
    for number in [
        "51 more pages of 1G",
        "need 51G",
        "57.2G is available",
        "6.4G of it must stay free",
    ] {
        assert!(error.contains(number), "{error}");
    }
    door.lease_pool(M2, u64::MAX).expect_err("refused, not overflown");
    assert!(!scene.state().exists());
    assert_eq!(scene.machine.world().written, []);
}

#[test]
fn no_pool_and_no_permission_say_what_to_do() {
    let scene = Scene::new(1, 0);
    let (process, door) = scene.run(1);
    let error = door.lease_pool(Bytes::mib(512), 1).expect_err("no pool");
    assert!(matches!(error, LeaseError::NoPool { .. }), "{error}");
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        process.expect(Fault::Fail(0, kind));
        let error = door.lease_pool(M2, 1).expect_err("denied");
        assert!(matches!(error, LeaseError::NotPermitted { .. }), "{error}");
        assert!(error.to_string().contains("needs root, or use --no-pool"), "{error}");
    }
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn a_failure_on_the_second_node_gives_the_first_back() {
    let scene = Scene::new(2, 1);
    let (process, door) = scene.run(1);
    // Writes: overcommit (refused by the kernel), node 0, node 1.
    process.expect(Fault::Fail(2, io::ErrorKind::Other));
    door.lease_pool(G1, 2).expect_err("failed");
    assert_eq!((scene.persistent(G1), scene.journals().len()), (vec![0, 0], 0));
}

#[test]
fn a_panic_gives_back() {
    let scene = Scene::new(1, 0);
    let (_, door) = scene.run(1);
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
        let _lease = door.lease_pool(M2, 5).expect("lease");
        assert_eq!(scene.overcommit(), 0, "fails on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
}

#[test]
fn wherever_a_run_dies_the_next_one_gives_back() {
    for n in 0..6 {
        for fault in [Fault::DieBefore(n), Fault::DieAfter(n)] {
            let scene = Scene::new(2, 2);
            scene.machine.pool(G1, |pool| pool.nodes[0].set_persistent(1));
            let (process, door) = scene.run(1);
            process.expect(fault);
            // Six writes: overcommit refused, two nodes up, two nodes down; and one for the 2M pool.
            let two_m = door.lease_pool(M2, 3);
            let gigantic = door.lease_pool(G1, 4);
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
        let (process, door) = scene.run(1);
        let lease = door.lease_pool(G1, 4).expect("lease");
        process.die();
        drop(lease);
        let (second, door) = scene.run(2);
        second.expect(fault);
        let _ = door.recover();
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
    let (_process, door) = scene.run(1);
    let lease = door.lease_pool(M2, 5).expect("lease");
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
    let (process, door) = scene.run(1);
    let lease = door.lease_pool(M2, 5).expect("lease");
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
    let (process, door) = scene.run(1);
    let lease = door.lease_pool(M2, 5).expect("lease");
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
fn what_others_set_meanwhile_stays() {
    // Value before, pages leased, value that someone sets meanwhile, value afterwards.
    for (before, pages, set, after, clean) in [
        (16, 4, 25, 21, true),
        (16, 4, 18, 14, true),
        (16, 4, 16, 16, true),
        (0, 4, 0, 0, true),
        (16, 4, 2, 2, false),
    ] {
        let scene = Scene::new(1, 0);
        scene.machine.pool(M2, |pool| pool.overcommit = before);
        let (_, door) = scene.run(1);
        let lease = door.lease_pool(M2, pages).expect("lease");
        scene.machine.pool(M2, |pool| pool.overcommit = set);
        let told = only(lease.give_back().expect("given back"));
        assert_eq!((scene.overcommit(), told.is_clean()), (after, clean), "{told}");
        assert_eq!(scene.journals().len(), 0);
    }
}

#[test]
fn a_cut_short_write_that_someone_overwrote_is_left_and_told() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| pool.overcommit = 16);
    let (process, door) = scene.run(1);
    process.expect(Fault::DieAfter(0));
    door.lease_pool(M2, 2).expect_err("died");
    scene.machine.pool(M2, |pool| pool.overcommit = 40);
    let told = only(scene.recover());
    assert!(
        told.contains("is 40") && told.contains("16 -> 18") && told.contains("by hand"),
        "{told}"
    );
    assert_eq!((scene.overcommit(), scene.journals().len()), (40, 0));
}

#[test]
fn two_runs_give_back_in_any_order() {
    for first_goes_first in [true, false] {
        let scene = Scene::new(1, 0);
        let ((_, one), (_, two)) = (scene.run(1), scene.run(2));
        let first = one.lease_pool(M2, 3).expect("lease");
        let second = two.lease_pool(M2, 3).expect("lease");
        assert_eq!(scene.overcommit(), 6);
        let (early, late) = if first_goes_first {
            (first, second)
        } else {
            (second, first)
        };
        drop(early);
        assert_eq!(scene.overcommit(), 3);
        drop(late);
        assert_eq!(scene.overcommit(), 0);
    }
}

#[test]
fn leases_of_many_threads_add_up_and_go() {
    let scene = Scene::new(1, 0);
    let ((_, one), (_, two)) = (scene.run(1), scene.run(2));
    thread::scope(|scope| {
        for door in [&one, &one, &two, &two] {
            scope.spawn(move || (1..6).for_each(|n| drop(door.lease_pool(M2, n).expect("lease"))));
        }
    });
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
}

#[test]
fn a_cleaned_up_state_directory_does_not_keep_the_pages() {
    let scene = Scene::new(1, 0);
    let (_, door) = scene.run(1);
    let lease = door.lease_pool(M2, 3).expect("lease");
    fs::remove_dir_all(scene.state()).expect("removed");
    drop(lease);
    assert_eq!(scene.overcommit(), 0);
}

#[test]
fn a_torn_last_line_is_left_out() {
    let scene = Scene::new(1, 0);
    let (process, door) = scene.run(1);
    let lease = door.lease_pool(M2, 3).expect("lease");
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
        let (_, door) = scene.run(2);
        let lease = door.lease_pool(M2, 1).expect("others go on");
        assert_eq!(lease.obtained(), 1);
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
    assert!(only(scene.recover()).contains("other users may write"));
}

#[test]
fn without_a_state_directory_there_is_nothing_to_recover() {
    let scene = Scene::new(1, 0);
    assert_eq!(scene.recover(), Vec::<String>::new());
    assert!(!Path::new(&scene.state()).exists());
}
