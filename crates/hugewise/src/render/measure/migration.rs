//! Costs of moves as a table, footprints down and kinds across, and as a chart; below, what CPUs at work leave of each other.

mod contention;

use model::Estimate;
use model::migration::{Migration, Moves, Point};
use model::placement::Kind;

use crate::render::prove::placement::kind_name;
use crate::show::Show;
use draw::{Along, Dot, Figure, Lines, Scale, Series, Sheet, TONES, columns, joined, limits, lines, number, or};

impl Show for Migration {
    fn title(&self) -> String {
        format!("What a move to another CPU costs, on {} pages", self.page)
    }

    fn headlines(&self) -> Vec<String> {
        let mut all: Vec<String> = self.kinds.iter().filter_map(|moves| range(self, moves.kind)).collect();
        if !self.absent.is_empty() {
            let names = joined(self.absent.iter().map(|kind| kind_name(*kind)), "; ");
            all.push(format!("These {} CPUs have no move to: {names}.", self.cpus.len()));
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
        let fields = columns![|point| &Point;
            move_to => point.kind, bytes => point.bytes.0, cost_ns => point.cost_ns?.median,
            low => point.cost_ns?.low, high => point.cost_ns?.high, bound_low => point.bound?.low?,
            bound_high => point.bound?.high?, stay_ns => point.stay_ns?.median, moved_ns => point.moved_ns?.median,
            moves => point.moves, dropped => point.dropped, not_measured => point.not_measured.as_ref()?,
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
    let fields = columns![|point| &Point;
        "#footprint" => point.bytes, "move to" => kind_name(point.kind), "#cost us" => cost(point),
        "#95 % CI" => interval(point.cost_ns), "#pass before us" => median(point.stay_ns),
        "#first pass there us" => median(point.moved_ns),
    ];
    let title = "Time that a move adds to the first pass over the memory";
    let mut sheet = Sheet::of(title, fields, migration.points.iter());
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

fn median(ns: Option<Estimate>) -> String {
    or(ns.map(|ns| us(ns.median)), "-")
}

fn interval(ns: Option<Estimate>) -> String {
    or(ns.map(|ns| format!("{} to {}", us(ns.low), us(ns.high))), "-")
}

fn calls(migration: &Migration) -> Sheet {
    let fields = columns![|moves| &Moves;
        "move to" => kind_name(moves.kind), "#us" => median(moves.call_ns), "#95 % CI" => interval(moves.call_ns),
        "between CPUs" => joined(moves.pairs.iter().map(|[one, two]| format!("{one} and {two}")), "; "),
    ];
    let title = "Time of the call that moves (sched_setaffinity)";
    let mut sheet = Sheet::of(title, fields, migration.kinds.iter());
    sheet.note(
        "the scheduler moves waiting threads without this call; it has to wake the other CPU, as the scheduler does",
    );
    sheet
}

fn curves(migration: &Migration) -> Figure {
    let series = TONES.iter().cycle().zip(&migration.kinds).map(|(tone, moves)| {
        let dots = of(migration, moves.kind).filter_map(dot).collect();
        Series::line(kind_name(moves.kind), *tone, dots)
    });
    let title = "Time that a move adds, by the memory that the thread uses";
    Figure::new("migration-cost", title, Along::WorkingSet, ("us", Scale::Log), series)
}

fn dot(point: &Point) -> Option<Dot> {
    let cost = point.cost_ns?;
    let tip = format!(
        "{} to {}: {} us (95 % CI {}, {} moves)",
        point.bytes,
        kind_name(point.kind),
        us(cost.median),
        interval(point.cost_ns),
        point.moves
    );
    let drawn = [cost.median, cost.low, cost.high].map(|ns| ns / 1e3);
    Some(Dot::new(point.bytes.0, drawn, tip))
}

#[cfg(test)]
mod tests;
