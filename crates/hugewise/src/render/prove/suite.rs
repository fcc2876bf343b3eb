//! The experiments of publications: what was published beside what was measured, then each experiment by itself.

use model::Bytes;
use model::compare::{Compare, Judged, Verdict};
use model::gc::GcLog;
use model::suite::{Lack, Listed, Outcome, Page, Suite, SuiteList};

use super::compare::{gain, gains};
use crate::render::measure::tlb;
use crate::show::{self, Show};
use draw::{Block, Figure, Lines, Look, Sheet, columns, counted, joined, lines, or, pairs};

impl Show for Suite {
    fn title(&self) -> String {
        format!(
            "Published experiments on this machine: {}",
            counted(self.pages.len(), "experiment")
        )
    }

    fn headlines(&self) -> Vec<String> {
        let host = self.host.as_ref().map(tlb::host);
        host.into_iter().chain(self.pages.iter().map(headline)).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        self.blocks().into_iter().filter_map(Block::sheet).collect()
    }

    /// Without the charts: the tables say the same in less room.
    fn text(&self, look: Look) -> String {
        show::text(self, Look { plot: false, ..look })
    }

    fn figures(&self) -> Vec<Figure> {
        self.blocks().into_iter().filter_map(Block::figure).collect()
    }

    /// All experiments in one table; then for each its tables, and its chart.
    fn blocks(&self) -> Vec<Block> {
        let fields = columns![|page| &Page;
            "experiment" => page.experiment.name, "published" => page.experiment.figure(), "measured here" => measured(page),
        ];
        let mut all = Sheet::of("Published and measured", fields, self.pages.iter());
        all.note("measured here: gain over the first arm with its 95 % CI, and the verdict");
        let page = |page: &Page| -> Vec<Block> {
            let sheets = sheets(page).into_iter().map(Block::Sheet);
            sheets.chain(figure(page).map(Block::Figure)).collect()
        };
        std::iter::once(Block::Sheet(all))
            .chain(self.pages.iter().flat_map(page))
            .collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(page, judged)| (&Page, &Judged);
            experiment => page.experiment.name, workload => page.experiment.workload, arm => judged.arm,
            against => judged.against, metric => judged.metric, ratio => judged.ratio?, low => judged.low?,
            high => judged.high?, p => judged.p?, pairs => judged.pairs, verdict => judged.verdict.name(),
            published => page.experiment.figure(), source => page.experiment.published.as_ref()?.source,
        ];
        let verdicts = pairs(&self.pages, |page| {
            page.compare().into_iter().flat_map(|compare| &compare.verdicts)
        });
        lines(fields, verdicts)
    }
}

impl Show for SuiteList {
    fn title(&self) -> String {
        format!(
            "Experiments of the suite: {}",
            counted(self.experiments.len(), "experiment")
        )
    }

    fn headlines(&self) -> Vec<String> {
        let runs = self.experiments.iter().filter(|listed| listed.lacking.is_empty());
        let (number, seconds) = runs.fold((0, 0.0), |(number, sum), listed| (number + 1, sum + listed.seconds));
        let first = format!(
            "{number} of {} would run here and take at most {} (--budget limits it).",
            counted(self.experiments.len(), "experiment"),
            minutes(seconds)
        );
        let packages = self.packages();
        let install = (!packages.is_empty())
            .then(|| format!("What is missing on Debian: apt-get install {}", packages.join(" ")));
        std::iter::once(first).chain(install).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let fields = columns![|listed| &Listed;
            "experiment" => listed.experiment.name, "arms" => listed.experiment.arms.join(","),
            "#time" => minutes(listed.seconds), "missing" => missing(&listed.lacking, ", "), "~what" => listed.experiment.title,
        ];
        vec![Sheet::of("Experiments", fields, self.experiments.iter())]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|listed| &Listed;
            experiment => listed.experiment.name, workload => listed.experiment.workload,
            arms => listed.experiment.arms.join(" "), seconds => listed.seconds,
            missing => missing(&listed.lacking, "; "),
            packages => joined(listed.lacking.iter().filter_map(Lack::package), " "),
        ];
        lines(fields, self.experiments.iter())
    }
}

