//! How two results or machines differ: verdicts first, then points, findings, page kinds and settings.

use std::collections::BTreeMap;

use model::latency::{Access, Pattern};
use model::process::Unseen;
use model::{Backing, Estimate, PageKind, Reading};

use super::ps::percent as percent_huge;
use super::unseen::in_words;
use crate::results::Diff;
use crate::results::diff::{
    BackingChange, Change, FindingChange, Of, PointChange, Points, SettingChange, Side, UnseenProcesses,
};
use crate::show::Show;
use draw::{
    Along, Dot, Figure, Lines, Scale, Series, Sheet, TONES, columns, counted, lines, moment, number, or, or_empty,
};

impl Show for Diff {
    fn title(&self) -> String {
        format!("{} against {}", self.b.file, self.a.file)
    }

    fn headlines(&self) -> Vec<String> {
        let points = self.points.iter().flat_map(points_in_words);
        points.chain(others_in_words(self)).collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        sheets(self, |_| true)
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        sheets(self, |point| matches!(point.verdict, Change::Worse | Change::Better))
    }

    fn figures(&self) -> Vec<Figure> {
        self.points.iter().flat_map(figures).collect()
    }

    /// One line for each difference and each point, whatever it is of.
    fn csv(&self) -> Lines<'_> {
        let median = |estimate: Option<Estimate>| or_empty(estimate.map(|estimate| estimate.median));
        let points = self.points.iter().flat_map(|points| &points.points);
        let points = points.map(move |of| ("point", name(&of.of), median(of.a), median(of.b), Some(of)));
        let line = |part: &'static str, name: String, [a, b]: [String; 2]| (part, name, a, b, None);
        let findings = self.findings.iter().flatten().map(move |change| {
            let name = format!("{} {}", change.id, change.name);
            line("finding", name, [change.a, change.b].map(found))
        });
        let backing = self.backing.iter().flatten().map(move |change| {
            let pages = [&change.a, &change.b].map(|backing| pages(backing.as_ref()));
            line("backing", program(change), pages)
        });
        let settings = self.settings.iter().map(move |change| {
            let values = [&change.a, &change.b].map(setting);
            line("setting", change.setting.clone(), values)
        });
        let fields = columns![|(part, name, a, b, point)| Line<'_>;
            part => part, name => name, a => a, b => b, a_low => point.as_ref()?.a?.low, a_high => point.as_ref()?.a?.high,
            b_low => point.as_ref()?.b?.low, b_high => point.as_ref()?.b?.high, ratio => point.as_ref()?.ratio?,
            ratio_low => point.as_ref()?.low?, ratio_high => point.as_ref()?.high?, verdict => verdict(point.as_ref()?),
        ];
        lines(fields, points.chain(findings).chain(backing).chain(settings))
    }
}

fn points_in_words(points: &Points) -> Vec<String> {
    let count = |verdict| points.count(verdict);
    let compared = points.points.len() - count(Change::NotCompared);
    let allowed = number(points.allowed * 100.0);
    let mut lines = vec![format!(
        "Of {} in both, B is worse at {} and better at {} by more than {allowed} %; differing by less: {}; inconclusive: {}.",
        counted(compared, "point"),
        count(Change::Worse),
        count(Change::Better),
        count(Change::NoDifference),
        count(Change::Inconclusive)
    )];
    if count(Change::Inconclusive) * 2 > compared {
        lines.push("Most points are inconclusive: give both runs more time (--budget), or fewer points.".to_owned());
    }
    lines
}

fn others_in_words(diff: &Diff) -> Vec<String> {
    let list = |count: usize, noun: &str, rest: &str| match count {
        0 => format!("No {noun}{rest}."),
        count => format!("{}{rest}.", counted(count, noun)),
    };
    let findings = diff.findings.as_ref();
    let findings = findings.map(|changes| list(changes.len(), "rule", " found more or fewer in B than in A"));
    let backing = diff.backing.as_ref().map(|changes| {
        let programs = changes.iter().filter(|change| change.name.is_some());
        list(programs.count(), "program", " with another share on huge pages")
    });
    let settings = Some(list(diff.settings.len(), "setting", " with another value"));
    let unseen = diff.unseen.as_ref().map(processes_in_words).unwrap_or_default();
    let left_out: Vec<String> = diff.left_out.iter().cloned().chain(unseen).collect();
    let left_out = (!left_out.is_empty()).then(|| format!("Not compared: {}.", left_out.join(", ")));
    [findings, backing, settings, left_out].into_iter().flatten().collect()
}

