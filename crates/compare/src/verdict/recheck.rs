//! A comparison judged anew from the runs in its result: by the same rules, with other metrics or another smallest effect. Pure.

use std::collections::BTreeSet;

use model::compare::{Compare, Judged, Metric};

use crate::judge::{self, Rules};
use crate::metric::Wanted;
use crate::{parts, proof, warnings};

/// How far a ratio may lie from the one that was kept: numbers are written in full.
const SAME: f64 = 1e-6;

/// Judges the runs anew; the proof of each run is looked at again, too.
///
/// # Errors
/// What in the result does not add up, or which metric its runs do not have.
pub fn recheck(kept: &Compare, metrics: &[String], smallest_effect: Option<f64>) -> Result<crate::Outcome, String> {
    adds_up(kept)?;
    let mut compare = kept.clone();
    for arm in &mut compare.arms {
        (arm.coverage, arm.took_effect) = proof::effect(arm.kind, &mut arm.runs, compare.design.least_coverage);
    }
    let same = judged(&compare, &known(kept), compare.design.smallest_effect);
    must_be_kept(kept, &same.0)?;
    let smallest = smallest_effect.unwrap_or(compare.design.smallest_effect);
    let names: Vec<String> = match metrics {
        [] => kept.controls.iter().map(|control| control.metric.clone()).collect(),
        metrics => metrics.to_vec(),
    };
    let wanted = names
        .iter()
        .map(|name| wanted(kept, name))
        .collect::<Result<Vec<_>, _>>()?;
    (compare.verdicts, compare.controls) = judged(&compare, &wanted, smallest);
    compare.design.smallest_effect = smallest;
    compare.parts = parts::of_runs(&compare, level(&compare));
    let warnings = warnings::all(&compare);
    Ok((compare, warnings))
}

/// What the last look might spend; without one, everything.
fn level(compare: &Compare) -> f64 {
    let design = &compare.design;
    design.spent.last().map_or(design.alpha, |look| look.level)
}

fn judged(compare: &Compare, wanted: &[Wanted], smallest_effect: f64) -> (Vec<Judged>, Vec<model::compare::Control>) {
    let rules = Rules {
        level: level(compare),
        smallest_effect,
        per_start: compare.design.per_start.max(1),
    };
    judge::judge(&compare.arms, wanted, rules)
}

/// The metrics that were judged.
fn known(kept: &Compare) -> Vec<Wanted> {
    let names = kept.controls.iter().map(|control| control.metric.as_str());
    names.filter_map(|name| wanted(kept, name).ok()).collect()
}

/// A metric with the direction in which it is better: that of one of one's own shows in the ratios that were kept.
fn wanted(kept: &Compare, name: &str) -> Result<Wanted, String> {
    let has = kept.arms.iter().any(|arm| !arm.values(name).is_empty());
    if !has {
        return Err(format!("no run that counts has the metric `{name}`"));
    }
    let with = |higher| Wanted {
        name: name.to_owned(),
        higher,
    };
    if Metric::named(name).is_some() {
        return Ok(with(false));
    }
    let ratio = |judged: &[Judged]| {
        let of_metric = judged.iter().filter(|judged| judged.metric == name);
        of_metric
            .filter_map(|judged| judged.ratio)
            .find(|ratio| (ratio - 1.0).abs() > SAME)
    };
    let (lower, _) = judged(kept, &[with(false)], kept.design.smallest_effect);
    let is_lower = ratio(&kept.verdicts)
        .zip(ratio(&lower))
        .is_some_and(|(kept, lower)| is_same(kept, lower));
    Ok(with(!is_lower))
}

fn is_same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < SAME
}

