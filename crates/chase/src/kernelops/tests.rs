//! Every operation does what its name says: by the kernel's own counts, never by the clock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::kernelops::{Cores, Op};
use model::{Bytes, PageKind};
use rustix::process::{Pid, test_kill_process};
use testing::skipped;

use super::{Batch, NotReady, Timed, open};
use crate::child::{Call, Child, Start, wait_for};
use crate::thread::current_cpu;

/// One at a time: faults of children are counted for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ready(op: Op) -> Box<dyn Timed> {
    open(op, other_cpu().unwrap_or(0)).unwrap_or_else(|why| panic!("{op}: {why}"))
}

/// A CPU other than the one this runs on.
fn other_cpu() -> Option<u32> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("affinity");
    (0..1024).find(|&cpu| allowed.is_set(cpu as usize) && cpu != current_cpu())
}

/// Some batches in a row; more than fit into the memory of the fault operations, so that it is renewed.
fn some(timed: &mut dyn Timed, batches: u32) -> Batch {
    let mut sum = Batch::default();
    for _ in 0..batches {
        let batch = timed.batch().expect("a batch");
        assert!(batch.operations > 0 && batch.ticks > 0);
        sum.operations += batch.operations;
        sum.counts.add(&batch.counts);
    }
    sum
}

/// Faults per operation, to be compared exactly or nearly: the kernel may fault once more on a stack or a counter.
fn faults_per_operation(batch: &Batch) -> f64 {
    batch.counts.faults as f64 / batch.operations as f64
}

fn thp_is_allowed() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    enabled.contains("[madvise]") || enabled.contains("[always]")
}

#[test]
fn segv_runs_its_handler_once_per_load_and_puts_the_old_one_back() {
    let _alone = alone();
    let action = || {
        // SAFETY: only reads the action in force.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut now);
            now.sa_sigaction
        }
    };
    let before = action();
    let mut segv = ready(Op::Segv);
    assert_ne!(action(), before);
    let batch = some(segv.as_mut(), 10);
    assert_eq!(batch.counts.signals, batch.operations);
    assert!(
        matches!(open(Op::Segv, 0), Err(NotReady::Refused { .. })),
        "one at a time"
    );
    drop(segv);
    assert_eq!(action(), before);
    assert_eq!(some(ready(Op::Segv).as_mut(), 1).counts.signals, 32);
}

#[test]
fn each_first_touch_of_a_base_page_is_one_fault() {
    let _alone = alone();
    for op in [
        Op::AnonWrite { kind: PageKind::Base },
        Op::ZeroRead { kind: PageKind::Base },
        Op::Cow,
    ] {
        let batch = some(ready(op).as_mut(), 80);
        assert_eq!(batch.operations, 80 * 64, "{op}");
        assert_eq!(batch.counts.pages, batch.operations, "{op}");
        assert!((1.0..1.01).contains(&faults_per_operation(&batch)), "{op}: {batch:?}");
    }
}

#[test]
fn a_write_after_a_fork_is_a_fault_only_while_the_child_lives() {
    let _alone = alone();
    let mut cow = ready(Op::Cow);
    cow.batch().expect("shared pages");
    let range = cow.memory().expect("memory").expect("a range");
    let written = |pages: std::ops::Range<usize>| {
        let batch = super::batch::timed(1, || {
            for page in pages {
                // SAFETY: inside the arena of `cow`, which nothing else writes.
                unsafe { ((range.start + page * 4096) as *mut u8).write_volatile(2) };
            }
            Ok(())
        });
        batch.expect("written").counts.faults
    };
    assert_eq!(written(0..64), 0, "the batch has copied these already");
    assert!((64..66).contains(&written(64..128)), "the child still shares these");
}

#[test]
fn a_large_page_is_one_fault() {
    let _alone = alone();
    if !thp_is_allowed() {
        return skipped("transparent huge pages are switched off");
    }
    for op in [
        Op::AnonWrite { kind: PageKind::Thp },
        Op::MmapTouch {
            kind: PageKind::Thp,
            bytes: Bytes::mib(2),
        },
    ] {
        let batch = some(ready(op).as_mut(), 20);
        if faults_per_operation(&batch) > 1.5 {
            return skipped("no huge page to be had (memory in pieces)");
        }
        assert!(batch.counts.faults >= batch.operations, "{op}");
        assert_eq!(batch.counts.pages, 512 * batch.operations, "{op}");
    }
}

#[test]
fn a_written_mapping_of_base_pages_faults_once_a_page() {
    let _alone = alone();
    let op = Op::MmapTouch {
        kind: PageKind::Base,
        bytes: Bytes::mib(2),
    };
    let faults = faults_per_operation(&some(ready(op).as_mut(), 10));
    assert!((512.0..514.0).contains(&faults), "{faults}");
    let untouched = some(ready(Op::Mmap).as_mut(), 10);
    assert!(faults_per_operation(&untouched) < 0.01, "{untouched:?}");
}

#[test]
fn a_fault_of_a_file_maps_the_pages_around_it() {
    let _alone = alone();
    let batch = some(ready(Op::FileRead).as_mut(), 40);
    assert!((0.99..1.01).contains(&faults_per_operation(&batch)), "{batch:?}");
    assert!(batch.counts.pages >= batch.operations, "{batch:?}");
}

