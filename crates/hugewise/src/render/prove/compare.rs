//! A comparison as tables: verdicts, how each arm came about, and every run in order of time.

mod amounts;
pub(crate) mod events;
mod forecast;
pub(super) mod gains;
mod inplace;
mod keep;
mod parts;
mod places;
mod runs;
mod sizes;
mod why;

use compare::bloat;
use model::compare::{Arm, Compare, Control, Ended, Judged, Method, Metric, Run, Verdict};
use model::{Backing, Estimate, Reading};

use crate::show::{self, Show};
pub(super) use amounts::gain;
use amounts::{reference, value};
use draw::{Figure, Lines, Look, Sheet, columns, counted, lines, or, or_empty, pairs};
pub(crate) use why::why;

impl Show for Compare {
    fn title(&self) -> String {
        // Commands that were compared with each other are about no page kind.
        let are_commands =
            self.program.len() == self.arms.len() && self.arms.iter().all(|arm| self.program.contains(&arm.name));
        format!("Compared: {}", self.program.join(if are_commands { ", " } else { " " }))
    }

    fn headlines(&self) -> Vec<String> {
        if let Some(forecast) = &self.forecast {
            return forecast::headlines(self, forecast);
        }
        let verdicts = self.verdicts.iter().map(|judged| headline(self, judged));
        let parts = self.parts.iter().map(parts::sentence);
        let sizes = sizes::headline(self).into_iter();
        sizes.chain(verdicts).chain(parts).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let metrics = self.controls.iter().map(|control| verdicts(self, control));
        let strips = self.controls.iter().map(|control| runs::strips(self, &control.metric));
        let forecast = self.forecast.iter().map(forecast::sheet);
        forecast
            .chain(metrics)
            .chain(strips)
            .chain(keep::sheets(self))
            .chain([techniques(self)])
            .chain(inplace::flips(self))
            .chain([accounts(self)])
            .chain(places::sheet(self))
            .chain(counters(self))
            .collect()
    }

    /// Without the charts: the strips say the same in less room.
    fn text(&self, look: Look) -> String {
        show::text(self, Look { plot: false, ..look })
    }

    fn figures(&self) -> Vec<Figure> {
        let metrics = self.controls.iter().map(|control| control.metric.as_str());
        let runs = metrics.filter_map(|metric| runs::chart(self, metric));
        gains::chart(self).into_iter().chain(runs).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|(arm, run, name, value)| Value<'_>;
            arm => arm.name, turn => run.turn, block => run.block, again => run.again,
            counts => run.left_out.is_none(), metric => name, value => value,
        ];
        let runs = pairs(&self.arms, |arm| &arm.runs);
        lines(fields, runs.flat_map(|(arm, run)| values(arm, run)))
    }
}

fn share(coverage: &Reading<Estimate>) -> String {
    or(
        coverage.known().map(|share| format!("{:.1}", share.median * 100.0)),
        "?",
    )
}

fn headline(compare: &Compare, judged: &Judged) -> String {
    let Judged {
        arm, against, metric, ..
    } = judged;
    let covered = compare.arms.iter().find(|known| known.name == *arm);
    let covered = covered.and_then(|arm| {
        let (kind, share) = (arm.kind?, arm.coverage.known()?.median * 100.0);
        Some(format!(", {share:.1} % of the memory on {kind} pages"))
    });
    let covered = covered.unwrap_or_default();
    let gain = gain(judged.ratio, judged.low, judged.high);
    let why = why(compare, judged);
    match judged.verdict {
        Verdict::Better | Verdict::Worse => {
            let (verdict, price) = (judged.verdict.name(), price(compare, arm));
            let pairs = counted(judged.pairs as usize, "pair");
            format!("{arm} is {verdict} than {against} in {metric}: {gain}, {pairs}{covered}{price}.")
        }
        Verdict::NoDifference => {
            let smallest = compare.design.smallest_effect * 100.0;
            format!("{arm}: no difference to {against} of {smallest:.1} % or more in {metric}: {gain}; {why}{covered}.")
        }
        Verdict::Inconclusive => {
            format!("{arm} against {against} in {metric} is inconclusive: {gain}; {why}{covered}.")
        }
        Verdict::NotInEffect => format!("{arm} {why}: it was not compared."),
        Verdict::Unknown if judged.ratio.is_some() && judged.p.is_none() && is_in_effect(compare, arm) => {
            format!("{arm} against {against} in {metric}: {gain}, no verdict: {why}{covered}.")
        }
        Verdict::Unknown => format!("{arm} against {against} in {metric} is inconclusive: {why}."),
    }
}

