//! A recording: what ran where, by which method, and what it may have missed.

mod check;
mod diff;
mod published;
mod tables;
mod timeline;

use host::Snapshot;
use model::Warning;
use model::placement::{End, Method, NoRecords, Recording};

use crate::show::Show;
use draw::{Figure, Lines, Sheet, counted, number, or_empty};

pub use diff::caveats;
pub use tables::kind_name;
use tables::{csv, moves, over_time, rate, shares, threads};

/// Threads on a terminal.
const BRIEF: usize = 20;
/// Between two readings of /proc, at least.
const LOOK_MS: u32 = 10;
/// Up to this `kernel.perf_event_paranoid` all kernels let users record their own processes. Linux has no level above; Debian and
/// Ubuntu have, which permit nothing.
const OWN_PROCESSES: i64 = 2;

/// The kernel ends perf events so (`begin_new_exec`), and says nothing.
pub(super) const CUT_OFF: &str = "the kernel ended the recording before the program ended";

impl Show for Recording {
    fn title(&self) -> String {
        format!("Where {} ran (process {})", self.target.name, self.target.pid)
    }

    fn headlines(&self) -> Vec<String> {
        vec![headline(self), method(self)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        vec![shares(self), moves(self), threads(self, usize::MAX), over_time(self)]
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        vec![shares(self), moves(self), threads(self, BRIEF)]
    }

    fn figures(&self) -> Vec<Figure> {
        timeline::chart(self).into_iter().collect()
    }

    fn csv(&self) -> Lines<'_> {
        csv(self)
    }
}

fn headline(recording: &Recording) -> String {
    let total = &recording.total;
    let used = match recording.rusage_s.filter(|_| recording.is_cut_off()) {
        Some(usage) => format!(
            "used {} s of CPU time in {} s by the kernel's own account (rusage), of which {} s are recorded",
            number(usage),
            number(recording.seconds),
            number(total.cpu())
        ),
        None => format!(
            "used {} s of CPU time in {} s, which is {} CPUs",
            number(total.cpu()),
            number(recording.seconds),
            number(recording.cpus_used())
        ),
    };
    let migrations = total.migrations.total();
    let least = if recording.has_all_moves() { "" } else { "at least " };
    let locality = or_empty(recording.locality().map(|locality| {
        let percent = number(locality * 100.0);
        format!(" By the nodes of its pages and of its CPU time, {percent} % of its accesses would be local.")
    }));
    format!(
        "{} (process {}) {used}, and moved {least}{} ({} a second). {}{locality}",
        recording.target.name,
        recording.target.pid,
        counted(migrations as usize, "time"),
        number(rate(migrations, recording)),
        end(recording.end)
    )
}

fn end(end: End) -> String {
    match end {
        End::SoFar => "It still ran when this was written.".to_owned(),
        End::Exited(0) => "It ended by itself.".to_owned(),
        End::Exited(code) => format!("It exited with code {code}."),
        End::Killed(signal) => format!("Signal {signal} killed it."),
        End::Gone => "It has ended.".to_owned(),
        End::TimeOver => "The recording ended with its time.".to_owned(),
        End::Interrupted => "The recording was interrupted.".to_owned(),
    }
}

/// How it was recorded, and what may be missing.
fn method(recording: &Recording) -> String {
    let own = own_use(recording);
    let missed = recording.missed;
    match recording.method {
        Method::SwitchRecords => format!(
            "Method: every context switch, recorded by the kernel (PERF_RECORD_SWITCH); {}. {own}",
            match missed.lost_records + missed.unpaired {
                _ if recording.is_cut_off() => CUT_OFF.to_owned(),
                0 => "no record was lost".to_owned(),
                _ => format!(
                    "{} lost, {} without counterpart",
                    counted(missed.lost_records as usize, "record"),
                    missed.unpaired
                ),
            }
        ),
        Method::Clocks => format!(
            "Method: a clock of the kernel for each CPU (TASK_CLOCK, --light), which loses time of threads that move often: half of it at 16,000 moves a second. {} Runs, preemptions and the waits after \
             them are not recorded. Single threads are from /proc, up to 10 times a second, so that shorter ones are missing. {own}",
            if recording.has_all_moves() {
                "Each move was recorded.".to_owned()
            } else {
                unseen(recording)
            }
        ),
        Method::Procfs => format!(
            "Method: /proc/PID/task/TID, read up to 100 times a second ({}). {} Threads that lived between two readings are missing. {own}",
            why(recording),
            unseen(recording)
        ),
    }
}

