//! What is pinned wrongly on a machine, running or captured.

mod fixes;
mod rules;
mod scene;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use host::threads::Look;
use host::{Snapshot, Source};
use model::placement::{Check, Mistake};
use process::tree;

use scene::Scene;

/// A thread that the scheduler happens to put there is elsewhere at the next look.
const LOOKS: u32 = 5;
const PERIOD: Duration = Duration::from_millis(200);

/// Looks at all threads for a second, and applies every rule: to one process with all that descends from it, or to all. Of a captured
/// machine the looks are part of the capture, for threads of busy and pinned processes and of virtual machines.
pub fn check(source: &Source, snapshot: &Snapshot, only: Option<u32>) -> Check {
    let began = Instant::now();
    let mut scene = Scene::read(source, snapshot);
    if source.is_live() {
        for _ in 0..LOOKS {
            std::thread::sleep(PERIOD);
            scene.look_again(source);
        }
    }
    // Threads that share a CPU use it, though none of them is busy.
    scene.note_used(|thread| thread.is_runnable);
    let wanted: Option<BTreeSet<u32>> = only.map(|pid| tree::of(source, pid).pids.into_iter().collect());
    scene.read_memory(source, wanted.as_ref());
    let is_wanted = |pid: u32| wanted.as_ref().is_none_or(|wanted| wanted.contains(&pid));
    // Of several that share a CPU, the last ones are to move.
    scene.processes.sort_by_key(|process| is_wanted(process.pid));
    let mut mistakes = rules::mistakes(&scene);
    let threads = || {
        scene
            .processes
            .iter()
            .filter(|process| is_wanted(process.pid))
            .flat_map(|process| &process.threads)
    };
    // A mistake can be about threads of several processes.
    let own: BTreeSet<u32> = threads().map(|thread| thread.tid).collect();
    mistakes.retain(|found| is_wanted(found.pid) || found.threads.iter().any(|tid| own.contains(tid)));
    let sharing = mistakes.iter().filter(|found| found.mistake == Mistake::SharedCpu);
    let sharing: BTreeSet<u32> = sharing.flat_map(|found| found.threads.iter().copied()).collect();
    Check {
        mistakes,
        threads: threads().count() as u64,
        // Of threads that share a CPU none is busy by its share, and all want to be.
        busy: threads()
            .filter(|thread| thread.is_busy() || sharing.contains(&thread.tid))
            .count() as u64,
        unread: threads().filter(|thread| thread.allowed.is_none()).count() as u64,
        seconds: match Look::read(source) {
            Some(look) => look.seconds,
            None if source.is_live() => began.elapsed().as_secs_f64(),
            None => 0.0,
        },
    }
}