#[test]
fn every_child_is_waited_for_and_the_system_has_counted_it() {
    let _alone = alone();
    let forks = || {
        let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
        let line = stat.lines().find_map(|line| line.strip_prefix("processes "));
        line.and_then(|count| count.trim().parse::<u64>().ok())
            .expect("a count")
    };
    for op in [
        Op::Fw,
        Op::FwResident {
            kind: PageKind::Base,
            bytes: Bytes::mib(4),
        },
        Op::Vfork,
        Op::Exec,
        Op::Pcd { live: 0 },
    ] {
        let mut timed = ready(op);
        let before = forks();
        let batch = some(timed.as_mut(), 10);
        assert_eq!(batch.counts.children, batch.operations, "{op}");
        assert!(forks() - before >= batch.operations, "{op}");
        drop(timed);
        assert_eq!(
            rustix::process::waitpid(None, rustix::process::WaitOptions::NOHANG).err(),
            Some(rustix::io::Errno::CHILD),
            "{op} left a child"
        );
    }
}

#[test]
fn a_fork_copies_the_page_tables_of_base_pages_and_hardly_any_of_large_ones() {
    let _alone = alone();
    let tables_of_a_child = |kind| {
        let op = Op::FwResident {
            kind,
            bytes: Bytes::mib(64),
        };
        let mut timed = ready(op);
        some(timed.as_mut(), 1);
        let child = Child::idle().expect("a child");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.pid().as_raw_nonzero()));
        let tables = status.expect("status").lines().find_map(|line| {
            let kib = line.strip_prefix("VmPTE:")?.trim().strip_suffix(" kB")?;
            kib.parse::<u64>().ok()
        });
        tables.expect("VmPTE")
    };
    let base = tables_of_a_child(PageKind::Base);
    assert!(base >= 128, "32 tables of 4 KiB for 64 MiB: {base} KiB");
    if thp_is_allowed() {
        let large = tables_of_a_child(PageKind::Thp);
        if large + 100 > base {
            skipped("no huge page to be had (memory in pieces)");
        }
    }
}

#[test]
fn a_crowd_lives_as_long_as_it_is_needed() {
    let _alone = alone();
    let children = || {
        let task = format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero());
        std::fs::read_to_string(task)
            .ok()
            .map(|list| list.split_whitespace().count())
    };
    if children().is_none() {
        return skipped("this kernel does not list children (CONFIG_PROC_CHILDREN)");
    }
    let mut crowd = ready(Op::Pcd { live: 25 });
    assert_eq!(children(), Some(25));
    some(crowd.as_mut(), 3);
    assert_eq!(children(), Some(25));
    drop(crowd);
    assert_eq!(children(), Some(0));
}

#[test]
fn the_tiny_program_runs_and_a_broken_one_is_noticed() {
    let _alone = alone();
    assert_eq!(some(ready(Op::Exec).as_mut(), 3).operations, 3);
    assert!(
        wait_for(Start::Fork.process(&Call::exit()).expect("a child"), 1).is_err(),
        "0 is not 1"
    );
    let nonsense = Call {
        number: libc::SYS_close,
        arguments: [usize::MAX; 5],
    };
    let error = wait_for(Start::Vfork.process(&nonsense).expect("a child"), 0).expect_err("the call came back");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_byte_to_and_fro_on_one_cpu_switches_to_the_partner_and_back() {
    let _alone = alone();
    let pinned = crate::thread::Pinned::to(None).expect("pinned");
    let batch = some(ready(Op::Nps { cores: Cores::Same }).as_mut(), 5);
    assert_eq!(batch.operations, 160);
    assert!(batch.counts.switches + batch.counts.preemptions >= 150, "{batch:?}");
    drop(pinned);
    if other_cpu().is_some() {
        assert_eq!(some(ready(Op::Nps { cores: Cores::Cross }).as_mut(), 5).operations, 160);
    }
}

#[test]
fn a_migration_ends_where_it_began() {
    let _alone = alone();
    let Some(other) = other_cpu() else {
        return skipped("only one CPU");
    };
    let pinned = crate::thread::Pinned::to(None).expect("pinned");
    let mut migrate = open(Op::Migrate, other);
    // The thread may have been on `other` by the time it was pinned.
    let Ok(migrate) = &mut migrate else { return };
    some(migrate.as_mut(), 3);
    assert_eq!(current_cpu(), pinned.cpu);
}

#[test]
fn kinds_that_cannot_be_faulted_in_one_by_one_are_named() {
    let kind = PageKind::Mthp(Bytes::kib(64));
    let why = open(Op::AnonWrite { kind }, 0).err().expect("refused");
    assert!(why.to_string().contains("mthp-64K"), "{why}");
}

#[test]
fn what_a_killed_process_had_started_ends_with_it() {
    let _alone = alone();
    let (reads, writes) = std::io::pipe().expect("a pipe");
    let middle = Child::running(|| {
        let Ok(inner) = Child::idle() else {
            return Err(rustix::io::Errno::AGAIN);
        };
        rustix::io::write(&writes, &inner.pid().as_raw_nonzero().get().to_ne_bytes())?;
        loop {
            // SAFETY: sleeps until a signal.
            unsafe { libc::pause() };
        }
    });
    let middle = middle.expect("a process in the middle");
    let mut number = [0; 4];
    assert_eq!(rustix::io::read(&reads, &mut number), Ok(4));
    let inner = Pid::from_raw(i32::from_ne_bytes(number)).expect("a process");
    assert!(test_kill_process(inner).is_ok(), "alive");
    // SIGKILL: the process in the middle cannot clean up.
    drop(middle);
    assert!((0..500).any(|_| is_gone(inner)), "{inner:?} is left behind");
}

fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // Dead, or not waited for yet.
    let gone = stat.is_empty() || stat.contains(") Z ");
    if !gone {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    gone
}
