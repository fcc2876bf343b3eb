//! A sweep as heat maps: settings over working sets, one map for each machine, input and choice of parameters.

use std::collections::HashMap;

use model::Bytes;
use sim::translation::sweep::{LeftOut, Point, SweepResult};

use super::heat::{Heat, legend};
use super::sheet::Sheet;
use super::simulate::{bytes, name, number};
use super::table::{Field, Lines, lines};
use super::words::{counted, or_empty};
use crate::cli::typed::Format;
use crate::show::{CHARTS, Shape, Show};

/// Maps that a page shows; all points are in CSV and JSON.
const MOST_MAPS: usize = 24;

impl Shape for SweepResult {
    const FORMS: &'static [Format] = &CHARTS;
    const NAME: &'static str = "sweep";
}

impl Show for SweepResult {
    fn title(&self) -> String {
        let part = self
            .sweep
            .shard
            .map_or(String::new(), |shard| format!(", shard {shard}"));
        let points = counted(self.points.len(), "point");
        format!("Sweep over {}{part}: {points}", counted(self.machines.len(), "machine"))
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut places: HashMap<[&str; 3], usize> = HashMap::new();
        let mut maps: Vec<Vec<&Point>> = Vec::new();
        let words: Vec<String> = self.points.iter().map(|point| point.parameters.words()).collect();
        for (point, words) in self.points.iter().zip(&words) {
            let place = *places
                .entry([point.machine.as_str(), point.input.as_str(), words.as_str()])
                .or_insert(maps.len());
            match maps.get_mut(place) {
                Some(map) => map.push(point),
                None => maps.push(vec![point]),
            }
        }
        let shown = maps.iter().take(MOST_MAPS).map(|map| heat_map(self, map));
        shown.chain([facts(self, maps.len())]).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields: [Field<&Point>; _] = [
            Field::csv("point", |point| point.point.to_string()),
            Field::csv("seed", |point| point.seed.to_string()),
            Field::csv("machine", |point| point.machine.clone()),
            Field::csv("input", |point| point.input.clone()),
            Field::csv("working_set_bytes", |point| bytes(point.working_set)),
            Field::csv("mode", |point| point.setting.mode.name().to_owned()),
            Field::csv("guest_page_bytes", |point| point.setting.guest_page.0.to_string()),
            Field::csv("host_page_bytes", |point| bytes(point.setting.host_page)),
            Field::csv("parameters", |point| point.parameters.words()),
            Field::csv("accesses", |point| point.accesses.to_string()),
            Field::csv("entry_bytes", |point| point.entry.0.to_string()),
            Field::csv("reach_bytes", |point| point.reach.0.to_string()),
            Field::csv("l1_miss_rate", |point| or_empty(point.miss_rates.first())),
            Field::csv("walk_rate", |point| or_empty(point.miss_rates.last())),
            Field::csv("references_per_access", |point| point.references.middle.to_string()),
            Field::csv("data_cycles", |point| point.cycles.data.middle.to_string()),
            Field::csv("tlb_cycles", |point| point.cycles.tlb.middle.to_string()),
            Field::csv("walk_cycles", |point| point.cycles.walks.middle.to_string()),
            Field::csv("exit_cycles", |point| point.cycles.exits.middle.to_string()),
            Field::csv("shootdown_cycles", |point| point.cycles.shootdowns.middle.to_string()),
            Field::csv("cycles", |point| point.total.middle.to_string()),
            Field::csv("cycles_low", |point| point.total.low.to_string()),
            Field::csv("cycles_high", |point| point.total.high.to_string()),
        ];
        lines(fields, self.points.iter())
    }
}

