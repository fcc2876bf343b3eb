//! What differs between recordings, as a table; what weakens that, as warnings.

use model::Warning;
use model::placement::{Caveat, Diff, Part, Quantity, Side};

use super::super::axis::number;
use super::super::sheet::Sheet;
use super::super::table::{Field, Lines, lines};
use super::super::words::{counted, or_empty};
use crate::cli::typed::Format;
use crate::show::{Show, TABLES};

impl Show for Diff {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "placement-diff";
    const VERSION: u32 = 1;

    fn title(&self) -> String {
        let [before, after] = self.sides.each_ref().map(|side| side.files.join(","));
        format!("{after} against {before}")
    }

    fn headlines(&self) -> Vec<String> {
        let of = |what| {
            self.parts
                .iter()
                .find(|part| part.what == what)
                .and_then(|part| part.ratio)
        };
        let [all, share, each] = [Quantity::Throughput, Quantity::CpuShare, Quantity::Efficiency].map(of);
        match (all, share, each) {
            (Some(all), Some(share), Some(each)) => vec![format!(
                "Throughput is {} times as high: {} by CPU time in each second, {} by work for each CPU second.",
                factor(all.median),
                factor(share.median),
                factor(each.median)
            )],
            _ => Vec::new(),
        }
    }

    fn sheets(&self) -> Vec<Sheet> {
        let side = |side: &Side| {
            format!(
                "#{} ({})",
                side.files.first().map_or("", String::as_str),
                counted(side.files.len(), "run")
            )
        };
        let [before, after] = self.sides.each_ref().map(side);
        let heads = ["".to_owned(), before, after, "#ratio".to_owned(), "#95 % CI".to_owned()];
        let mut sheet = Sheet::new(&self.title(), heads);
        for part in &self.parts {
            let value = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), number);
            let interval = part.ratio.filter(|ratio| ratio.samples > 1);
            sheet.row([
                name(part.what, self.sides.iter().any(|side| side.work.is_empty())).to_owned(),
                value(part.values[0]),
                value(part.values[1]),
                part.ratio.map_or_else(|| "-".to_owned(), |ratio| factor(ratio.median)),
                interval.map_or_else(
                    || "-".to_owned(),
                    |ratio| format!("{} to {}", factor(ratio.low), factor(ratio.high)),
                ),
            ]);
        }
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        let fields: [Field<&Part>; _] = [
            Field::csv("quantity", |part| name(part.what, false).to_owned()),
            Field::csv("before", |part| or_empty(part.values[0])),
            Field::csv("after", |part| or_empty(part.values[1])),
            Field::csv("ratio", |part| or_empty(part.ratio.map(|ratio| ratio.median))),
            Field::csv("low", |part| {
                or_empty(part.ratio.filter(|ratio| ratio.samples > 1).map(|ratio| ratio.low))
            }),
            Field::csv("high", |part| {
                or_empty(part.ratio.filter(|ratio| ratio.samples > 1).map(|ratio| ratio.high))
            }),
        ];
        lines(fields, self.parts.iter())
    }
}

fn factor(value: f64) -> String {
    format!("{value:.3}")
}

fn name(what: Quantity, is_same_work: bool) -> &'static str {
    match what {
        Quantity::Throughput if is_same_work => "runs a second",
        Quantity::Throughput => "work a second",
        Quantity::CpuShare => "CPU seconds a second",
        Quantity::Efficiency if is_same_work => "runs for each CPU second",
        Quantity::Efficiency => "work for each CPU second",
        Quantity::SiblingMoves => "moves to an SMT sibling for each CPU second",
        Quantity::NearMoves => "other moves within a socket for each CPU second",
        Quantity::FarMoves => "moves to another socket or node for each CPU second",
        Quantity::Preemptions => "preemptions for each CPU second",
        Quantity::PreemptedWait => "seconds of waiting after them for each CPU second",
        Quantity::MainNode => "share of CPU time on its main node",
        Quantity::Locality => "share of local accesses by pages and CPU time",
    }
}

/// What weakens a difference.
pub fn caveats(diff: &Diff) -> Vec<Warning> {
    let warning = |caveat: &Caveat| {
        let (code, text) = match caveat {
            Caveat::OtherMachine => ("other-machine", "the recordings are of different machines or kernels"),
            Caveat::OtherMethod => (
                "other-method",
                "the recordings were made by different methods: moves by /proc are a lower bound",
            ),
            Caveat::Incomplete => (
                "incomplete",
                "records are missing in a recording: its times and moves are too low",
            ),
            Caveat::OneRun => (
                "one-run",
                "a side has one run only, so that no ratio has an interval: record each side several times",
            ),
            Caveat::UnknownWork => (
                "unknown-work",
                "a recording did not last from start to end of its program: throughput and efficiency mean nothing without --work",
            ),
            Caveat::SameWork => (
                "same-work",
                "every run is taken to have done the same work (--work gives it)",
            ),
            Caveat::NotSeparated => (
                "not-separated",
                "this shows what changed, not what caused it: keep all but one thing fixed (such as the node, by pinning), and record again",
            ),
        };
        Warning::new(code, text)
    };
    diff.caveats.iter().map(warning).collect()
}