/// Which processes are not compared, and why.
pub(crate) fn processes_in_words(unseen: &UnseenProcesses) -> Vec<String> {
    let of = |(name, side): (&str, Option<&Unseen>)| {
        let why = match side {
            None => Some("none is known".to_owned()),
            Some(side) => in_words(side),
        };
        Some(format!("processes of {name} ({})", why?))
    };
    unseen.sides().into_iter().filter_map(of).collect()
}

fn sheets(diff: &Diff, is_shown: impl Fn(&PointChange) -> bool) -> Vec<Sheet> {
    let points = diff.points.as_ref().map(|points| point_sheet(points, is_shown));
    let findings = diff.findings.as_deref().map(finding_sheet);
    let backing = diff.backing.as_deref().map(backing_sheet);
    let lists = [points, findings, backing, Some(setting_sheet(&diff.settings))];
    let lists = lists.into_iter().flatten().filter(|sheet| !sheet.rows.is_empty());
    std::iter::once(sides(diff)).chain(lists).collect()
}

fn sides(diff: &Diff) -> Sheet {
    let mut sheet = Sheet::new("What is compared", ["", "A", "B"]);
    let mut row = |name: &str, of: fn(&Side) -> String| sheet.row([name.to_owned(), of(&diff.a), of(&diff.b)]);
    row("file", |side| side.file.clone());
    row("CPU", |side| side.machine.cpu.to_string());
    row("kernel", |side| side.machine.kernel.to_string());
    if diff.a.started.is_some() {
        row("started", |side| or_empty(side.started.as_deref().map(moment)));
        row("command", |side| side.command.join(" "));
    }
    sheet
}

fn point_sheet(points: &Points, is_shown: impl Fn(&PointChange) -> bool) -> Sheet {
    let shown = points.points.iter().filter(|point| is_shown(point));
    let fields = columns![|point| &PointChange;
        "point" => name(&point.of), "#A" => value(&point.of, point.a), "#B" => value(&point.of, point.b),
        "#change" => point.ratio.map(percent)?, "#95 % CI" => interval(point), "verdict" => verdict(point),
    ];
    let mut sheet = Sheet::of("Points: B against A", fields, shown);
    sheet.note(format!(
        "The interval is that of its point alone. A verdict takes one that holds for all points together in 95 % and lies beyond {} %.",
        number(points.allowed * 100.0)
    ));
    sheet.note("Both speak of these two runs: contention during one of them is part of the difference.");
    sheet
}

fn finding_sheet(changes: &[FindingChange]) -> Sheet {
    let fields = columns![|change| &FindingChange;
        "id" => change.id, "rule" => change.name, "severity" => change.severity,
        "#findings in A" => found(change.a), "#findings in B" => found(change.b),
    ];
    Sheet::of("Findings: rules that found more or fewer", fields, changes.iter())
}

fn backing_sheet(changes: &[BackingChange]) -> Sheet {
    let fields = columns![|change| &BackingChange;
        "program" => program(change), "#huge in A" => { let a = change.a.as_ref()?; a.coverage()?; percent_huge(a) },
        "#huge in B" => { let b = change.b.as_ref()?; b.coverage()?; percent_huge(b) },
        "A" => pages(change.a.as_ref()), "B" => pages(change.b.as_ref()),
    ];
    let mut sheet = Sheet::of("Page kinds of programs", fields, changes.iter());
    sheet.note("listed: 16M or more, and a share on huge pages that differs by 5 percent points or more");
    sheet
}

fn setting_sheet(changes: &[SettingChange]) -> Sheet {
    let fields = columns![|change| &SettingChange;
        "setting" => change.setting, "A" => setting(&change.a), "B" => setting(&change.b),
    ];
    Sheet::of("Settings and hardware", fields, changes.iter())
}

fn name(of: &Of) -> String {
    match of {
        Of::Latency {
            kind,
            bytes,
            pattern,
            access,
        } => format!("{kind} {bytes}, {pattern}, {access}"),
        Of::Gain { arm, metric } => format!("{arm}: {metric}"),
    }
}

