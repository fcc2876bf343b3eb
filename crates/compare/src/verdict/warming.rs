//! Was a server still warming up? Trends over the loads between its start and its end. Pure.

use model::Warning;
use model::compare::{Arm, Compare, Metric};

use crate::interim::LEAST;
use crate::paired::{self, Block};

/// Of fewer starts than a test takes, all have to agree on a trend of this size.
const CLEAR: f64 = 0.05;
/// So few starts cannot agree by more than chance.
const FEW: usize = 3;
/// What a page fault takes at least.
const SECONDS_PER_FAULT: f64 = 1e-6;

pub(crate) fn all(compare: &Compare) -> Vec<Warning> {
    let Some(loads) = compare.design.loads else {
        return Vec::new();
    };
    if loads.warm_up == 0 && loads.counted == 1 {
        let text = "each load was the first of its server, whose caches may have been cold: --load-warm-up 1 runs one before it";
        return vec![Warning::new("cold-loads", text.to_owned())];
    }
    let smallest = compare.design.smallest_effect;
    let metrics = || compare.controls.iter().map(|control| control.metric.as_str());
    let warming = compare
        .arms
        .iter()
        .flat_map(|arm| metrics().filter_map(move |metric| still_warming(arm, metric, smallest)));
    let touching = compare.arms.iter().filter_map(|arm| still_touching(arm, smallest));
    warming.chain(touching).collect()
}

fn still_warming(arm: &Arm, metric: &str, smallest: f64) -> Option<Warning> {
    let trend = trend(arm, metric).filter(|trend| trend.abs() > smallest.ln_1p())?;
    let text = format!(
        "{metric} of `{}` moved by {:+.1} % from the first load of a start to the last, beyond chance: it was still warming up \
         (more loads that do not count: --load-warm-up)",
        arm.name,
        trend.exp_m1() * 100.0
    );
    Some(Warning::new("still-warming", text))
}

/// Memory that is touched for the first time costs faults and system time, which end.
fn still_touching(arm: &Arm, smallest: f64) -> Option<Warning> {
    let falls = |metric: Metric, seconds: f64| {
        trend(arm, metric.name()).filter(|trend| *trend < 0.0)?;
        let [first, last, cpu] = [ends(arm, metric, 0)?, ends(arm, metric, 1)?, ends(arm, Metric::Cpu, 1)?];
        let is_worth = (first - last) * seconds > smallest * cpu;
        is_worth.then(|| (metric, (1.0 - last / first) * 100.0))
    };
    let (metric, fell) = falls(Metric::System, 1.0).or_else(|| falls(Metric::Faults, SECONDS_PER_FAULT))?;
    let what = match metric {
        Metric::System => "system time",
        _ => "the number of page faults",
    };
    let text = format!(
        "{what} of `{}` fell by {fell:.0} % from the first load of a start to the last: it still touched memory for the first time \
         (more loads that do not count: --load-warm-up)",
        arm.name
    );
    Some(Warning::new("still-touching", text))
}

/// The median over starts of the first load's value (0) or the last one's (1).
fn ends(arm: &Arm, metric: Metric, end: usize) -> Option<f64> {
    let values: Vec<f64> = pairs(arm, metric.name()).map(|pair| pair[end]).collect();
    stats::median(&values)
}

/// First and last load of each start.
fn pairs<'a>(arm: &'a Arm, metric: &'a str) -> impl Iterator<Item = [f64; 2]> + 'a {
    let pair = move |loads: &[_]| {
        let of =
            |load: &std::collections::BTreeMap<String, f64>| load.get(metric).copied().filter(|value| *value > 0.0);
        Some([of(loads.first()?)?, of(loads.last()?)?])
    };
    let several = arm.counted().filter(|run| run.loads.len() > 1);
    several.filter_map(move |run| pair(&run.loads))
}

/// How far the last load of a start lies from the first, as a logarithm; `None` where that may be chance.
fn trend(arm: &Arm, metric: &str) -> Option<f64> {
    let blocks: Vec<Block> = pairs(arm, metric)
        .map(|[first, last]| Block {
            own: last.ln(),
            peers: vec![first.ln()],
        })
        .collect();
    let shifts: Vec<f64> = blocks.iter().map(|block| block.own - block.peers[0]).collect();
    let center = stats::median(&shifts)?;
    let agree = shifts.iter().all(|shift| shift * center > 0.0);
    let is_clear = blocks.len() >= FEW && agree && center.abs() > CLEAR;
    let is_likely = blocks.len() >= LEAST as usize && paired::p_value(&blocks) <= paired::REJECTED;
    (is_clear || is_likely).then_some(center)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::compare::{Arm, Metric, Run};
    use model::{Backing, Bytes, PageKind};

    use super::{still_touching, still_warming, trend};
    use crate::proof::effect;

    /// Starts with two loads each; of a load: operations, system and CPU time.
    fn arm(starts: &[[[f64; 3]; 2]]) -> Arm {
        let backing: Backing = [(PageKind::Base, Bytes::mib(64))].into_iter().collect();
        let load = |[ops, system, cpu]: [f64; 3]| {
            let values = [("ops", ops), (Metric::System.name(), system), (Metric::Cpu.name(), cpu)];
            BTreeMap::from(values.map(|(name, value)| (name.to_owned(), value)))
        };
        let mut runs: Vec<_> = starts
            .iter()
            .map(|loads| model::compare::Run {
                loads: loads.map(load).to_vec(),
                ..Run::bare([], Ok(backing.clone()))
            })
            .collect();
        let (coverage, took_effect) = effect(Some(PageKind::Base), &mut runs, 0.5);
        Arm {
            name: "base".to_owned(),
            technique: String::new(),
            kind: Some(PageKind::Base),
            place: None,
            took_effect,
            coverage,
            runs,
        }
    }

    #[test]
    fn a_rise_over_the_loads_of_each_start_is_warming_up_and_noise_is_not() {
        let cold = arm(&[[[100.0, 0.5, 2.0], [130.0, 0.2, 2.0]]; 3]);
        let warning = still_warming(&cold, "ops", 0.01).expect("a trend");
        assert!(
            warning.code == "still-warming" && warning.text.contains("+30.0 %"),
            "{}",
            warning.text
        );
        let touching = still_touching(&cold, 0.01).expect("a fall");
        assert!(
            touching.code == "still-touching" && touching.text.contains("system time of `base` fell by 60 %"),
            "{}",
            touching.text
        );
        let steady: Vec<_> = (0..12)
            .map(|start| {
                let up = if start % 2 == 0 { 1.04 } else { 0.97 };
                [[100.0, 0.5, 2.0], [100.0 * up, 0.5 / up, 2.0]]
            })
            .collect();
        let steady = arm(&steady);
        assert!(still_warming(&steady, "ops", 0.01).is_none() && still_touching(&steady, 0.01).is_none());
    }

    #[test]
    fn a_small_trend_takes_many_starts_to_be_seen_and_one_below_what_counts_is_no_matter() {
        let start = [[100.0, 0.5, 2.0], [103.0, 0.5, 2.0]];
        assert_eq!(trend(&arm(&[start; 4]), "ops"), None);
        assert!(trend(&arm(&[start; 8]), "ops").is_some());
        assert!(still_warming(&arm(&[start; 8]), "ops", 0.05).is_none());
    }
}
