//! Heaps by pages: what the size of a heap does to collections, and what its pages do.

use std::collections::BTreeMap;

use model::compare::Arm;
use model::gc::GcLog;
use model::suite::{Page, Suite};

use crate::render::compare::gain;
use crate::render::sheet::Sheet;

/// The metric of work done, and that of collections for so much work.
const WORK: &str = "work";
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
    sheet.note("pause and GC CPU are of a collection, from the JVM's log");
    (heaps.len() > 1).then_some(sheet)
}

fn row(page: &Page, heap: &Heap, arm: &Arm) -> [String; 8] {
    let judged = page.compare().and_then(|compare| {
        let mut verdicts = compare.verdicts.iter();
        verdicts.find(|judged| judged.arm == arm.name && judged.metric == WORK)
    });
    let gain = judged.map_or_else(
        || "1, by definition".to_owned(),
        |judged| gain(judged.ratio, judged.low, judged.high),
    );
    let collections = stats::median(&arm.values(COLLECTIONS));
    let logged = page.gc.get(&arm.name).map(|logs| Collections::of(logs));
    let unknown = || "?".to_owned();
    [
        heap.size.clone(),
        heap.collector.clone(),
        heap.warehouses.clone(),
        arm.name.clone(),
        gain,
        collections.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}")),
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
