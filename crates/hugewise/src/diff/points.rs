//! Which points differ, with an interval and a verdict for each.
//!
//! Two runs of one machine differ by more than either shows within itself: other contention, other physical pages. So a
//! verdict takes an interval that lies beyond an allowance for that, and it holds for all points together.

use model::Estimate;
use model::compare::{Compare, Judged};
use model::latency::{Latency, Point};
use stats::Apart;

use super::material::Parts;
use crate::results::diff::{Change, Gap, Of, PointChange, Points};

/// What a 95 % interval leaves out.
const REJECTED: f64 = 1.0 - stats::CONFIDENCE;

/// Every point of both; `None` if one of them has none.
pub(super) fn points(a: &Parts, b: &Parts, allowed: f64) -> Option<Points> {
    let latency = a.latency.as_ref().zip(b.latency.as_ref());
    let compare = a.compare.as_ref().zip(b.compare.as_ref());
    let (a, b) = match (latency, compare) {
        (Some((a, b)), _) => (of_latency(a), of_latency(b)),
        (None, Some((a, b))) => (of_compare(a), of_compare(b)),
        (None, None) => return None,
    };
    let pairs = pairs(&a, &b);
    let level = level(&pairs);
    let points = pairs.into_iter().map(|pair| pair.change(allowed, level)).collect();
    Some(Points { allowed, level, points })
}

/// A point of one side.
struct Value<'a> {
    of: Of,
    estimate: Option<Estimate>,
    /// Medians of visits; `None` where the estimate is all there is.
    visits: Option<&'a [f64]>,
}

/// A point of both sides.
struct Pair<'v, 'a> {
    of: &'v Of,
    a: Option<&'v Value<'a>>,
    b: Option<&'v Value<'a>>,
}

fn of_latency(latency: &Latency) -> Vec<Value<'_>> {
    let value = |point: &'_ Point| Of::Latency {
        kind: point.kind,
        bytes: point.bytes,
        pattern: point.pattern,
        access: point.access,
    };
    let points = latency.points.iter().map(|point| Value {
        of: value(point),
        estimate: point.ns,
        visits: Some(&point.visits),
    });
    points.collect()
}

fn of_compare(compare: &Compare) -> Vec<Value<'_>> {
    let judged = compare.verdicts.iter().map(|judged| Value {
        of: Of::Gain {
            arm: judged.arm.clone(),
            metric: judged.metric.clone(),
        },
        estimate: estimate(judged),
        visits: None,
    });
    judged.collect()
}

fn estimate(judged: &Judged) -> Option<Estimate> {
    Some(Estimate {
        median: judged.ratio?,
        low: judged.low?,
        high: judged.high?,
        samples: u64::from(judged.pairs),
    })
}

/// Points of A, each with its peer, then those of B alone.
fn pairs<'v, 'a>(a: &'v [Value<'a>], b: &'v [Value<'a>]) -> Vec<Pair<'v, 'a>> {
    let peer = |among: &'v [Value<'a>], of: &Of| among.iter().find(|value| value.of == *of);
    let of_a = a.iter().map(|value| Pair {
        of: &value.of,
        a: Some(value),
        b: peer(b, &value.of),
    });
    let alone = b.iter().filter(|value| peer(a, &value.of).is_none());
    let alone = alone.map(|value| Pair {
        of: &value.of,
        a: None,
        b: Some(value),
    });
    of_a.chain(alone).collect()
}

/// The level of the intervals behind the verdicts, so that all of them hold together.
fn level(pairs: &[Pair<'_, '_>]) -> f64 {
    let both = pairs.iter().filter_map(Pair::estimates);
    // An interval without visits can be had at every level, as those of very many visits.
    let count = |value: &Value<'_>| value.visits.map_or(1_000, <[f64]>::len);
    stats::together(&both.map(|(a, b)| (count(b), count(a))).collect::<Vec<_>>(), REJECTED)
}

impl<'v, 'a> Pair<'v, 'a> {
    /// Both, where both have a value.
    fn estimates(&self) -> Option<(&'v Value<'a>, &'v Value<'a>)> {
        let has_value = |value: &&Value<'_>| value.estimate.is_some();
        self.a.filter(has_value).zip(self.b.filter(has_value))
    }

    /// B over A.
    fn ratio(&self, rejected: f64) -> Option<Apart> {
        let (a, b) = self.estimates()?;
        let ends = |value: &Value<'_>| value.estimate.map(|e| (e.low, e.median, e.high));
        match (a.visits, b.visits) {
            (Some(a), Some(b)) if !a.is_empty() && !b.is_empty() => stats::apart(b, a, rejected),
            (None, None) => stats::of_intervals(ends(b)?, ends(a)?, rejected),
            _ => None,
        }
    }

    fn change(self, allowed: f64, level: f64) -> PointChange {
        let alone = self.ratio(REJECTED);
        let ends = self.ratio(level).and_then(|ratio| ratio.ends);
        let gap = self.gap(alone);
        PointChange {
            verdict: match gap {
                None | Some(Gap::NoInterval) => verdict(self.of, ends, allowed),
                Some(_) => Change::NotCompared,
            },
            of: self.of.clone(),
            a: self.a.and_then(|value| value.estimate),
            b: self.b.and_then(|value| value.estimate),
            ratio: alone.map(|ratio| ratio.ratio),
            low: alone.and_then(|ratio| ratio.ends).map(|ends| ends.0),
            high: alone.and_then(|ratio| ratio.ends).map(|ends| ends.1),
            gap,
        }
    }

    fn gap(&self, ratio: Option<Apart>) -> Option<Gap> {
        match (self.a, self.b) {
            (Some(_), None) => Some(Gap::OnlyInA),
            (None, _) => Some(Gap::OnlyInB),
            _ if self.estimates().is_none() => Some(Gap::NotMeasured),
            _ if ratio.is_none_or(|ratio| ratio.ends.is_none()) => Some(Gap::NoInterval),
            _ => None,
        }
    }
}

fn verdict(of: &Of, ends: Option<(f64, f64)>, allowed: f64) -> Change {
    let most = 1.0 + allowed;
    let (more, less) = match of {
        Of::Latency { .. } => (Change::Worse, Change::Better),
        Of::Gain { .. } => (Change::Better, Change::Worse),
    };
    match ends {
        Some((low, _)) if low > most => more,
        Some((_, high)) if high < 1.0 / most => less,
        Some((low, high)) if low >= 1.0 / most && high <= most => Change::NoDifference,
        _ => Change::Inconclusive,
    }
}
