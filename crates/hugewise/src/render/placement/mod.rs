//! A recording as tables: the share of time on each CPU as in IBM's study of 2006, moves by kind, threads, and a map over time.

mod check;
mod diff;
mod published;
mod timeline;

use host::Snapshot;
use model::Warning;
use model::placement::{Cpu, End, Kind, Method, NoRecords, Recording, Thread};

use super::axis::number;
use super::figure::Figure;
use super::heat::{Heat, STEPS};
use super::sheet::Sheet;
use super::table::{Field, Lines, lines};
use super::words::{counted, or_empty};
use crate::cli::typed::Format;
use crate::show::{CHARTS, Show};

pub use diff::caveats;

/// Threads on a terminal.
const BRIEF: usize = 20;
/// Beyond so many CPUs those without time are left out.
const MOST_CPUS: usize = 32;
/// Columns of the map over time.
const COLUMNS: usize = 16;
/// Between two readings of /proc, at least.
const LOOK_MS: u32 = 10;
/// Up to this `kernel.perf_event_paranoid` all kernels let users record their own processes. Linux has no level above; Debian and
/// Ubuntu have, which permit nothing.
const OWN_PROCESSES: i64 = 2;

impl Show for Recording {
    const FORMS: &'static [Format] = &CHARTS;
    const NAME: &'static str = "placement";
    const VERSION: u32 = 1;

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
    let migrations = total.migrations.total();
    let least = if recording.has_all_moves() { "" } else { "at least " };
    let locality = recording.locality().map_or_else(String::new, |locality| {
        format!(
            " By the nodes of its pages and of its CPU time, {} % of its accesses would be local.",
            number(locality * 100.0)
        )
    });
    format!(
        "{} (process {}) used {} s of CPU time in {} s, which is {} CPUs, and moved {least}{} ({} a second). {}{locality}",
        recording.target.name,
        recording.target.pid,
        number(total.cpu()),
        number(recording.seconds),
        number(recording.cpus_used()),
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
        Method::SwitchRecords if missed.lost_records + missed.unpaired == 0 => {
            format!(
                "Method: every context switch, recorded by the kernel (PERF_RECORD_SWITCH); no record was lost. {own}"
            )
        }
        Method::SwitchRecords => format!(
            "Method: context switches, recorded by the kernel (PERF_RECORD_SWITCH); {} lost, {} without counterpart. {own}",
            counted(missed.lost_records as usize, "record"),
            missed.unpaired
        ),
        Method::Clocks => format!(
            "Method: a clock of the kernel for each CPU (TASK_CLOCK, --light), which misses no time. {} Runs, preemptions and the waits after \
             them are not recorded. Single threads are from /proc, up to 10 times a second, so that shorter ones are missing. {own}",
            if recording.all_moves {
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
    if cpu == 0.0 {
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

/// What weakens a recording.
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
        let text = format!(
            "{} of context switches found no room: times and moves are too low (--light records less)",
            counted(missed.lost_records as usize, "record")
        );
        Warning::new("records-lost", text)
    });
    let new = (missed.new_cpus > 0).then(|| {
        let text = format!(
            "{} came online during the recording, and what ran there is missing",
            counted(missed.new_cpus as usize, "CPU")
        );
        Warning::new("cpus-came-online", text)
    });
    [refused, lost, new, guest_warning(snapshot)]
        .into_iter()
        .flatten()
        .collect()
}

/// In a guest the kinds of moves are those of the topology that the hypervisor shows.
pub fn guest_warning(snapshot: &Snapshot) -> Option<Warning> {
    let name = snapshot.cpu.hypervisor.known().filter(|name| *name != "none")?;
    let text = format!(
        "this is a guest of {name}: which of its CPUs share a core of the host is not known, so moves to an SMT sibling of the host may \
         count as moves to another core (`hugewise measure cores` finds siblings by timing)"
    );
    Some(Warning::new("host-topology-unknown", text))
}

/// The table of the study: CPUs in the order of the machine, and the share of each.
fn shares(recording: &Recording) -> Sheet {
    let mut sheet = Sheet::new(
        "Share of time on each CPU",
        [
            "#node",
            "#socket",
            "#core",
            "#CPU",
            "#% of the recording",
            "#% of its CPU time",
            "#steal %",
        ],
    );
    let of = |cpu: &Cpu| recording.total.cpu_s.get(&cpu.cpu).copied().unwrap_or_default();
    let is_large = recording.cpus.len() > MOST_CPUS;
    let mut left_out = 0;
    for cpu in &recording.cpus {
        if is_large && of(cpu) == 0.0 {
            left_out += 1;
            continue;
        }
        let percent = |seconds: f64, all: f64| {
            if all > 0.0 {
                number(seconds / all * 100.0)
            } else {
                "-".to_owned()
            }
        };
        sheet.row([
            or_empty(cpu.node),
            or_empty(cpu.package),
            or_empty(cpu.core),
            cpu.cpu.to_string(),
            percent(of(cpu), recording.seconds),
            percent(of(cpu), recording.total.cpu()),
            cpu.steal_s
                .known()
                .map_or_else(|| "?".to_owned(), |&steal| percent(steal, recording.seconds)),
        ]);
    }
    if left_out > 0 {
        sheet.note(format!(
            "{} without time left out; JSON has them",
            counted(left_out, "CPU")
        ));
    }
    if let Some((usage, rest)) = recording.rusage_s.zip(recording.unassigned_s) {
        sheet.note(format!(
            "the kernel's own account (rusage) has {} s of CPU time, {} s more: {}",
            number(usage),
            number(rest),
            match recording.method {
                Method::SwitchRecords =>
                    "switches themselves, and the ends of processes, which come after their last record",
                Method::Clocks => "the start of the program, and the end of its processes",
                Method::Procfs => "what ran after the last look at each thread",
            }
        ));
    }
    sheet
}

fn rate(count: u64, recording: &Recording) -> f64 {
    if recording.seconds > 0.0 {
        count as f64 / recording.seconds
    } else {
        0.0
    }
}

fn moves(recording: &Recording) -> Sheet {
    let mut sheet = Sheet::new("Moves from one CPU to another", ["to", "#moves", "#a second"]);
    for (kind, count) in recording.total.migrations.each() {
        if kind == Kind::Unknown && count == 0 {
            continue;
        }
        sheet.row([
            kind_name(kind).to_owned(),
            count.to_string(),
            number(rate(count, recording)),
        ]);
    }
    sheet
}

/// How far a move went, in words.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::SmtSibling => "the SMT sibling",
        Kind::SameLlc => "a core at the same last-level cache",
        Kind::OtherCore => "another core of the socket",
        Kind::OtherSocket => "another socket",
        Kind::OtherNode => "another NUMA node",
        Kind::Unknown => "a CPU of unknown topology",
    }
}

