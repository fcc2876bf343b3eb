//! What weakens a result, in the words that measurements of many points share. Pure.

use std::time::Duration;

use model::Warning;

/// Of points by their names: how far two visits to each differ on average. Those that differ by more than a share were not made under
/// the same conditions.
pub(crate) fn rounds_disagree(
    apart: impl IntoIterator<Item = (String, f64)>,
    points: usize,
    most: f64,
) -> Option<Warning> {
    let unsteady: Vec<(String, f64)> = apart.into_iter().filter(|(_, apart)| *apart > most).collect();
    let (worst, apart) = unsteady.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!(
        "at {} of {points} points two visits differ by more than {:.0} % on average, most of all {worst} ({:.0} %): other programs use these \
         CPUs, caches or memory too; repeat on a quieter machine, or compare runs before believing a small difference",
        unsteady.len(),
        most * 100.0,
        apart * 100.0
    );
    Some(Warning::new("rounds-disagree", text))
}

/// Of points that did not converge, by their names.
pub(crate) fn not_converged(open: impl IntoIterator<Item = String>, points: usize) -> Option<Warning> {
    let open: Vec<String> = open.into_iter().collect();
    let first = open.first()?;
    let text = format!(
        "{} of {points} points did not converge, such as {first}: they have a bound instead of a number; give more time with --budget",
        open.len()
    );
    Some(Warning::new("not-converged", text))
}

/// Most points have an interval that is wider than so many percent.
pub(crate) fn short_budget(open: usize, points: usize, percent: u32, budget: Duration) -> Option<Warning> {
    (2 * open > points).then(|| {
        let seconds = budget.as_secs_f64();
        let text = format!(
            "{open} of {points} points did not come within {percent} % in {seconds:.1} s; give more time with --budget"
        );
        Warning::new("short-budget", text)
    })
}