/// Did it get its pages, and the reference its own?
fn is_in_effect(compare: &Compare, arm: &str) -> bool {
    let both = [arm, reference(compare)];
    let asked = compare.arms.iter().filter(|known| both.contains(&known.name.as_str()));
    asked.into_iter().all(|arm| arm.took_effect == Reading::Known(true))
}

/// The memory that an arm costs beyond the reference's, if it is worth a word.
fn price(compare: &Compare, arm: &str) -> String {
    let arm = compare.arms.iter().find(|known| known.name == *arm);
    let bloat = arm.and_then(|arm| bloat(compare.arms.first()?, arm));
    or_empty(bloat.map(|bloat| format!("; it takes {bloat}")))
}

fn verdicts(compare: &Compare, control: &Control) -> Sheet {
    let metric = &control.metric;
    let mut fields = Vec::from(columns![|(arm, judged)| (&Arm, Option<&Judged>);
        "arm" => arm.name, "#median" => median(arm, metric),
        "#gain (95 % interval)" => match judged {
            Some(judged) => gain(judged.ratio, judged.low, judged.high),
            None => gain(control.ratio, control.low, control.high),
        },
        "#p" => probability(judged.map_or(control.p, |judged| judged.p)),
        "verdict" => or(judged.map(|judged| judged.verdict.name()), "against itself"),
        "#on its pages, %" => share(&arm.coverage), "#memory" => median(arm, Metric::Memory.name()),
    ]);
    // What a size costs and saves beside time.
    if sizes::of(compare).count() > 1 && *metric != Metric::Faults.name() {
        fields.extend(columns![|(arm, _)| (&Arm, Option<&Judged>);
            "#page faults" => median(arm, Metric::Faults.name()),
        ]);
    }
    let rows = compare.arms.iter().map(|arm| {
        let mut judged = compare.verdicts.iter();
        let judged = judged.find(|judged| judged.arm == arm.name && judged.metric == *metric);
        (arm, judged)
    });
    let title = format!("{metric}, gain over {}", reference(compare));
    let mut sheet = Sheet::of(&title, fields, rows);
    if compare.controls.first() == Some(control) {
        notes(compare, &mut sheet);
    }
    sheet
}

/// How the runs were made, and what a gain is.
fn notes(compare: &Compare, sheet: &mut Sheet) {
    let design = &compare.design;
    sheet.note(self::design(compare));
    if let Some(how) = &design.in_place {
        sheet.note(inplace::slices(how));
    }
    if design.spent.len() > 1 {
        sheet.note(format!(
            "the verdicts were looked at {} times: each look spends a part of the {:.0} % of false verdicts, and the intervals hold at 95 % over all looks",
            design.spent.len(),
            design.alpha * 100.0
        ));
    }
    sheet.note("gain = how many times better, paired within blocks; the first row is the reference against itself: this comparison's own noise");
}

fn probability(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.0001 => "< 0.0001".to_owned(),
        Some(p) => format!("{p:.4}"),
    }
}

fn median(arm: &Arm, metric: &str) -> String {
    or(median_of(arm, metric), "?")
}

fn median_of(arm: &Arm, metric: &str) -> Option<String> {
    stats::median(&arm.values(metric)).map(|median| value(metric, median))
}

fn design(compare: &Compare) -> String {
    let design = &compare.design;
    let ended = match design.ended {
        Ended::Settled => "until all was settled",
        Ended::Runs => "all that were asked for",
        Ended::UsualRuns => "the most without --runs",
        Ended::Budget => "until the time was over",
        Ended::Interrupted => "until it was stopped",
        Ended::ProgramEnded => "until the program ended",
    };
    let why = why::because(&design.reason);
    let programs = compare.arms.len() + 1;
    let blocks = match design.method {
        Method::Slices => {
            let (starts, slices) = (counted(design.blocks as usize, "start"), design.per_start as usize);
            format!("{starts} of {programs}, {} of each", counted(slices, "slice"))
        }
        Method::Runs | Method::Flip => format!("{} of {programs}", counted(design.blocks as usize, "block")),
    };
    let loads = or_empty(design.loads.map(|loads| {
        let loaded = counted((loads.warm_up + loads.counted) as usize, "load");
        let uncounted = match loads.warm_up {
            0 => String::new(),
            1 => ", of which the first one does not count".to_owned(),
            more => format!(", of which the first {more} do not count"),
        };
        format!(", each one start of the server with {loaded}{uncounted}")
    }));
    format!(
        "{} in {blocks} ({ended}){loads}, {:.0} s; differences below {:.1} % count as none; this design because {why}",
        design.method.title(),
        design.seconds,
        design.smallest_effect * 100.0
    )
}