fn threads(recording: &Recording, most: usize) -> Sheet {
    let heads = [
        "#TID",
        "name",
        "#CPU s",
        "#CPU with most",
        "#% there",
        "#CPUs",
        "#moves",
        "#runs",
        "#preempted",
        "#then waited ms",
        "#on run queues ms",
    ];
    let mut sheet = Sheet::new("Threads", heads);
    for thread in recording.threads.iter().take(most) {
        let (tally, ms) = (&thread.tally, |seconds: Option<f64>| {
            seconds.map_or_else(|| "?".to_owned(), |seconds| number(seconds * 1e3))
        });
        let most = tally.cpu_s.iter().max_by(|one, other| one.1.total_cmp(other.1));
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        sheet.row([
            thread.tid.to_string(),
            thread.name.clone(),
            number(tally.cpu()),
            or_empty(most.map(|(cpu, _)| cpu)),
            or_empty(most.map(|(_, seconds)| number(seconds / tally.cpu().max(f64::MIN_POSITIVE) * 100.0))),
            tally.cpu_s.len().to_string(),
            tally.migrations.total().to_string(),
            count(tally.runs),
            count(tally.preemptions),
            ms(tally.preempted_s),
            ms(tally.queued_s),
        ]);
    }
    let more = recording.threads.len().saturating_sub(most) as u64 + recording.others;
    if more > 0 {
        sheet.note(format!(
            "{} more with less CPU time, in the total above",
            counted(more as usize, "thread")
        ));
    }
    sheet.note("on run queues: when last read from schedstat; ? where it was not read or is not recorded");
    sheet
}

