//! Its tables: the share of time on each CPU as in IBM's study of 2006, moves by kind, threads, and a map over time.

use model::placement::{Cpu, Kind, Method, Recording, Thread};

use draw::{Heat, Lines, Sheet, columns, counted, lines, number, or, share_legend};

/// Beyond so many CPUs those without time are left out.
const MOST_CPUS: usize = 32;
/// Columns of the map over time.
const COLUMNS: usize = 16;

/// The table of the study: CPUs in the order of the machine, and the share of each.
pub(super) fn shares(recording: &Recording) -> Sheet {
    let fields = columns![|cpu| &Cpu;
        "#node" => cpu.node?, "#socket" => cpu.package?, "#core" => cpu.core?, "#CPU" => cpu.cpu,
        "#% of the recording" => share(recording, cpu, recording.seconds),
        "#% of its CPU time" => share(recording, cpu, recording.total.cpu()),
        "#steal %" => or(cpu.steal_s.known().map(|&steal| percent(steal, recording.seconds)), "?"),
    ];
    let is_large = recording.cpus.len() > MOST_CPUS;
    let is_shown = |cpu: &&Cpu| !is_large || used(recording, cpu) != 0.0;
    let shown: Vec<&Cpu> = recording.cpus.iter().filter(is_shown).collect();
    let mut sheet = Sheet::of("Share of time on each CPU", fields, shown.iter().copied());
    let left_out = recording.cpus.len() - shown.len();
    if left_out > 0 {
        sheet.note(format!(
            "{} without time left out; JSON has them",
            counted(left_out, "CPU")
        ));
    }
    if let Some(times) = recording.rusage_s.zip(recording.unassigned_s) {
        sheet.note(unassigned(recording, times));
    }
    sheet
}

/// Seconds of the program on a CPU.
fn used(recording: &Recording, cpu: &Cpu) -> f64 {
    recording.total.cpu_s.get(&cpu.cpu).copied().unwrap_or_default()
}

/// Where most of it was not recorded, what was is no share.
fn share(recording: &Recording, cpu: &Cpu, all: f64) -> String {
    let is_most = |usage: f64| recording.total.cpu() < usage / 2.0;
    match recording.is_cut_off() && recording.rusage_s.is_some_and(is_most) {
        true => "?".to_owned(),
        false => percent(used(recording, cpu), all),
    }
}

fn percent(seconds: f64, all: f64) -> String {
    or((all > 0.0).then(|| number(seconds / all * 100.0)), "-")
}

/// CPU time that the kernel counts and no CPU was assigned.
fn unassigned(recording: &Recording, (usage, rest): (f64, f64)) -> String {
    let what = match recording.method {
        _ if recording.is_cut_off() => super::CUT_OFF,
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
    let fields = columns![|(kind, count)| (Kind, u64);
        "to" => kind_name(*kind), "#moves" => count, "#a second" => number(rate(*count, recording)),
    ];
    let all = recording.total.migrations.each().into_iter();
    let shown = all.filter(|(kind, count)| *kind != Kind::Unknown || *count > 0);
    let mut sheet = Sheet::of("Moves from one CPU to another", fields, shown);
    if recording.is_cut_off() {
        sheet.note(format!("those on record: {}", super::CUT_OFF));
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
    let fields = columns![|thread| &Thread;
        "#TID" => thread.tid, "name" => thread.name, "#CPU s" => number(thread.tally.cpu()),
        "#CPU with most" => most_used(thread).map(|(cpu, _)| cpu)?,
        "#% there" => most_used(thread).map(|(_, share)| number(share))?, "#CPUs" => thread.tally.cpu_s.len(),
        "#moves" => thread.tally.migrations.total(), "#runs" => or(thread.tally.runs, "?"),
        "#preempted" => or(thread.tally.preemptions, "?"), "#then waited ms" => ms(thread.tally.preempted_s),
        "#on run queues ms" => ms(thread.tally.queued_s),
    ];
    let mut sheet = Sheet::of("Threads", fields, recording.threads.iter().take(most));
    let more = recording.threads.len().saturating_sub(most) as u64 + recording.others;
    if more > 0 {
        let more = counted(more as usize, "thread");
        sheet.note(format!("{more} more with less CPU time, in the total above"));
    }
    sheet.note("on run queues: when last read from schedstat; ? where it was not read or is not recorded");
    sheet
}

/// The CPU with most of a thread's time, and the share of it in percent.
fn most_used(thread: &Thread) -> Option<(u32, f64)> {
    let by_cpu = thread.tally.cpu_s.iter();
    let (cpu, seconds) = by_cpu.max_by(|one, other| one.1.total_cmp(other.1))?;
    Some((*cpu, seconds / thread.tally.cpu().max(f64::MIN_POSITIVE) * 100.0))
}

fn ms(seconds: Option<f64>) -> String {
    or(seconds.map(|seconds| number(seconds * 1e3)), "?")
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
            (number(share * 100.0), Some(Heat::of_share(share)))
        });
        sheet.shaded_row(&cpu.cpu.to_string(), cells);
    }
    let moves = slices
        .migrations
        .chunks(step)
        .map(|chunk| chunk.iter().sum::<u64>().to_string());
    sheet.row(["moves".to_owned()].into_iter().chain(moves));
    sheet.note(share_legend("CPU") + "; the last slice may not be whole");
    sheet
}

pub(super) fn csv(recording: &Recording) -> Lines<'_> {
    let fields = columns![|(thread, cpu, seconds)| (&Thread, u32, f64);
        pid => thread.pid, tid => thread.tid, name => thread.name, cpu => cpu,
        node => { let known = recording.cpus.iter().find(|known| known.cpu == *cpu); known?.node? },
        seconds => seconds, thread_migrations => thread.tally.migrations.total(),
        thread_preemptions => thread.tally.preemptions?, method => recording.method,
    ];
    let items = recording.threads.iter().flat_map(|thread| {
        let by_cpu = thread.tally.cpu_s.iter();
        by_cpu.map(move |(&cpu, &seconds)| (thread, cpu, seconds))
    });
    lines(fields, items)
}