fn techniques(compare: &Compare) -> Sheet {
    let in_place = compare.design.in_place.as_ref();
    let pages = match in_place {
        Some(_) => "pages in the last slice",
        None => "pages at the peak of the last run",
    };
    let mut sheet = Sheet::new("How the arms came about", ["arm", "technique", "took effect", pages]);
    for arm in &compare.arms {
        let last = arm.counted().last().or(arm.runs.last());
        let backing = |run: &Run| match &run.text {
            Some(text) => format!("code: {text}"),
            None => run.backing.to_string(),
        };
        let backing = or(last.map(backing), "?");
        let (counted, all) = (arm.counted().count(), arm.runs.len());
        let took_effect = match &arm.took_effect {
            Reading::Known(true) if counted < all => format!("in {counted} of {all} runs"),
            Reading::Known(true) => "yes".to_owned(),
            Reading::Known(false) => "no".to_owned(),
            Reading::Unread(why) => why.to_string(),
        };
        sheet.row([&arm.name, &arm.technique, &took_effect, &backing]);
        if let Some(note) = last.and_then(|run| run.notes.first()) {
            sheet.note(format!("{}: {note}", arm.name));
        }
    }
    sheet.note(match in_place {
        Some(how) => {
            let range = &how.range;
            format!("{range} memory; every look is before or after a slice, never within")
        }
        None => "own memory only; files that the program mapped are left out".to_owned(),
    });
    sheet
}

fn accounts(compare: &Compare) -> Sheet {
    let kernel: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| !metric.is_hardware()).collect();
    medians(compare, "Kernel counters", &kernel)
}

/// No rows, but the reason, where no run has any; nothing where there is no reason either.
fn counters(compare: &Compare) -> Option<Sheet> {
    let mut sheet = medians(compare, "Hardware counters", &Metric::HARDWARE);
    if sheet.columns.len() == 1 {
        sheet = Sheet::new("Hardware counters", ["arm"]);
    }
    if let Some(note) = &compare.pmu_note {
        sheet.note(note);
    }
    Some(sheet).filter(|sheet| !sheet.is_empty())
}

/// Those metrics that some run has.
fn medians(compare: &Compare, title: &str, metrics: &[Metric]) -> Sheet {
    let has = |metric: &&Metric| compare.arms.iter().any(|arm| !arm.values(metric.name()).is_empty());
    let arm = columns![|arm| &Arm; "arm" => arm.name];
    let metrics = metrics.iter().filter(has).flat_map(|metric| {
        let name = metric.name();
        columns![|arm| &Arm; (format!("#{name}")) => or(median_of(arm, name), "-")]
    });
    let title = format!("{title}, medians of the {}s", compare.design.method.turn());
    Sheet::of(&title, arm.into_iter().chain(metrics), compare.arms.iter())
}

/// A run of an arm, and one of its values by name.
type Value<'a> = (&'a Arm, &'a Run, String, f64);

fn values<'a>(arm: &'a Arm, run: &'a Run) -> impl Iterator<Item = Value<'a>> {
    let metrics = run.metrics.iter().map(|(name, value)| (name.clone(), *value));
    let coverage = run.coverage(arm.kind).ok().map(|share| ("coverage".to_owned(), share));
    let backing = run.backing.known().into_iter().flat_map(Backing::iter);
    let backing = backing.map(|(kind, bytes)| (format!("backing-{kind}"), bytes.0 as f64));
    let values = metrics.chain(coverage).chain(backing).chain(places::values(run));
    values.map(move |(name, value)| (arm, run, name, value))
}

#[cfg(test)]
#[path = "compare_tests.rs"]
pub(crate) mod tests;
