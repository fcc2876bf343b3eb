//! Heaps by pages: what the size of a heap does to collections, and what its pages do.

use std::collections::BTreeMap;

use model::compare::{Arm, Judged};
use model::gc::GcLog;
use model::suite::{Page, Suite};

use crate::render::prove::compare::gain;
use draw::{Sheet, columns, or};

/// The metrics of throughput, of work done, of the program's own CPU time for it, and of collections for so much work.
const THROUGHPUT: &str = "throughput";
const WORK: &str = "work";
const MUTATOR: &str = "mutator";
const COLLECTIONS: &str = "collections";

/// Sums of the logs of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Collections {
    pub(super) each_run: f64,
    pub(super) pause_ms: f64,
    /// None where the collector does not log it.
    pub(super) cpu_ms: Option<f64>,
}

impl Collections {
    pub(super) fn of(logs: &[GcLog]) -> Self {
        let collections: u64 = logs.iter().map(|log| log.collections).sum();
        let each = collections.max(1) as f64;
        let cpu: Option<f64> = logs.iter().map(|log| log.cpu_seconds).sum();
        Self {
            each_run: collections as f64 / logs.len().max(1) as f64,
            pause_ms: logs.iter().map(|log| log.pause_seconds).sum::<f64>() * 1e3 / each,
            cpu_ms: cpu.map(|seconds| seconds * 1e3 / each),
        }
    }
}

/// An arm of a page, and the heap that both are about.
type Row<'a> = (&'a Page, &'a Heap, &'a Arm);

/// A row for each heap and each arm; none of a suite with fewer than two heaps.
pub(super) fn sheet(suite: &Suite) -> Option<Sheet> {
    let pages = suite.pages.iter();
    let heaps: Vec<(&Page, Heap)> = pages.filter_map(|page| Some((page, Heap::of(page)?))).collect();
    let fields = columns![|row| Row<'_>;
        "program" => row.1.program, "heap" => row.1.size, "collector" => row.1.collector, "#warehouses" => row.1.warehouses,
        "pages" => row.2.name, "#gain in throughput" => or(gained(row, THROUGHPUT), "-"),
        "#gain in work per CPU second" => or(gained(row, WORK), "-"),
        "#gain without the collector" => or(gained(row, MUTATOR), "-"),
        "#collections per million operations" => or(collections(row.2), "-"),
        "#pause, ms" => or(logged(row).map(|logged| tenths(logged.pause_ms)), "?"),
        "#GC CPU, ms" => or(logged(row).and_then(|logged| logged.cpu_ms).map(tenths), "?"),
    ];
    let rows = heaps.iter().flat_map(|(page, heap)| {
        let arms = page.compare().into_iter().flat_map(|compare| &compare.arms);
        arms.map(move |arm| (*page, heap, arm))
    });
    let mut sheet = Sheet::of("Heaps by pages", &fields, rows);
    sheet.note("without the collector: CPU time of the threads that work, for an operation");
    sheet.note("pause and GC CPU are of a collection, from the JVM's log");
    (heaps.len() > 1).then_some(sheet)
}

/// What the arm gains in a metric; the first arm is what gains are against.
fn gained((page, _, arm): &Row<'_>, metric: &str) -> Option<String> {
    let compare = page.compare()?;
    let of_metric = |judged: &&Judged| judged.metric == metric;
    compare.verdicts.iter().find(of_metric)?;
    let mut verdicts = compare.verdicts.iter().filter(of_metric);
    let judged = verdicts.find(|judged| judged.arm == arm.name);
    let gained = judged.map(|judged| gain(judged.ratio, judged.low, judged.high));
    Some(or(gained, "1, by definition"))
}

fn collections(arm: &Arm) -> Option<String> {
    let median = stats::median(&arm.values(COLLECTIONS))?;
    Some(format!("{median:.2}"))
}

fn logged((page, _, arm): &Row<'_>) -> Option<Collections> {
    page.gc.get(&arm.name).map(|logs| Collections::of(logs))
}

fn tenths(ms: f64) -> String {
    format!("{ms:.1}")
}

/// The parameters of a Java workload that was compared.
struct Heap {
    program: String,
    size: String,
    collector: String,
    warehouses: String,
}

impl Heap {
    fn of(page: &Page) -> Option<Self> {
        let (program, words) = page.experiment.workload.split_once(':')?;
        // Warehouses are those of the one, the other has none.
        let warehouses = match program {
            "jbb" => "8",
            "ejb" => "-",
            _ => return None,
        };
        let parameters: BTreeMap<&str, &str> = words.split(',').filter_map(|word| word.split_once('=')).collect();
        page.compare()?;
        let parameter = |name: &str, usual: &str| parameters.get(name).copied().unwrap_or(usual).to_owned();
        Some(Self {
            program: program.to_owned(),
            size: parameters.get("heap")?.to_uppercase(),
            collector: parameter("gc", "Parallel"),
            warehouses: parameter("warehouses", warehouses),
        })
    }
}