/// `+12.3 %`.
fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{} %", number(percent))
}

fn value(of: &Of, estimate: Option<Estimate>) -> String {
    let text = |estimate: Estimate| match of {
        Of::Latency { .. } => format!("{} ns", number(estimate.median)),
        Of::Gain { .. } => percent(estimate.median),
    };
    or_empty(estimate.map(text))
}

fn interval(point: &PointChange) -> String {
    let ends = point.low.zip(point.high);
    or_empty(ends.map(|(low, high)| format!("{} to {}", percent(low), percent(high))))
}

fn verdict(point: &PointChange) -> String {
    let why = or_empty(point.gap.map(|gap| format!(" ({})", gap.name())));
    format!("{}{why}", point.verdict.name())
}

fn found(count: Option<usize>) -> String {
    or(count, "not judged")
}

fn program(change: &BackingChange) -> String {
    change.name.clone().unwrap_or_else(|| "all processes".to_owned())
}

fn pages(backing: Option<&Backing>) -> String {
    or(backing, "not listed")
}

fn setting(value: &Reading<String>) -> String {
    match value {
        Reading::Known(value) => value.clone(),
        Reading::Unread(why) => format!("({})", why.unread),
    }
}

/// The part, what of it, A and B; of a point more.
type Line<'a> = (&'static str, String, String, String, Option<&'a PointChange>);

type View = (PageKind, Pattern, Access);

/// For each page kind both curves, and the change along them.
fn figures(points: &Points) -> Vec<Figure> {
    let mut views: BTreeMap<View, Vec<&PointChange>> = BTreeMap::new();
    for point in &points.points {
        if let Of::Latency {
            kind, pattern, access, ..
        } = point.of
        {
            views.entry((kind, pattern, access)).or_default().push(point);
        }
    }
    let both = views
        .iter()
        .flat_map(|(view, points)| [curves(*view, points), change(*view, points)]);
    both.filter(|figure| !figure.is_empty()).collect()
}

fn curves((kind, pattern, access): View, points: &[&PointChange]) -> Figure {
    let side = |name: &str, tone: usize, of: fn(&PointChange) -> Option<Estimate>| {
        let dots = points.iter().filter_map(|point| dot(name, point, of(point)?));
        Series::line(name, TONES[tone], dots.collect())
    };
    let title = format!("Time of one step on {kind}: {pattern}, {access}");
    let series = [side("A", 0, |point| point.a), side("B", 1, |point| point.b)];
    let id = format!("diff-{kind}-{pattern}-{access}");
    Figure::new(id, title, Along::WorkingSet, ("ns", Scale::Log), series)
}

fn dot(name: &str, point: &PointChange, ns: Estimate) -> Option<Dot> {
    let Of::Latency { bytes, .. } = point.of else {
        return None;
    };
    let [median, low, high] = [ns.median, ns.low, ns.high].map(number);
    let tip = format!("{name} at {bytes}: {median} ns (95 % CI {low} to {high})");
    Some(Dot::of(bytes.0, ns, tip))
}

/// Changes beyond this are drawn at it: one disturbed point would flatten all others. The tip has the whole interval.
const MOST: f64 = 100.0;

fn change((kind, pattern, access): View, points: &[&PointChange]) -> Figure {
    let dot = |point: &&PointChange| {
        let Of::Latency { bytes, .. } = point.of else {
            return None;
        };
        let at = |ratio: f64| ((ratio - 1.0) * 100.0).min(MOST);
        let ratio = point.ratio?;
        let ends = [ratio, point.low.unwrap_or(ratio), point.high.unwrap_or(ratio)];
        let tip = format!("{bytes}: {} ({}): {}", percent(ratio), interval(point), verdict(point));
        Some(Dot::new(bytes.0, ends.map(at), tip))
    };
    let series = Series::of_kind(kind, points.iter().filter_map(dot).collect());
    let title = format!("Change of B against A on {kind}: {pattern}, {access}");
    let y = ("% more time than A, up to 100", Scale::Linear);
    let id = format!("change-{kind}-{pattern}-{access}");
    Figure::new(id, title, Along::WorkingSet, y, [series])
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