/// Moves that readings of /proc do not show.
fn unseen(recording: &Recording) -> String {
    let unseen = match recording.missed.migrations {
        Some(count) => format!("by the kernel's own count {} more", counted(count as usize, "move")),
        None => "how many more is not known".to_owned(),
    };
    format!("Moves between two readings are missed: {unseen}.")
}

/// What recording took: by /proc that is all of it, with records the kernel adds some of the program's own time.
fn own_use(recording: &Recording) -> String {
    let used = number(recording.recorder_s);
    let cpu = recording.total.cpu();
    if cpu == 0.0 || recording.is_cut_off() {
        return format!("hugewise used {used} s of CPU time for that.");
    }
    let percent = number(recording.recorder_s / cpu * 100.0);
    format!("hugewise used {used} s of CPU time for that, which is {percent} % of the program's.")
}

fn why(recording: &Recording) -> String {
    let text = match (&recording.no_records, recording.perf_event_paranoid) {
        (None | Some(NoRecords::NotWanted), _) => "--light",
        (Some(NoRecords::NotPermitted), Some(level)) if level > OWN_PROCESSES => {
            return format!(
                "kernel.perf_event_paranoid is {level}, and this kernel then permits users no perf events: lower it to {OWN_PROCESSES}, or \
                 run as root"
            );
        }
        (Some(NoRecords::NotPermitted), Some(level)) => {
            return format!(
                "perf events are not permitted, though kernel.perf_event_paranoid is {level}: a filter of system calls, such as a \
                 container's, or a security module forbids them"
            );
        }
        (Some(NoRecords::NotPermitted), None) => {
            "perf events are not permitted: lower kernel.perf_event_paranoid to 2, or run as root"
        }
        (Some(NoRecords::OtherUser), _) => "the process is another user's: run as that user, or as root",
        (Some(NoRecords::NoLockedMemory), _) => {
            "perf may lock no more memory of this user: end other recordings, or raise kernel.perf_event_mlock_kb or `ulimit -l`"
        }
        (Some(NoRecords::NoDescriptors), _) => {
            "each thread needs a descriptor for each CPU, and there are too few: raise `ulimit -n`"
        }
        (Some(NoRecords::NotBuilt), _) => "this kernel has no perf events",
        (Some(NoRecords::Failed(error)), _) => return format!("perf events cannot be opened: {error}"),
    };
    text.to_owned()
}

pub fn warnings(recording: &Recording, snapshot: &Snapshot) -> Vec<Warning> {
    let missed = recording.missed;
    let is_refused = !matches!(recording.no_records, None | Some(NoRecords::NotWanted));
    let refused = is_refused.then(|| {
        let text = format!(
            "context switches were not recorded: {}. Moves are a lower bound; runs, preemptions and the waits after them are not known; \
             threads that lived less than {LOOK_MS} ms may be missing",
            why(recording)
        );
        Warning::new("no-switch-records", text)
    });
    let lost = (missed.lost_records > 0).then(|| {
        let records = counted(missed.lost_records as usize, "record");
        let text = "of context switches found no room: times and moves are too low (--light records less)";
        Warning::new("records-lost", format!("{records} {text}"))
    });
    let cut_off = recording.is_cut_off().then(|| {
        let text = format!(
            "{CUT_OFF}: of {} s of CPU time (rusage) {} s are recorded, and where the rest ran is not known. It does that where a program becomes \
             one whose memory its user may not read: by a setuid file, one with capabilities, or one that may be executed and not read (record \
             it once it runs: --pid PID, as root)",
            number(recording.rusage_s.unwrap_or_default()),
            number(recording.total.cpu())
        );
        Warning::new("recording-cut-off", text)
    });
    let new = (missed.new_cpus > 0).then(|| {
        let cpus = counted(missed.new_cpus as usize, "CPU");
        let text = "came online during the recording, and what ran there is missing";
        Warning::new("cpus-came-online", format!("{cpus} {text}"))
    });
    let all = [refused, lost, cut_off, new, guest_warning(snapshot)];
    all.into_iter().flatten().collect()
}

/// In a guest the kinds of moves are those of the topology that the hypervisor shows.
pub fn guest_warning(snapshot: &Snapshot) -> Option<Warning> {
    let name = snapshot.cpu.guest_of()?;
    let text = format!(
        "this is a guest of {name}: which of its CPUs share a core of the host is not known, so moves to an SMT sibling of the host may \
         count as moves to another core (`hugewise measure cores` finds siblings by timing)"
    );
    Some(Warning::new("host-topology-unknown", text))
}

#[cfg(test)]
mod tests;
