//! Simulated host memory as tables: policies side by side, machines, publications, answers to "what if", and charts over time.

mod chart;
mod what_if;

use studies::host_memory::{HostMemory, Level, Outcome, PatternCost, Sample, VmMemory};
use translation::study::Range;

use super::simulate::published;
use crate::show::Show;
use draw::{Figure, Lines, Sheet, columns, counted, joined, lines, number, or, pairs, without_zeros};

/// Virtual machines on a terminal.
const BRIEF: usize = 12;

impl Show for HostMemory {
    fn title(&self) -> String {
        match self.vms {
            0 => format!("Host memory, simulated: {}", self.input),
            count => format!(
                "Host memory, simulated: {} with {} on a host with {}",
                counted(count, "virtual machine"),
                self.vm_memory,
                self.memory
            ),
        }
    }

    fn headlines(&self) -> Vec<String> {
        match &self.advice {
            Some(advice) => vec![what_if::headline(self, advice)],
            None => self.outcomes.iter().map(headline).collect(),
        }
    }

    fn sheets(&self) -> Vec<Sheet> {
        all(self, usize::MAX)
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        all(self, BRIEF)
    }

    fn figures(&self) -> Vec<Figure> {
        chart::all(self)
    }

    fn tables(&self) -> Vec<(&'static str, Lines<'_>)> {
        match (&self.advice, self.outcomes.is_empty()) {
            (Some(advice), _) => vec![("", what_if::csv(advice))],
            (None, true) => vec![("", published_csv(self))],
            (None, false) => vec![("", self.csv())],
        }
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(outcome, sample)| (&Outcome, &Sample);
            policy => outcome.policy.name(), at_s => sample.at_s, level => sample.level.name(),
            free_bytes => sample.free.0, free_whole_bytes => sample.free_whole.0,
            giant_bytes => sample.amounts.giant.0, large_bytes => sample.amounts.large.0,
            small_bytes => sample.amounts.small.0, shared_bytes => sample.amounts.shared.0,
            ballooned_bytes => sample.amounts.ballooned.0, compressed_bytes => sample.amounts.compressed.0,
            swapped_bytes => sample.amounts.swapped.0, untouched_bytes => sample.amounts.untouched.0,
            saved_bytes => sample.saved.0, broken => sample.broken, collapsed => sample.collapsed,
            swapped_out_bytes => sample.swapped[0].0, swapped_in_bytes => sample.swapped[1].0,
            lost => sample.lost.middle, lost_low => sample.lost.low, lost_high => sample.lost.high,
        ];
        lines(fields, pairs(&self.outcomes, |outcome| &outcome.samples))
    }
}

fn published_csv(result: &HostMemory) -> Lines<'_> {
    let fields = columns![|row| &translation::study::Published;
        what => row.what, unit => row.unit, published => joined(row.published.iter().copied().map(exact), " to "),
        simulated => row.simulated.middle, low => row.simulated.low, high => row.simulated.high,
        is_fitted => row.is_fitted, source => row.source,
    ];
    lines(fields, result.published.iter())
}

fn all(result: &HostMemory, most: usize) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    sheets.extend(published(&result.published, exact).with_rows());
    sheets.extend(result.advice.iter().flat_map(|advice| what_if::sheets(advice, result)));
    if !result.outcomes.is_empty() {
        sheets.push(policies(result));
        sheets.push(memory(result));
    }
    if let [only] = &result.outcomes[..] {
        sheets.push(machines(only, most));
    }
    sheets.extend(translation(result).with_rows());
    sheets
}

fn headline(outcome: &Outcome) -> String {
    let totals = &outcome.totals;
    let end = outcome.samples.last();
    let large = end.and_then(|end| end.amounts.large_part());
    format!(
        "{}: {} of the memory that is there is backed by huge pages at the end; {} were broken; sharing saved {} at most; {} were swapped out and {} in.",
        outcome.policy.name(),
        or(large.map(|part| format!("{} %", number(part * 100.0))), "none"),
        counted((totals.broken + totals.broken_to_swap) as usize, "huge page"),
        totals.most_saved,
        totals.swapped_out,
        totals.swapped_in
    )
}