/// Time relative to the baseline, by setting and working set; of a shard without it the cycles per access.
fn heat_map(result: &SweepResult, points: &[&Point]) -> Sheet {
    let sizes = distinct(points, |point| point.working_set);
    let settings = distinct(points, |point| point.setting);
    let baselines: Vec<Option<&Point>> = sizes.iter().map(|&size| baseline(result, points, size)).collect();
    let is_relative = baselines.iter().all(Option::is_some);
    let unit = if is_relative {
        format!("time relative to {}", result.baseline)
    } else {
        "cycles per access".to_owned()
    };
    let columns = sizes
        .iter()
        .map(|size| size.map_or_else(|| "#trace".to_owned(), |size| format!("#{size}")));
    let title = format!("{}: {unit}", head(result, points[0]));
    let mut sheet = Sheet::new(&title, std::iter::once("setting".to_owned()).chain(columns));
    for setting in settings {
        let cell = |(&size, baseline): (&Option<Bytes>, &Option<&Point>)| {
            let found = points
                .iter()
                .find(|point| (point.setting, point.working_set) == (setting, size));
            cell(found.copied(), baseline.filter(|_| is_relative))
        };
        let cells = sizes.iter().zip(&baselines).map(cell);
        sheet.shaded_row(std::iter::once((setting.to_string(), None)).chain(cells));
    }
    if is_relative {
        sheet.note(legend("the baseline"));
    }
    sheet
}

fn baseline<'a>(result: &SweepResult, points: &[&'a Point], size: Option<Bytes>) -> Option<&'a Point> {
    let is_it = |point: &&&Point| (point.setting, point.working_set) == (result.baseline, size);
    points.iter().find(is_it).copied()
}

fn cell(point: Option<&Point>, baseline: Option<&Point>) -> (String, Option<Heat>) {
    match (point, baseline) {
        (None, _) => (String::new(), None),
        (Some(point), None) => (number(point.total.middle), None),
        (Some(point), Some(baseline)) => {
            let times = point.total.middle / baseline.total.middle;
            (format!("{times:.2}"), Some(Heat::of(times)))
        }
    }
}

/// What a map is of: input, machine, and the parameters that are set.
fn head(result: &SweepResult, point: &Point) -> String {
    let machine = result.machines.iter().find(|machine| machine.name == point.machine);
    let machine = machine.map_or(&point.machine, |machine| &machine.facts.name);
    let parameters = match point.parameters.words() {
        none if none.is_empty() => String::new(),
        words => format!(" ({words})"),
    };
    format!("{} on {machine}{parameters}", point.input)
}

/// In the order in which they come up.
fn distinct<T: PartialEq>(points: &[&Point], of: fn(&Point) -> T) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for point in points {
        let value = of(point);
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// What was swept because it is not known, and what a machine cannot do.
fn facts(result: &SweepResult, maps: usize) -> Sheet {
    let mut sheet = Sheet::new(
        "Machines of the sweep",
        ["machine", "not published, and therefore a range"],
    );
    for machine in &result.machines {
        let unknown: Vec<&str> = machine.unknown.iter().map(|swept| name(swept.unknown)).collect();
        sheet.row([machine.name.clone(), unknown.join("; ")]);
    }
    sheet.note("setting = MODE:GUEST PAGE/HOST PAGE; times are in the middle of these ranges, whose ends are in the other formats");
    let head = &result.sweep;
    sheet.note(format!(
        "{} accesses of a pattern each, after {} to warm up; seed {}",
        head.accesses, head.warm_up, head.seed
    ));
    if head.shard.is_some() {
        sheet.note(format!(
            "{} of the {} points of the sweep",
            result.points.len(),
            head.points
        ));
    }
    if maps > MOST_MAPS {
        sheet.note(format!(
            "{} more maps are left out: --format csv has all points",
            maps - MOST_MAPS
        ));
    }
    left_out(&result.left_out, &mut sheet);
    sheet
}

fn left_out(all: &[LeftOut], sheet: &mut Sheet) {
    for left in all {
        let LeftOut { machine, what, why } = left;
        sheet.note(format!("left out: {what} on {machine}: {why}"));
    }
}
