//! Which THP size suits a program: what the arms of sizes come to together.

use model::compare::{Compare, Judged, Verdict};
use model::{Bytes, PageKind};

use super::amounts::{gain, reference};
use draw::or_empty;

/// The arms of THP sizes, each with its size.
pub(super) fn of(compare: &Compare) -> impl Iterator<Item = (&str, Bytes)> {
    let names = compare.arms.iter().map(|arm| arm.name.as_str());
    names.filter_map(|name| Some((name, name.parse::<PageKind>().ok()?.mthp()?)))
}

/// The verdicts of sizes by the first metric; none of fewer than two sizes.
fn judged(compare: &Compare) -> Vec<&Judged> {
    let Some(control) = compare.controls.first().filter(|_| of(compare).count() > 1) else {
        return Vec::new();
    };
    let judged = |name: &str| {
        let mut verdicts = compare.verdicts.iter();
        verdicts.find(|judged| judged.arm == name && judged.metric == control.metric)
    };
    of(compare).filter_map(|(name, _)| judged(name)).collect()
}

/// The one that gains most.
fn best<'a>(judged: &[&'a Judged]) -> Option<&'a Judged> {
    let better = judged.iter().filter(|judged| judged.verdict == Verdict::Better);
    better
        .max_by(|one, two| one.ratio.unwrap_or(0.0).total_cmp(&two.ratio.unwrap_or(0.0)))
        .copied()
}

/// Does another size gain more than this arm?
pub(super) fn is_outdone(compare: &Compare, name: &str) -> bool {
    let judged = judged(compare);
    judged.iter().any(|judged| judged.arm == name) && best(&judged).is_some_and(|best| best.arm != name)
}

/// The size that gains most by the first metric, and those that are not told apart from it.
pub(super) fn headline(compare: &Compare) -> Option<String> {
    let judged = judged(compare);
    let sizes = judged.len();
    let metric = &judged.first()?.metric;
    let Some(best) = best(&judged) else {
        let is_told = |judged: &&Judged| matches!(judged.verdict, Verdict::NoDifference | Verdict::Worse);
        let none = format!(
            "Of {sizes} THP sizes none is better than {} in {metric}.",
            reference(compare)
        );
        return judged.iter().all(is_told).then_some(none);
    };
    let is_near = |other: &&&Judged| other.arm != best.arm && other.high >= best.low;
    let near: Vec<&str> = judged
        .iter()
        .filter(is_near)
        .map(|judged| judged.arm.as_str())
        .collect();
    let near = match &near[..] {
        [] => String::new(),
        near => format!("; the intervals of {} overlap with its own", near.join(", ")),
    };
    let missed = judged
        .iter()
        .filter(|judged| judged.verdict == Verdict::NotInEffect)
        .count();
    let missed = or_empty((missed > 0).then(|| format!(" ({missed} not in effect)")));
    let gain = gain(best.ratio, best.low, best.high);
    Some(format!(
        "Of {sizes} THP sizes{missed} {} gains most in {metric}: {gain}{near}.",
        best.arm
    ))
}

#[cfg(test)]
mod tests {
    use model::compare::{Compare, Verdict};

    use super::{headline, is_outdone};
    use crate::render::prove::compare::tests::compare;
    use crate::show::Show;

    /// Arms of sizes with their ratio, interval and verdict.
    fn sized(arms: &[(&str, [f64; 3], Verdict)]) -> Compare {
        let mut made = compare(Verdict::Better);
        let (arm, judged) = (made.arms.pop().expect("an arm"), made.verdicts.remove(0));
        for (name, [low, ratio, high], verdict) in arms {
            let mut arm = arm.clone();
            arm.name = (*name).to_owned();
            arm.kind = name.parse().ok();
            made.arms.push(arm);
            let mut judged = judged.clone();
            judged.arm = (*name).to_owned();
            (judged.low, judged.ratio, judged.high) = (Some(*low), Some(*ratio), Some(*high));
            judged.verdict = *verdict;
            made.verdicts.push(judged);
        }
        made
    }

    #[test]
    fn the_size_that_gains_most_stands_first_with_those_that_may_be_as_good() {
        let mut made = sized(&[
            ("mthp-16K", [1.01, 1.02, 1.03], Verdict::Better),
            ("mthp-64K", [1.08, 1.10, 1.13], Verdict::Better),
            ("mthp-1M", [0.9, 1.2, 1.3], Verdict::NotInEffect),
            ("mthp-2M", [1.09, 1.12, 1.14], Verdict::Better),
        ]);
        made.verdicts[2].high = None;
        assert_eq!(
            made.headlines()[0],
            "Of 4 THP sizes (1 not in effect) mthp-2M gains most in wall: +12.0 % (+9.0 % to +14.0 %); the intervals of mthp-64K overlap with its own."
        );
        let table = &made.sheets()[0];
        assert!(
            table.columns.iter().any(|column| column.name.contains("page faults")),
            "one table has it all"
        );
        assert!(is_outdone(&made, "mthp-64K") && !is_outdone(&made, "mthp-2M") && !is_outdone(&made, "base"));
    }

    #[test]
    fn where_no_size_is_better_that_is_the_answer_and_one_size_needs_none() {
        let none = [0.97, 1.0, 1.02];
        let of = |second| sized(&[("mthp-16K", none, Verdict::NoDifference), ("mthp-64K", none, second)]);
        let none_is = headline(&of(Verdict::Worse));
        assert_eq!(
            none_is.as_deref(),
            Some("Of 2 THP sizes none is better than base in wall.")
        );
        assert_eq!(headline(&of(Verdict::Inconclusive)), None, "it may be");
        assert_eq!(headline(&sized(&[("mthp-64K", none, Verdict::Better)])), None);
        assert_eq!(headline(&compare(Verdict::Better)), None);
    }
}
