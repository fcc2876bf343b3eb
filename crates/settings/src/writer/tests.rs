//! Leases on a made machine: what they change, what they refuse, and what they give back.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use model::Bytes;

use super::Writer;
use crate::error::LeaseError;
use crate::fake::{Fault, Process};
use crate::gave_back::Outcome;
use crate::place::{Place, State};
use crate::scene::{G1, M2, Scene, only};
use crate::sink::Sink;

#[test]
fn a_lease_lets_the_kernel_add_pages_and_takes_that_back() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| pool.overcommit = 7);
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 512).expect("lease");
    assert_eq!((lease.page, lease.asked, lease.obtained), (M2, 512, 512));
    assert_eq!(lease.how(), "raised nr_overcommit_hugepages of 2M pages 7 -> 519");
    assert_eq!(scene.overcommit(), 519);
    assert_eq!(scene.journals().len(), 1);
    let told = only(lease.give_back().expect("given back"));
    assert_eq!(
        told.outcome,
        Outcome::Restored {
            from: "519".to_owned(),
            to: "7".to_owned()
        }
    );
    assert_eq!(told.to_string(), "nr_overcommit_hugepages of 2M pages 519 -> 7");
    assert_eq!((scene.overcommit(), scene.journals().len()), (7, 0));
}

#[test]
fn the_journal_is_there_before_the_write() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    process.expect(Fault::DieBefore(0));
    writer.lease_pool(M2, 4).expect_err("died");
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
    let (_, writer) = scene.run(1);
    let enough = writer.lease_pool(M2, 7).expect("lease");
    assert_eq!(enough.how(), "changed nothing, 7 pages of 2M were free in the pool");
    assert!(!scene.state().exists(), "nothing to write, nothing to journal");
    let more = writer.lease_pool(M2, 9).expect("lease");
    assert_eq!((more.obtained, scene.overcommit()), (9, 2));
}

#[test]
fn gigantic_pages_grow_the_pools_node_by_node_and_a_shortfall_is_told() {
    let scene = Scene::new(2, 3);
    scene.machine.pool(G1, |pool| pool.nodes[1].set_persistent(1));
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(G1, 9).expect("lease");
    assert_eq!(scene.persistent(G1), [3, 3]);
    assert_eq!((lease.asked, lease.obtained), (9, 6));
    let how = "raised nr_hugepages of 1G pages on node 0 0 -> 3, nr_hugepages of 1G pages on node 1 1 -> 3";
    assert_eq!(lease.how(), how);
    assert_eq!(lease.give_back().expect("given back").len(), 2);
    assert_eq!(scene.persistent(G1), [0, 1]);
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn a_kernel_without_nodes_has_one_pool_to_grow() {
    let scene = Scene::new(1, 3);
    scene
        .machine
        .world()
        .files
        .remove("/sys/devices/system/node/has_memory");
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(G1, 2).expect("lease");
    assert_eq!(lease.how(), "raised nr_hugepages of 1G pages 0 -> 2");
    drop(lease);
    assert_eq!(scene.persistent(G1), [0]);
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
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(G1, 1).expect("lease");
    assert_eq!((lease.obtained, scene.persistent(G1)), (1, vec![3]));
    drop(lease);
    let after = scene.machine.pool(G1, |pool| pool.nodes[0].clone());
    assert_eq!((after.persistent, after.surplus, after.in_use), (0, 2, 2));
}

#[test]
fn pages_in_use_outlive_a_lease_that_is_dropped_too_early() {
    let scene = Scene::new(1, 2);
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(G1, 2).expect("lease");
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
    let (_, writer) = scene.run(1);
    let error = writer.lease_pool(G1, 51).expect_err("refused").to_string();
    for number in [
        "51 more pages of 1G",
        "need 51G",
        "57.2G is available",
        "6.4G of it must stay free",
    ] {
        assert!(error.contains(number), "{error}");
    }
    writer.lease_pool(M2, u64::MAX).expect_err("refused, not overflown");
    assert!(!scene.state().exists());
    assert_eq!(scene.machine.world().written, []);
}

#[test]
fn no_pool_and_no_permission_say_what_to_do() {
    let scene = Scene::new(1, 0);
    let (process, writer) = scene.run(1);
    let error = writer.lease_pool(Bytes::mib(512), 1).expect_err("no pool");
    assert!(matches!(error, LeaseError::NoPool { .. }), "{error}");
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        process.expect(Fault::Fail(0, kind));
        let error = writer.lease_pool(M2, 1).expect_err("denied");
        assert!(matches!(error, LeaseError::NotPermitted { .. }), "{error}");
        assert!(
            error.to_string().contains("needs root (sudo), or use --no-pool"),
            "{error}"
        );
    }
    assert_eq!(scene.journals().len(), 0);
}