fn minutes(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

fn missing(lacking: &[Lack], separator: &str) -> String {
    let lack = |lack: &Lack| match lack {
        Lack::Program { program, .. } => program.clone(),
        Lack::Memory { needed, available } => {
            format!("{} of memory ({} available)", Bytes(*needed), Bytes(*available))
        }
    };
    joined(lacking.iter().map(lack), separator)
}

fn headline(page: &Page) -> String {
    format!("{}: {}.", page.experiment.name, measured(page))
}

/// What was measured, or why nothing was.
fn measured(page: &Page) -> String {
    match &page.outcome {
        Outcome::Compared { compare, .. } => {
            joined(compare.verdicts.iter().map(|judged| verdict(compare, judged)), "; ")
        }
        Outcome::Lacking(lacking) => format!("not made, as this is missing: {}", missing(lacking, ", ")),
        Outcome::Failed(why) => format!("could not be made: {why}"),
        Outcome::NoTime => "not made: the time was over before".to_owned(),
    }
}

fn verdict(compare: &Compare, judged: &Judged) -> String {
    let Judged { arm, metric, .. } = judged;
    let word = match judged.verdict {
        Verdict::NotInEffect => return format!("{arm} {metric}: not in effect"),
        known => known.name(),
    };
    let gain = gain(judged.ratio, judged.low, judged.high);
    let one = compare.controls.len() == 1 && compare.verdicts.len() == 1;
    let name = if one { arm.clone() } else { format!("{arm} {metric}") };
    format!("{name} {gain}, {word}")
}

fn sheets(page: &Page) -> Vec<Sheet> {
    let mut all = vec![facts(page)];
    if let Some(compare) = page.compare() {
        let named = |mut sheet: Sheet| {
            sheet.title = format!("{}: {}", page.experiment.name, sheet.title);
            sheet
        };
        all.extend(compare.sheets().into_iter().map(named));
    }
    all.extend(collections(page));
    all
}

fn facts(page: &Page) -> Sheet {
    let experiment = &page.experiment;
    let title = format!("{}: {}", experiment.name, experiment.title);
    let mut sheet = Sheet::new(&title, ["what", "figure"]);
    if let Some(published) = &experiment.published {
        sheet.row(["published", &published.figure]);
        sheet.row(["source", &published.source]);
    }
    sheet.row(["measured here", &measured(page)]);
    let differs = experiment.differs.iter();
    differs.for_each(|why| sheet.row(["why they may differ", why]));
    experiment.notice.iter().for_each(|notice| sheet.row(["note", notice]));
    let workload = format!("hugewise compare --workload {}", experiment.workload);
    sheet.row(["workload", &workload]);
    sheet.row(["time", &minutes(page.seconds)]);
    sheet
}

/// Sums of the logs of some runs.
struct Collections {
    each_run: f64,
    pause_ms: f64,
    /// None where the collector does not log it.
    cpu_ms: Option<f64>,
}

impl Collections {
    fn of(logs: &[GcLog]) -> Self {
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

/// What the collectors' logs say.
fn collections(page: &Page) -> Option<Sheet> {
    let fields = columns![|(arm, logs, sum)| (&String, &Vec<GcLog>, Collections);
        "arm" => (*arm), "#runs" => logs.len(), "#collections a run" => format!("{:.1}", sum.each_run),
        "#pause, ms a collection" => format!("{:.1}", sum.pause_ms),
        "#CPU, ms a collection" => or(sum.cpu_ms.map(|time| format!("{time:.1}")), "not logged"),
        "JVM on large pages" => or(logs.iter().find_map(|log| log.large_pages.as_ref()), "?"),
    ];
    let logged = || {
        let arms = page.experiment.arms.iter();
        arms.filter_map(|arm| Some((arm, page.gc.get(arm)?)))
    };
    let title = format!("{}: garbage collections", page.experiment.name);
    let sums = logged().map(|(arm, logs)| (arm, logs, Collections::of(logs)));
    let mut sheet = Sheet::of(&title, fields, sums);
    for (arm, logs) in logged() {
        let warnings = logs.iter().find(|log| !log.warnings.is_empty());
        for warning in warnings.iter().flat_map(|log| &log.warnings) {
            sheet.note(format!("{arm}, the JVM warns: {warning}"));
        }
    }
    sheet.note("from the JVM's own log, over whole runs, those that do not count among them");
    sheet.with_rows()
}

fn figure(page: &Page) -> Option<Figure> {
    let figure = gains::chart(page.compare()?)?;
    let name = &page.experiment.name;
    Some(Figure {
        id: format!("{name}-{}", figure.id),
        title: format!("{name}: {}", figure.title),
        ..figure
    })
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
