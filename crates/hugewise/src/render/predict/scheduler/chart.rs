//! Where worlds ran: a heat map of residency, and a chart of CPUs over time.

use studies::scheduler::Schedule;

use draw::{Heat, Sheet, number, or, or_empty, share_legend};

/// Logical CPUs that a heat map has room for.
const MOST_CPUS: usize = 32;
/// Rows of the heat map of residency.
const MOST_ROWS: usize = 32;
/// Columns of the chart over time.
const COLUMNS: u64 = 20;

/// Per cent of the time of each virtual CPU on each logical one; left out where there are too many of the latter.
pub(super) fn residency(schedule: &Schedule) -> Option<Sheet> {
    let cpus = schedule.cpus.len();
    let rows: Vec<_> = schedule
        .residency
        .iter()
        .filter(|row| row.shares.len() == cpus)
        .collect();
    if cpus > MOST_CPUS || rows.is_empty() {
        return None;
    }
    let heads = ["machine".to_owned()]
        .into_iter()
        .chain((0..cpus).map(|cpu| format!("#{cpu}")));
    let mut sheet = Sheet::new("Per cent of the time on each logical CPU", heads);
    for row in rows.iter().take(MOST_ROWS) {
        let name = schedule.vms.get(row.vm as usize).map_or("?", |vm| vm.name.as_str());
        let cells = row.shares.iter().map(|share| shaded(*share));
        sheet.shaded_row(&format!("{name}/{}", row.vcpu), cells);
    }
    let console = schedule.cpus.iter().map(|cpu| cpu.console);
    if console.clone().any(|share| share > 0.0) {
        sheet.shaded_row("console", console.map(shaded));
    }
    let idle = schedule.cpus.iter().map(|cpu| (number(cpu.idle * 100.0), None));
    sheet.shaded_row("idle", idle);
    sheet.note(format!("machine/virtual CPU; {}", share_legend("time")));
    let all: u32 = schedule.vms.iter().map(|vm| vm.vcpus).sum();
    let shown = rows.len().min(MOST_ROWS);
    if all as usize > shown {
        sheet.note(format!("the first {shown} of {all} virtual CPUs"));
    }
    Some(sheet)
}

fn shaded(share: f64) -> (String, Option<Heat>) {
    match share {
        0.0 => (String::new(), None),
        share => (number(share * 100.0), Some(Heat::of_share(share))),
    }
}

/// The machine that ran most on each CPU in each slice of time.
pub(super) fn over_time(schedule: &Schedule) -> Option<Sheet> {
    let cpus = schedule.cpus.len();
    let [from, until] = schedule.chart.map(|seconds| (seconds * 1e9).round() as u64);
    let step = until.saturating_sub(from) / COLUMNS;
    if cpus > MOST_CPUS || schedule.slices.is_empty() || step == 0 {
        return None;
    }
    let mut busy = vec![vec![Vec::<(Option<u32>, u64)>::new(); COLUMNS as usize]; cpus];
    for slice in &schedule.slices {
        let columns =
            (slice.from_ns.saturating_sub(from) / step)..=(slice.until_ns.saturating_sub(from) / step).min(COLUMNS - 1);
        for column in columns {
            let (begin, end) = (from + column * step, from + (column + 1) * step);
            let time = slice.until_ns.min(end).saturating_sub(slice.from_ns.max(begin));
            let row = busy.get_mut(slice.cpu as usize);
            let Some(cell) = row.and_then(|row| row.get_mut(column as usize)) else {
                continue;
            };
            match cell.iter_mut().find(|(vm, _)| *vm == slice.vm) {
                Some((_, all)) => *all += time,
                None => cell.push((slice.vm, time)),
            }
        }
    }
    let ms = step as f64 / 1e6;
    let title = format!("Over time: who ran most on each CPU, in slices of {} ms", number(ms));
    let heads = ["CPU".to_owned()]
        .into_iter()
        .chain((0..COLUMNS).map(|column| number(column as f64 * ms)));
    let mut sheet = Sheet::new(&title, heads);
    for (cpu, cells) in busy.iter().enumerate() {
        let cells = cells.iter().map(|cell| {
            let all: u64 = cell.iter().map(|(_, time)| time).sum();
            let most = cell.iter().max_by_key(|(_, time)| *time).filter(|(_, time)| *time > 0);
            let name = or_empty(most.map(|(vm, _)| or(vm.map(|vm| vm + 1), "c")));
            (name, most.map(|_| Heat::of_share(all as f64 / step as f64)))
        });
        sheet.shaded_row(&cpu.to_string(), cells);
    }
    sheet.note(format!(
        "a machine's number in the table above, or c for the console; columns in ms from second {} on; {}",
        number(schedule.chart[0]),
        share_legend("time")
    ));
    Some(sheet)
}