#[test]
fn a_failure_on_the_second_node_gives_the_first_back() {
    let scene = Scene::new(2, 1);
    let (process, writer) = scene.run(1);
    // Writes: overcommit (refused by the kernel), node 0, node 1.
    process.expect(Fault::Fail(2, io::ErrorKind::Other));
    writer.lease_pool(G1, 2).expect_err("failed");
    assert_eq!((scene.persistent(G1), scene.journals().len()), (vec![0, 0], 0));
}

#[test]
fn a_panic_gives_back() {
    let scene = Scene::new(1, 0);
    let (_, writer) = scene.run(1);
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
        let _lease = writer.lease_pool(M2, 5).expect("lease");
        assert_eq!(scene.overcommit(), 0, "fails on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
}

#[test]
fn what_others_set_meanwhile_stays() {
    // Value before, pages leased, value that something else sets in between, value afterwards.
    for (before, pages, set, after, clean) in [
        (16, 4, 25, 21, true),
        (16, 4, 18, 14, true),
        (16, 4, 16, 16, true),
        (0, 4, 0, 0, true),
        (16, 4, 2, 2, false),
    ] {
        let scene = Scene::new(1, 0);
        scene.machine.pool(M2, |pool| pool.overcommit = before);
        let (_, writer) = scene.run(1);
        let lease = writer.lease_pool(M2, pages).expect("lease");
        scene.machine.pool(M2, |pool| pool.overcommit = set);
        let told = only(lease.give_back().expect("given back"));
        assert_eq!((scene.overcommit(), told.is_clean()), (after, clean), "{told}");
        assert_eq!(scene.journals().len(), 0);
    }
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
        for writer in [&one, &one, &two, &two] {
            scope.spawn(move || (1..6).for_each(|n| drop(writer.lease_pool(M2, n).expect("lease"))));
        }
    });
    assert_eq!((scene.overcommit(), scene.journals().len()), (0, 0));
}

#[test]
fn a_cleaned_up_state_directory_does_not_keep_the_pages() {
    let scene = Scene::new(1, 0);
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 3).expect("lease");
    fs::remove_dir_all(scene.state()).expect("removed");
    drop(lease);
    assert_eq!(scene.overcommit(), 0);
}

#[test]
fn the_limit_passes_surplus_pages_that_are_beyond_it() {
    let scene = Scene::new(1, 0);
    scene.machine.pool(M2, |pool| {
        pool.nodes[0].set_persistent(2);
        pool.map();
        pool.map();
        pool.nodes[0].set_persistent(0);
    });
    let (_, writer) = scene.run(1);
    let lease = writer.lease_pool(M2, 3).expect("lease");
    let in_use = scene.machine.pool(M2, |pool| {
        (0..4).for_each(|_| pool.map());
        pool.nodes[0].in_use
    });
    assert_eq!(in_use, 5, "two of others, three of ours, and no more");
    drop(lease);
    assert_eq!(scene.overcommit(), 0);
}

/// Someone else raises the limit by 100 just after it was read for the n-th time.
struct Meddler {
    process: Process,
    scene: Scene,
    countdown: AtomicU32,
}

impl Sink for Meddler {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.process.read(path);
        if path.ends_with("nr_overcommit_hugepages") && self.countdown.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.scene.machine.pool(M2, |pool| pool.overcommit += 100);
        }
        text
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        self.process.write(path, value)
    }

    fn look(&self, place: &Place) -> io::Result<State> {
        self.process.look(place)
    }

    fn put(&self, place: &Place, from: &State, to: &State) -> io::Result<()> {
        self.process.put(place, from, to)
    }
}

#[test]
fn a_change_by_others_while_the_journal_is_written_is_not_lost() {
    // The third read comes right before the write; nothing can come between those two but by great chance.
    for read in [1, 2, 4] {
        let scene = Scene::new(1, 0);
        let (machine, state) = (scene.machine.clone(), scene.state());
        let meddler = Meddler {
            process: machine.process(1),
            scene,
            countdown: AtomicU32::new(read),
        };
        let writer = Writer::new(state, Box::new(meddler));
        let lease = writer.lease_pool(M2, 3).expect("lease");
        assert_eq!(machine.pool(M2, |pool| pool.overcommit), 103, "read {read}");
        drop(lease);
        assert_eq!(machine.pool(M2, |pool| pool.overcommit), 100, "read {read}");
    }
}