/// Every arm once in every block that was finished, the reference twice, and each run in a turn of its own.
fn adds_up(compare: &Compare) -> Result<(), String> {
    let (alpha, smallest_effect) = (compare.design.alpha, compare.design.smallest_effect);
    if ![alpha, smallest_effect].iter().all(|share| (0.0..=1.0).contains(share)) {
        return Err(format!(
            "expected an error rate (alpha) and a smallest effect of 0 to 1, got {alpha} and {smallest_effect}"
        ));
    }
    let blocks = compare.design.blocks.saturating_mul(compare.design.per_start.max(1));
    let mut turns = BTreeSet::new();
    for (at, arm) in compare.arms.iter().enumerate() {
        let refused = |why: String| Err(format!("the arm {} {why}", arm.name));
        let slots: BTreeSet<(u32, bool)> = arm.runs.iter().map(|run| (run.block, run.again)).collect();
        if slots.len() < arm.runs.len() {
            return refused("has two runs in the same place of a block".to_owned());
        }
        let per_block: &[bool] = if at == 0 { &[false, true] } else { &[false] };
        let is_there = |block: u32| per_block.iter().all(|again| slots.contains(&(block, *again)));
        let missing = (0..blocks).find(|block| !is_there(*block));
        if let Some(block) = missing {
            return refused(format!("lacks a run in block {} of {blocks}", block + 1));
        }
        if let Some(run) = arm.runs.iter().find(|run| !turns.insert(run.turn)) {
            return Err(format!("two runs have turn {}", run.turn + 1));
        }
        let mut metrics = arm.runs.iter().flat_map(|run| &run.metrics);
        if let Some((name, _)) = metrics.find(|(_, value)| !value.is_finite()) {
            return refused(format!("has a run whose {name} is no number"));
        }
    }
    Ok(())
}

fn gain(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "none".to_owned(), |ratio| format!("{:+.1} %", 100.0 * (ratio - 1.0)))
}

/// The verdicts that were kept are those that the runs give.
fn must_be_kept(kept: &Compare, judged: &[Judged]) -> Result<(), String> {
    for before in &kept.verdicts {
        let now = judged
            .iter()
            .find(|now| (&now.arm, &now.metric) == (&before.arm, &before.metric));
        let same = match (now.and_then(|now| now.ratio), before.ratio) {
            (Some(now), Some(before)) => is_same(now, before),
            (now, before) => now == before,
        };
        if !same {
            return Err(format!(
                "the gain of {} in {} is not the one that its runs give: {} is kept, they give {}",
                before.arm,
                before.metric,
                gain(before.ratio),
                gain(now.and_then(|now| now.ratio))
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::PageKind;
    use model::compare::{Compare, Method, Metric, Verdict};

    use super::recheck;
    use crate::simulated::{self, Simulated};
    use crate::{Spec, Wanted, run};

    fn made() -> Compare {
        let kinds = [PageKind::Base, PageKind::Thp];
        let wanted = Wanted {
            name: Metric::Cpu.name().to_owned(),
            higher: false,
        };
        let spec = Spec {
            most: 12,
            ..simulated::spec(Method::Runs, &kinds, wanted)
        };
        let mut executor = Simulated::new(&[1.0, 1.0 / 1.2], &kinds, 3);
        run(&spec, Vec::new(), &mut executor, &mut (), &())
            .expect("simulated")
            .0
    }

    #[test]
    fn the_same_rules_give_the_same_verdicts_and_others_may_be_asked_for() {
        let kept = made();
        let (again, _) = recheck(&kept, &[], None).expect("it adds up");
        assert_eq!((&again.verdicts, &again.controls), (&kept.verdicts, &kept.controls));
        let (wall, _) = recheck(&kept, &["wall".to_owned()], None).expect("it adds up");
        assert_eq!(wall.verdicts[0].metric, "wall");
        let (wide, _) = recheck(&kept, &[], Some(0.5)).expect("it adds up");
        assert_eq!(
            (kept.verdicts[0].verdict, wide.verdicts[0].verdict),
            (Verdict::Better, Verdict::NoDifference)
        );
        assert!(
            recheck(&kept, &["speed".to_owned()], None)
                .expect_err("no such metric")
                .contains("`speed`")
        );
    }

    #[test]
    fn runs_that_do_not_add_up_are_refused() {
        let error = |change: &dyn Fn(&mut Compare)| {
            let mut kept = made();
            change(&mut kept);
            recheck(&kept, &[], None).expect_err("refused")
        };
        assert!(error(&|kept| drop(kept.arms[1].runs.pop())).contains("lacks a run in block 12 of 12"));
        assert!(error(&|kept| kept.arms[1].runs[3].turn = 0).contains("two runs have turn 1"));
        assert!(
            error(&|kept| kept.arms[0].runs[2] = kept.arms[0].runs[0].clone()).contains("two runs in the same place")
        );
        let faked = error(&|kept| kept.verdicts[0].ratio = Some(2.0));
        assert!(faked.contains("+100.0 % is kept, they give +"), "{faked}");
        assert!(
            error(&|kept| kept.design.smallest_effect = -3.0).contains("a smallest effect of 0 to 1, got 0.05 and -3")
        );
        assert!(error(&|kept| kept.design.alpha = 5.0).contains("got 5 and"));
    }
}
