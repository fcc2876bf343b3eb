//! Heaps by pages: what the size of a heap does to collections, and what its pages do.

use std::collections::BTreeMap;

use model::compare::{Arm, Judged};
use model::gc::GcLog;
use model::suite::{Page, Suite};

use crate::render::compare::gain;
use crate::render::sheet::Sheet;

/// The metrics of work done, of the program's own CPU time for it, and of collections for so much work.
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

/// A row for each heap and each arm; none of a suite with fewer than two heaps.
pub(super) fn sheet(suite: &Suite) -> Option<Sheet> {
    let heaps: Vec<(&Page, Heap)> = suite
        .pages
        .iter()
        .filter_map(|page| Some((page, Heap::of(page)?)))
        .collect();
    let heads = [
        "heap",
        "collector",
        "#warehouses",
        "pages",
        "#gain in work per CPU second",
        "#gain without the collector",
        "#collections per million operations",
        "#pause, ms",
        "#GC CPU, ms",
    ];
    let mut sheet = Sheet::new("Heaps by pages", heads);
    for (page, heap) in &heaps {
        for arm in page.compare().into_iter().flat_map(|compare| &compare.arms) {
            sheet.row(row(page, heap, arm));
        }
    }
    sheet.note("without the collector: CPU time of the threads that work, for an operation");
    sheet.note("pause and GC CPU are of a collection, from the JVM's log");
    (heaps.len() > 1).then_some(sheet)
}

/// What the arm gains in a metric; the first arm is what gains are against.
fn gained(page: &Page, arm: &Arm, metric: &str) -> Option<String> {
    let compare = page.compare()?;
    let of_metric = |judged: &&Judged| judged.metric == metric;
    compare.verdicts.iter().find(of_metric)?;
    let judged = compare
        .verdicts
        .iter()
        .filter(of_metric)
        .find(|judged| judged.arm == arm.name);
    Some(judged.map_or_else(
        || "1, by definition".to_owned(),
        |judged| gain(judged.ratio, judged.low, judged.high),
    ))
}

fn row(page: &Page, heap: &Heap, arm: &Arm) -> [String; 9] {
    let not_asked = || "-".to_owned();
    let collections = stats::median(&arm.values(COLLECTIONS));
    let logged = page.gc.get(&arm.name).map(|logs| Collections::of(logs));
    let unknown = || "?".to_owned();
    [
        heap.size.clone(),
        heap.collector.clone(),
        heap.warehouses.clone(),
        arm.name.clone(),
        gained(page, arm, WORK).unwrap_or_else(not_asked),
        gained(page, arm, MUTATOR).unwrap_or_else(not_asked),
        collections.map_or_else(not_asked, |number| format!("{number:.2}")),
        logged.map_or_else(unknown, |logged| format!("{:.1}", logged.pause_ms)),
        logged
            .and_then(|logged| logged.cpu_ms)
            .map_or_else(unknown, |time| format!("{time:.1}")),
    ]
}

/// The parameters of a Java workload that was compared.
struct Heap {
    size: String,
    collector: String,
    warehouses: String,
}

impl Heap {
    fn of(page: &Page) -> Option<Self> {
        let words = page.experiment.workload.strip_prefix("jbb:")?;
        let parameters: BTreeMap<&str, &str> = words.split(',').filter_map(|word| word.split_once('=')).collect();
        page.compare()?;
        let parameter = |name: &str, usual: &str| parameters.get(name).copied().unwrap_or(usual).to_owned();
        Some(Self {
            size: parameters.get("heap")?.to_uppercase(),
            collector: parameter("gc", "Parallel"),
            warehouses: parameter("warehouses", "8"),
        })
    }
}
