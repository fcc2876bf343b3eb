//! Its tables: the share of time on each CPU as in IBM's study of 2006, moves by kind, threads, and a map over time.

use model::placement::{Cpu, Kind, Method, Recording, Thread};

use super::super::axis::number;
use super::super::heat::{Heat, STEPS};
use super::super::sheet::Sheet;
use super::super::table::{Field, Lines, lines};
use super::super::words::{counted, or_empty};

/// Beyond so many CPUs those without time are left out.
const MOST_CPUS: usize = 32;
/// Columns of the map over time.
const COLUMNS: usize = 16;

/// The table of the study: CPUs in the order of the machine, and the share of each.
pub(super) fn shares(recording: &Recording) -> Sheet {
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
    if let Some(times) = recording.rusage_s.zip(recording.unassigned_s) {
        sheet.note(unassigned(recording.method, times));
    }
    sheet
}

/// CPU time that the kernel counts and no CPU was assigned.
fn unassigned(method: Method, (usage, rest): (f64, f64)) -> String {
    let what = match method {
        Method::Bpf => "switches themselves",
        Method::SwitchRecords => "switches themselves, and the ends of processes, which come after their last record",
        Method::Clocks => "the start of the program, and the end of its processes",
        Method::Procfs => "what ran after the last look at each thread",
    };
    let (usage, rest) = (number(usage), number(rest));
    format!("the kernel's own account (rusage) has {usage} s of CPU time, {rest} s more: {what}")
}

pub(super) fn rate(count: u64, recording: &Recording) -> f64 {
    if recording.seconds > 0.0 {
        count as f64 / recording.seconds
    } else {
        0.0
    }
}

pub(super) fn moves(recording: &Recording) -> Sheet {
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

pub(super) fn threads(recording: &Recording, most: usize) -> Sheet {
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
pub(super) fn over_time(recording: &Recording) -> Sheet {
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

pub(super) fn csv(recording: &Recording) -> Lines<'_> {
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
                Method::Bpf => "bpf",
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
