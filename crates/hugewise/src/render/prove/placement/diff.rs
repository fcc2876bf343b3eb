//! What differs between recordings, as a table; what weakens that, as warnings.

use model::placement::{Caveat, Diff, Part, Quantity, Side};
use model::{Estimate, Warning};

use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, lines, number, or, or_empty};

impl Show for Diff {
    fn title(&self) -> String {
        let [before, after] = self.sides.each_ref().map(|side| side.files.join(","));
        format!("{after} against {before}")
    }

    fn headlines(&self) -> Vec<String> {
        let of = |what| self.parts.iter().find(|part| part.what == what)?.ratio;
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
            let (first, runs) = (or_empty(side.files.first()), counted(side.files.len(), "run"));
            format!("#{first} ({runs})")
        };
        let [before, after] = self.sides.each_ref().map(side);
        let is_same_work = self.sides.iter().any(|side| side.work.is_empty());
        let ends = |ratio: Estimate| format!("{} to {}", factor(ratio.low), factor(ratio.high));
        let fields = columns![|part| &Part;
            "" => name(part.what, is_same_work), (before) => or(part.values[0].map(number), "?"),
            (after) => or(part.values[1].map(number), "?"), "#ratio" => or(part.ratio.map(|ratio| factor(ratio.median)), "-"),
            "#95 % CI" => or(interval(part).map(ends), "-"),
        ];
        vec![Sheet::of(&self.title(), fields, self.parts.iter())]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|part| &Part;
            quantity => name(part.what, false), before => part.values[0]?, after => part.values[1]?,
            ratio => part.ratio?.median, low => interval(part)?.low,
            high => interval(part)?.high,
        ];
        lines(fields, self.parts.iter())
    }
}

/// One run a side has none.
fn interval(part: &Part) -> Option<Estimate> {
    part.ratio.filter(|ratio| ratio.samples > 1)
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

pub fn caveats(diff: &Diff) -> Vec<Warning> {
    let text = |caveat: Caveat| match caveat {
        Caveat::OtherMachine => "the recordings are of different machines or kernels",
        Caveat::OtherMethod => "the recordings were made by different methods: moves by /proc are a lower bound",
        Caveat::Incomplete => "records are missing in a recording: its times and moves are too low",
        Caveat::OneRun => "a side has one run only, so that no ratio has an interval: record each side several times",
        Caveat::UnknownWork => {
            "a recording did not last from start to end of its program: throughput and efficiency mean nothing without --work"
        }
        Caveat::SameWork => "every run is taken to have done the same work (--work gives it)",
        Caveat::NotSeparated => {
            "this shows what changed, not what caused it: keep all but one thing fixed (such as the node, by pinning), and record again"
        }
    };
    let warning = |caveat: &Caveat| Warning::new(&caveat.to_string(), text(*caveat));
    diff.caveats.iter().map(warning).collect()
}