/// CPUs down, time across, the share of each CPU in shades; moves below.
fn over_time(recording: &Recording) -> Sheet {
    let slices = &recording.slices;
    let step = slices.cpu_s.len().div_ceil(COLUMNS).max(1);
    let length = slices.seconds * step as f64;
    let starts = (0..slices.cpu_s.len().div_ceil(step)).map(|column| format!("#{} s", number(column as f64 * length)));
    let title = format!("Over time: % of each CPU in slices of {} s", number(length));
    let mut sheet = Sheet::new(&title, ["CPU".to_owned()].into_iter().chain(starts));
    let used = |cpu: &&Cpu| recording.total.cpu_s.contains_key(&cpu.cpu);
    for cpu in recording.cpus.iter().filter(used) {
        let cells = slices.cpu_s.chunks(step).map(|chunk| {
            let seconds: f64 = chunk.iter().filter_map(|slice| slice.get(&cpu.cpu)).sum();
            let share = (seconds / length).min(1.0);
            (number(share * 100.0), Some(Heat::of(1.0 + share)))
        });
        sheet.shaded_row([(cpu.cpu.to_string(), None)].into_iter().chain(cells));
    }
    let moves = slices
        .migrations
        .chunks(step)
        .map(|chunk| chunk.iter().sum::<u64>().to_string());
    sheet.row(["moves".to_owned()].into_iter().chain(moves));
    let steps: Vec<String> = STEPS.iter().map(|step| number((step - 1.0) * 100.0)).collect();
    sheet.note(format!(
        "shade: up to {} % of the CPU, or more; the last slice may not be whole",
        steps.join(", ")
    ));
    sheet
}

fn csv(recording: &Recording) -> Lines<'_> {
    let fields: [Field<(&Recording, &Thread, u32, f64)>; _] = [
        Field::csv("pid", |(_, thread, ..)| thread.pid.to_string()),
        Field::csv("tid", |(_, thread, ..)| thread.tid.to_string()),
        Field::csv("name", |(_, thread, ..)| thread.name.clone()),
        Field::csv("cpu", |(.., cpu, _)| cpu.to_string()),
        Field::csv("node", |(recording, _, cpu, _)| {
            or_empty(
                recording
                    .cpus
                    .iter()
                    .find(|known| known.cpu == *cpu)
                    .and_then(|cpu| cpu.node),
            )
        }),
        Field::csv("seconds", |(.., seconds)| seconds.to_string()),
        Field::csv("thread_migrations", |(_, thread, ..)| {
            thread.tally.migrations.total().to_string()
        }),
        Field::csv("thread_preemptions", |(_, thread, ..)| {
            or_empty(thread.tally.preemptions)
        }),
        Field::csv("method", |(recording, ..)| {
            match recording.method {
                Method::SwitchRecords => "switch-records",
                Method::Clocks => "clocks",
                Method::Procfs => "procfs",
            }
            .to_owned()
        }),
    ];
    let of_thread = move |thread: &'_ Thread| {
        let cpus: Vec<(u32, f64)> = thread
            .tally
            .cpu_s
            .iter()
            .map(|(&cpu, &seconds)| (cpu, seconds))
            .collect();
        cpus
    };
    let items = recording.threads.iter().flat_map(move |thread| {
        of_thread(thread)
            .into_iter()
            .map(move |(cpu, seconds)| (recording, thread, cpu, seconds))
    });
    lines(fields, items)
}

#[cfg(test)]
mod tests;
