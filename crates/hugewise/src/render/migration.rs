//! Costs of moves as a table, footprints down and kinds across, and as a chart; below, what CPUs at work leave of each other.

mod contention;

use model::Estimate;
use model::migration::{Migration, Point};
use model::placement::Kind;

use super::axis::{Scale, number};
use super::figure::{Dot, Figure, Series};
use super::placement::kind_name;
use super::sheet::Sheet;
use super::table::{Field, Lines, lines};
use super::tone::TONES;
use super::words::{limits, or_empty};
use crate::cli::typed::Format;
use crate::show::{CHARTS, Show};

impl Show for Migration {
    const FORMS: &'static [Format] = &CHARTS;
    const NAME: &'static str = "migration";
    const VERSION: u32 = 1;

    fn title(&self) -> String {
        format!("What a move to another CPU costs, on {} pages", self.page)
    }

    fn headlines(&self) -> Vec<String> {
        let mut all: Vec<String> = self.kinds.iter().filter_map(|moves| range(self, moves.kind)).collect();
        if !self.absent.is_empty() {
            let names: Vec<&str> = self.absent.iter().map(|kind| kind_name(*kind)).collect();
            all.push(format!(
                "These {} CPUs have no move to: {}.",
                self.cpus.len(),
                names.join("; ")
            ));
        }
        all
    }

    fn sheets(&self) -> Vec<Sheet> {
        let own = [costs(self), calls(self)].into_iter();
        own.chain(contention::cases(self)).collect()
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        let own = [costs(self), calls(self)].into_iter();
        own.chain(contention::matrices(self)).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        vec![curves(self)]
    }

    fn csv(&self) -> Lines<'_> {
        let fields: [Field<&Point>; _] = [
            Field::csv("move_to", |point| point.kind.to_string()),
            Field::csv("bytes", |point| point.bytes.0.to_string()),
            Field::csv("cost_ns", |point| median(point.cost_ns)),
            Field::csv("low", |point| or_empty(point.cost_ns.map(|cost| cost.low))),
            Field::csv("high", |point| or_empty(point.cost_ns.map(|cost| cost.high))),
            Field::csv("bound_low", |point| or_empty(point.bound.and_then(|bound| bound.low))),
            Field::csv("bound_high", |point| or_empty(point.bound.and_then(|bound| bound.high))),
            Field::csv("stay_ns", |point| median(point.stay_ns)),
            Field::csv("moved_ns", |point| median(point.moved_ns)),
            Field::csv("moves", |point| point.moves.to_string()),
            Field::csv("dropped", |point| point.dropped.to_string()),
            Field::csv("not_measured", |point| or_empty(point.not_measured.as_ref())),
        ];
        lines(fields, self.points.iter())
    }
}

fn of(migration: &Migration, kind: Kind) -> impl Iterator<Item = &Point> {
    migration.points.iter().filter(move |point| point.kind == kind)
}

/// From the smallest footprint to the largest.
fn range(migration: &Migration, kind: Kind) -> Option<String> {
    let first = of(migration, kind).next()?;
    let last = of(migration, kind).last()?;
    Some(format!(
        "A move to {} adds {} us to the first pass over {}, and {} us over {}.",
        kind_name(kind),
        cost(first),
        first.bytes,
        cost(last),
        last.bytes
    ))
}

fn us(ns: f64) -> String {
    number(ns / 1e3)
}

fn cost(point: &Point) -> String {
    match (point.cost_ns, point.bound) {
        (Some(cost), _) => us(cost.median),
        (None, Some(bound)) => limits(bound, us),
        (None, None) => "-".to_owned(),
    }
}

fn costs(migration: &Migration) -> Sheet {
    let heads = [
        "#footprint",
        "move to",
        "#cost us",
        "#95 % CI",
        "#pass before us",
        "#first pass there us",
    ];
    let mut sheet = Sheet::new("Time that a move adds to the first pass over the memory", heads);
    for point in &migration.points {
        let median = |value: Option<Estimate>| value.map_or_else(|| "-".to_owned(), |value| us(value.median));
        let interval = point.cost_ns.map_or_else(
            || "-".to_owned(),
            |cost| format!("{} to {}", us(cost.low), us(cost.high)),
        );
        sheet.row([
            point.bytes.to_string(),
            kind_name(point.kind).to_owned(),
            cost(point),
            interval,
            median(point.stay_ns),
            median(point.moved_ns),
        ]);
    }
    for point in &migration.points {
        if let Some(why) = &point.not_measured {
            sheet.note(format!("{} to {}: {why}", point.bytes, kind_name(point.kind)));
        }
    }
    sheet.note("?: not settled, so it has limits and no number");
    sheet.note(format!(
        "{} rounds in {:.1} s; a pass reads and writes each line once, in random order",
        migration.rounds, migration.seconds
    ));
    sheet
}

fn calls(migration: &Migration) -> Sheet {
    let mut sheet = Sheet::new(
        "Time of the call that moves (sched_setaffinity)",
        ["move to", "#us", "#95 % CI", "between CPUs"],
    );
    for moves in &migration.kinds {
        let pairs: Vec<String> = moves
            .pairs
            .iter()
            .map(|[one, two]| format!("{one} and {two}"))
            .collect();
        sheet.row([
            kind_name(moves.kind).to_owned(),
            moves.call_ns.map_or_else(|| "-".to_owned(), |call| us(call.median)),
            moves.call_ns.map_or_else(
                || "-".to_owned(),
                |call| format!("{} to {}", us(call.low), us(call.high)),
            ),
            pairs.join("; "),
        ]);
    }
    sheet.note(
        "the scheduler moves waiting threads without this call; it has to wake the other CPU, as the scheduler does",
    );
    sheet
}

fn curves(migration: &Migration) -> Figure {
    let series = migration.kinds.iter().enumerate().map(|(at, moves)| Series {
        name: kind_name(moves.kind).to_owned(),
        tone: TONES[at % TONES.len()],
        level: None,
        dots: of(migration, moves.kind).filter_map(dot).collect(),
    });
    Figure::by_working_set(
        "migration-cost".to_owned(),
        "Time that a move adds, by the memory that the thread uses".to_owned(),
        ("us", Scale::Log),
        series,
    )
}

fn dot(point: &Point) -> Option<Dot> {
    let cost = point.cost_ns?;
    Some(Dot {
        at: point.bytes.0,
        value: cost.median / 1e3,
        low: cost.low / 1e3,
        high: cost.high / 1e3,
        tip: format!(
            "{} to {}: {} us (95 % CI {} to {}, {} moves)",
            point.bytes,
            kind_name(point.kind),
            us(cost.median),
            us(cost.low),
            us(cost.high),
            point.moves
        ),
    })
}

fn median(value: Option<Estimate>) -> String {
    or_empty(value.map(|value| value.median))
}

#[cfg(test)]
mod tests;
