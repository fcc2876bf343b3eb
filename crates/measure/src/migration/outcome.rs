//! From visits to what a move costs: a number with its interval, a bound, or the reason for neither. Pure.

use model::latency::{Backed, Bound};
use model::migration::{Migration, Moves, Point};
use model::placement::Kind;
use model::{Bytes, Estimate, NotMeasured, Warning};

use super::live::Visit;
use crate::visits::Visits;

/// An interval that reaches farther than this share of the cost to each side is only a bound.
const SETTLED: f64 = 0.25;

/// What all visits to one point gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    stay: Visits,
    there: Visits,
    added: Visits,
    call: Visits,
    moves: u64,
    dropped: u64,
}

impl Taken {
    pub(super) fn add(&mut self, visit: &Visit) {
        let halves = visit.moves.split_at(visit.moves.len() / 2);
        let into = |visits: &mut Visits, value: fn(&super::live::Moved) -> f64| {
            let [early, late] = [halves.0, halves.1].map(|half| half.iter().map(value).collect::<Vec<f64>>());
            visits.add(&early, &late);
        };
        into(&mut self.stay, |moved| moved.stay);
        into(&mut self.there, |moved| moved.there);
        into(&mut self.added, |moved| moved.there - moved.stay);
        into(&mut self.call, |moved| moved.call);
        self.moves += visit.moves.len() as u64;
        self.dropped += visit.dropped;
    }

    pub(super) fn is_enough(&self, within: f64) -> bool {
        stats::is_enough(&self.added.medians, within)
    }

    pub(super) fn point(&self, kind: Kind, bytes: Bytes, backing: Backed, unproved: Option<NotMeasured>) -> Point {
        let mut point = Point {
            kind,
            bytes,
            stay_ns: self.stay.estimate(),
            moved_ns: self.there.estimate(),
            cost_ns: None,
            bound: None,
            not_measured: None,
            moves: self.moves,
            dropped: self.dropped,
            backing,
        };
        match unproved.map_or_else(|| self.cost(), Cost::None) {
            Cost::Known(cost) => point.cost_ns = Some(cost),
            Cost::Bound(bound) => point.bound = Some(bound),
            Cost::None(why) => point.not_measured = Some(why.to_string()),
        }
        point
    }

    fn cost(&self) -> Cost {
        let Some(added) = self.added.estimate() else {
            return Cost::None(match self.moves {
                0 => NotMeasured::Disturbed {
                    dropped: self.dropped,
                    by_clock: false,
                },
                _ => NotMeasured::OneVisit,
            });
        };
        let is_moving = self.there.moving(1).is_some();
        if added.low > 0.0 && added.relative_error() <= SETTLED && !is_moving {
            return Cost::Known(added);
        }
        Cost::Bound(Bound {
            low: (added.low > 0.0).then_some(added.low),
            high: Some(added.high),
        })
    }
}

enum Cost {
    Known(Estimate),
    Bound(Bound),
    None(NotMeasured),
}

/// The call that moves, over all footprints.
pub(super) fn moves((kind, pairs): &(Kind, Vec<[u32; 2]>), points: &[Taken]) -> Moves {
    let mut call = Visits::default();
    points.iter().for_each(|taken| call.join(&taken.call));
    Moves {
        kind: *kind,
        pairs: pairs.clone(),
        call_ns: call.estimate(),
    }
}

pub(super) fn warnings(migration: &Migration) -> Vec<Warning> {
    let all = migration.points.len();
    let bounded = migration.points.iter().filter(|point| point.bound.is_some()).count();
    let dropped: u64 = migration.points.iter().map(|point| point.dropped).sum();
    let moves: u64 = migration.points.iter().map(|point| point.moves).sum();
    let unsettled = (bounded > 0).then(|| {
        let text = format!(
            "{bounded} of {all} costs did not settle and are bounds: measure longer (--budget), or on a quieter machine"
        );
        Warning::new("not-settled", text)
    });
    let disturbed = (dropped * 10 > moves + dropped).then(|| {
        let text = format!(
            "{dropped} of {} moves were dropped: other programs interrupted them",
            moves + dropped
        );
        Warning::new("moves-dropped", text)
    });
    [unsettled, disturbed].into_iter().flatten().collect()
}
