//! What two CPUs leave of each other, by what both do: visits to pairs of mixes in random order.

use std::time::Instant;

use model::cores::Relation;
use model::migration::{Contention, Mix};
use model::placement::Kind;
use model::{Bytes, Progress, Warning, time_left};
use stats::rounds;

use super::spec::Spec;
use crate::Error;
use crate::contend::{self, Load};

/// Visits to each pair of mixes: with nine of them one that was disturbed does not widen the interval.
const VISITS: u32 = 9;
/// A throughput alone that changed by so much, with its whole interval, is a warning.
const STEADY: f64 = 0.05;
/// Half of the smallest L1 data cache in use.
const L1: Bytes = Bytes::kib(16);

/// Two CPUs and what they do.
#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    cpus: [u32; 2],
    mixes: [Mix; 2],
}

/// Every pair of mixes on one pair of CPUs of each kind, and multiplications on the others; or each mix beside itself where time counts.
fn cases(spec: &Spec) -> Vec<Case> {
    let all = Mix::ALL
        .into_iter()
        .flat_map(|mix| Mix::ALL.map(|beside| [mix, beside]));
    let mixes: Vec<[Mix; 2]> = all.filter(|[mix, beside]| !spec.is_quick || mix == beside).collect();
    let of_pair = |kind, at, cpus| {
        let wanted = |mixes: &&[Mix; 2]| at == 0 || **mixes == [Mix::IntegerMultiply; 2];
        let found = mixes.iter().filter(wanted);
        found.map(|&mixes| Case { kind, cpus, mixes }).collect::<Vec<_>>()
    };
    let of_kind = |(kind, pairs): &(Kind, Vec<[u32; 2]>)| {
        let pairs = pairs.iter().enumerate();
        pairs
            .flat_map(|(at, &cpus)| of_pair(*kind, at, cpus))
            .collect::<Vec<_>>()
    };
    spec.kinds.iter().flat_map(of_kind).collect()
}

pub(super) fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<Vec<Contention>, Error> {
    let cases = cases(spec);
    let mut loads = [(); 2].map(|()| Mix::ALL.map(|mix| spec.load(mix)));
    let mut taken = vec![(Vec::new(), Vec::new()); cases.len()];
    let begun = Instant::now();
    let turns = (0..VISITS).flat_map(|round| rounds::order(cases.len(), spec.seed, round));
    let all = cases.len() * VISITS as usize;
    for (done, at) in turns.enumerate() {
        Error::if_stopped(stop)?;
        let Case { cpus, mixes, .. } = cases[at];
        let share = done as f64 / all as f64;
        let left = time_left(begun.elapsed(), share);
        progress.step(share, left, &format!("CPUs {} and {} at work", cpus[0], cpus[1]));
        let [own, beside] = &mut loads;
        let both = [&mut own[mixes[0] as usize], &mut beside[mixes[1] as usize]];
        let rounds = contend::beside(cpus, 1, both)?;
        taken[at].0.extend(rounds.iter().map(|round| round.share()));
        taken[at].1.extend(rounds.iter().map(|round| round.again()));
    }
    let published = cases.iter().zip(&taken).map(|(case, (shares, again))| Contention {
        kind: case.kind,
        cpus: case.cpus,
        mix: case.mixes[0],
        beside: case.mixes[1],
        share: stats::of_medians(shares),
        again: stats::of_medians(again),
    });
    Ok(published.collect())
}

impl Spec {
    fn load(&self, mix: Mix) -> Load {
        let bytes = match mix {
            Mix::L2Load => self.in_l2,
            Mix::MemoryLoad => self.beyond,
            _ => L1,
        };
        Load::new(mix, bytes)
    }
}

/// CPUs that share a core though the topology does not say so, and work that took another time alone.
pub(super) fn warnings(contention: &[Contention]) -> Vec<Warning> {
    let is_hidden = |found: &&Contention| {
        let multiplies = found.mix == Mix::IntegerMultiply && found.beside == Mix::IntegerMultiply;
        multiplies && found.kind != Kind::SmtSibling && Relation::of(found.slowdown()) == Relation::Twins
    };
    let hidden = contention.iter().filter(is_hidden).map(|found| {
        let [one, two] = found.cpus;
        let text = format!(
            "CPUs {one} and {two} halve each other's multiplications: they share a core of the host, or the host gives both one CPU, \
             whatever the topology says"
        );
        Warning::new("hidden-siblings", text)
    });
    let is_unsteady = |found: &&Contention| {
        let moved = |again: model::Estimate| again.low > 1.0 + STEADY || again.high < 1.0 - STEADY;
        found.again.is_some_and(moved)
    };
    let count = contention.iter().filter(is_unsteady).count();
    let unsteady = (count > 0).then(|| {
        let text = format!(
            "in {count} of {} cases of contention the same work alone took another time afterwards: measure again on a quieter machine",
            contention.len()
        );
        Warning::new("contention-unsteady", text)
    });
    hidden.chain(unsteady).collect()
}

#[cfg(test)]
mod tests {
    use model::Estimate;
    use model::migration::{Contention, Mix};
    use model::placement::Kind;

    use super::warnings;

    fn found(kind: Kind, share: f64, again: f64) -> Contention {
        let estimate = |median: f64| {
            Some(Estimate {
                median,
                low: median - 0.01,
                high: median + 0.01,
                samples: 9,
            })
        };
        Contention {
            kind,
            cpus: [0, 1],
            mix: Mix::IntegerMultiply,
            beside: Mix::IntegerMultiply,
            share: estimate(share),
            again: estimate(again),
        }
    }

    #[test]
    fn cpus_that_halve_each_other_are_siblings_whatever_the_topology_says() {
        let codes = |found: Contention| {
            warnings(&[found])
                .into_iter()
                .map(|warning| warning.code)
                .collect::<Vec<_>>()
        };
        assert_eq!(codes(found(Kind::SameLlc, 0.51, 1.0)), ["hidden-siblings"]);
        assert!(codes(found(Kind::SmtSibling, 0.51, 1.0)).is_empty());
        assert!(codes(found(Kind::SameLlc, 0.98, 1.0)).is_empty());
        // Loads that slow each other down may share a cache only.
        let loads = Contention {
            mix: Mix::L2Load,
            ..found(Kind::SameLlc, 0.51, 1.0)
        };
        assert!(codes(loads).is_empty());
        assert_eq!(codes(found(Kind::SameLlc, 0.98, 1.2)), ["contention-unsteady"]);
    }
}