fn policies(result: &HostMemory) -> Sheet {
    let title = format!("What happened in {} s", number(result.seconds));
    let has_losses = !result.translation.is_empty();
    let fields = columns![|outcome| &Outcome;
        "policy" => outcome.policy.name(), "states" => outcome.states.name(),
        "#broken to share" => outcome.totals.broken, "#to swap" => outcome.totals.broken_to_swap,
        "~#collapsed" => outcome.totals.collapsed, "~#emulated" => outcome.totals.emulated,
        "#saved at most" => outcome.totals.most_saved, "#ballooned" => outcome.totals.ballooned,
        "#compressed" => outcome.totals.compressed, "#swapped out" => outcome.totals.swapped_out,
        "#in" => outcome.totals.swapped_in, "#lost, %" => has_losses.then(|| percent(outcome.totals.lost))?,
    ];
    let mut sheet = Sheet::of(&title, fields, result.outcomes.iter());
    sheet.note(
        "broken, collapsed, emulated: 2 MiB regions; emulated: should have been huge pages, and no whole block was free; lost: part of the \
         CPU time that translation takes, with the ends that what is not known of the CPU leaves open",
    );
    sheet
}

fn memory(result: &HostMemory) -> Sheet {
    let fields = columns![|(outcome, end)| (&Outcome, &Sample);
        "policy" => outcome.policy.name(), "#large" => end.amounts.large, "~#1 GiB" => end.amounts.giant,
        "#small" => end.amounts.small, "#shared" => end.amounts.shared, "#ballooned" => end.amounts.ballooned,
        "#compressed" => end.amounts.compressed, "#swapped" => end.amounts.swapped,
        "~#untouched" => end.amounts.untouched, "#free" => end.free, "~#in whole blocks" => end.free_whole,
        "#saved" => end.saved, "below high, % of the time" => levels(outcome),
    ];
    let ends = result.outcomes.iter();
    let ends = ends.filter_map(|outcome| Some((outcome, outcome.samples.last()?)));
    Sheet::of("Guest memory at the end, by what is behind it", fields, ends)
}

/// `soft 12, hard 3`.
fn levels(outcome: &Outcome) -> String {
    let parts = Level::ALL.iter().zip(outcome.totals.levels).skip(1);
    let parts = parts.filter(|(_, part)| *part > 0.0);
    let texts = parts.map(|(level, part)| format!("{} {}", level.name(), number(part * 100.0)));
    joined(texts, ", ")
}

fn machines(outcome: &Outcome, most: usize) -> Sheet {
    let fields = columns![|vm| &VmMemory;
        "machine" => vm.name, "#memory" => vm.memory, "#large" => vm.amounts.large, "~#1 GiB" => vm.amounts.giant,
        "#small" => vm.amounts.small, "#shared" => vm.amounts.shared, "#ballooned" => vm.amounts.ballooned,
        "#compressed" => vm.amounts.compressed, "#swapped" => vm.amounts.swapped,
        "~#untouched" => vm.amounts.untouched, "#lost, %" => percent(vm.lost),
    ];
    let mut sheet = Sheet::of("Machines at the end", fields, outcome.vms.iter().take(most));
    if outcome.vms.len() > most {
        sheet.note(format!("and {} more: --json has all", outcome.vms.len() - most));
    }
    sheet
}

/// Two digits after the point, without trailing zeros.
fn exact(value: f64) -> String {
    without_zeros(&format!("{value:.2}")).to_owned()
}

fn translation(result: &HostMemory) -> Sheet {
    let fields = columns![|cost| &PatternCost;
        "active memory" => cost.working_set.exact(), "#base pages, %" => percent(cost.small),
        "#huge pages, %" => percent(cost.large), "#1 GiB pages, %" => percent(cost.giant),
    ];
    let title = "Part of the CPU time that translation takes, by what backs the active memory";
    let mut sheet = Sheet::of(title, fields, result.translation.iter());
    sheet.note("from `simulate translation`: accesses follow each other without overlap, so that this is an upper bound; the active memory is rounded up to a power of two");
    sheet
}

/// A value with its ends, where they differ.
fn spread(range: Range, text: impl Fn(f64) -> String) -> String {
    match range.is_exact() {
        true => text(range.middle),
        false => format!("{} ({} to {})", text(range.middle), text(range.low), text(range.high)),
    }
}

fn percent(range: Range) -> String {
    spread(range, |value| number(value * 100.0))
}
