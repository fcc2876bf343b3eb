//! CPUs in pairs: a matrix of round trips, and which pairs share a core.

use model::Estimate;
use model::cores::{Cores, Pair, Relation};

use crate::show::Show;
use draw::{Lines, Sheet, columns, counted, joined, lines, or};

/// Beyond so many CPUs a matrix is no longer readable on a screen; pairs are still in JSON and CSV.
const MOST_COLUMNS: usize = 32;

impl Show for Cores {
    fn title(&self) -> String {
        "CPUs in pairs".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        vec![siblings(self)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        vec![matrix(self)]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|pair| &Pair;
            cpu => pair.cpus[0], other => pair.cpus[1], round_trip_ns => pair.round_trip_ns?.median,
            low => pair.round_trip_ns?.low, high => pair.round_trip_ns?.high, slowdown => pair.slowdown?.median,
            relation => format!("{:?}", pair.relation).to_lowercase(),
        ];
        lines(fields, self.pairs.iter())
    }
}

/// Which CPUs share a core, in one sentence.
fn siblings(cores: &Cores) -> String {
    let twins = joined(cores.twins().map(|[one, two]| format!("{one} and {two}")), "; ");
    let pairs = cores.pairs.iter();
    let unknown = pairs.filter(|pair| pair.relation == Relation::Unknown).count();
    let rest = match unknown {
        0 => String::new(),
        count => format!(" {count} of {} pairs are unknown.", cores.pairs.len()),
    };
    if twins.is_empty() {
        let all = match unknown {
            0 => "every CPU has a core of its own",
            _ => "no pair was seen to share a core",
        };
        return format!("By contention, {all}.{rest}");
    }
    format!("By contention, these CPUs are SMT siblings on one core: {twins}.{rest}")
}

fn matrix(cores: &Cores) -> Sheet {
    let shown = &cores.cpus[..cores.cpus.len().min(MOST_COLUMNS)];
    let first = columns![|row| &u32; "CPU" => row];
    let others = shown
        .iter()
        .flat_map(|&column| columns![|row| &u32; (format!("#{column}")) => cell(cores.pair(**row, column)?)]);
    let title = "Round trip of a cache line between CPUs, ns (slowdown when both multiply)";
    let mut sheet = Sheet::of(title, first.into_iter().chain(others), shown.iter());
    if shown.len() < cores.cpus.len() {
        sheet.note(format!(
            "the first {MOST_COLUMNS} of {} CPUs; --format csv has every pair",
            cores.cpus.len()
        ));
    }
    sheet.note(format!(
        "{} in {:.1} s; a slowdown near 2 means one core, near 1 separate ones",
        counted(cores.pairs.len(), "pair"),
        cores.seconds
    ));
    sheet
}

fn cell(pair: &Pair) -> String {
    let trip = |trip: Estimate| format!("{:.0} ± {:.0}", trip.median, (trip.high - trip.low) / 2.0);
    let trip = or(pair.round_trip_ns.map(trip), "-");
    let slowdown = or(pair.slowdown.map(|slowdown| format!("{:.2}x", slowdown.median)), "-");
    format!("{trip} ({slowdown})")
}
