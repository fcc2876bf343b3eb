//! Why a design was taken and why a verdict is what it is, in words.

use compare::interim::LEAST;
use model::Reading;
use model::compare::{Arm, Because, Compare, Judged, Why};

use draw::{counted, or_empty};

/// Why the runs were arranged so, as a clause.
pub(super) fn because(reason: &Because) -> String {
    const PAGES: &str = "and its memory can go from base pages to huge ones and back without a restart";
    match reason {
        Because::Asked => "it was asked for".to_owned(),
        Because::Resumed => "that is how the finished ones were made".to_owned(),
        Because::Running => {
            "a process that runs already can be compared in place: no restart, the same data at the same addresses"
                .to_owned()
        }
        Because::Counters => format!("what is judged goes up while the program works, {PAGES}"),
        Because::Loads => format!("the load can be run on one server again and again, {PAGES}"),
        Because::CountersOfArms => "what is judged can be read of each arm while its program runs".to_owned(),
        Because::Switches => "the switches of THP sizes are the machine's, for all programs that are alive".to_owned(),
        Because::Load => "a load has a beginning and an end".to_owned(),
        Because::AtEnd { metric } => format!("`{metric}` is known when a run has ended"),
        Because::Tried { method, error } => format!("{} were tried: {error}", method.title()),
    }
}

/// Why a verdict is what it is, as a clause.
pub(crate) fn why(compare: &Compare, judged: &Judged) -> String {
    let smallest = compare.design.smallest_effect * 100.0;
    let (metric, pairs) = (&judged.metric, judged.pairs as usize);
    let control = compare.controls.iter().find(|control| control.metric == *metric);
    let own = beyond(control.and_then(|control| control.ratio));
    let spent = compare.design.spent.last();
    let level = spent.map_or(compare.design.alpha, |look| look.level);
    let arm = compare.arms.iter().find(|arm| arm.name == judged.arm);
    match judged.why {
        Why::Clear => format!("likely, above {smallest:.1} %, and above the reference's own {own:.1} %"),
        Why::Small => format!("likely, but below the smallest effect of {smallest:.1} %"),
        Why::Noise => format!("the reference differs from itself by {own:.1} %, which is no less"),
        Why::Chance => {
            let most = beyond(judged.low).max(beyond(judged.high));
            format!("a difference within {most:.1} % cannot be distinguished from chance")
        }
        Why::OneOfMany => format!(
            "its interval by itself leaves out none, but of all arms, metrics and looks together one may do so by chance: p is \
             {:.4}, and may be {level:.4}",
            judged.p.unwrap_or_default()
        ),
        Why::StrictLook => format!(
            "so few pairs cannot show a difference at the {:.2} % that this look may spend",
            level * 100.0
        ),
        Why::FewStarts => few_starts(pairs),
        Why::NoNumber => format!(
            "{pairs} of {} runs have `{metric}` as a positive number beside the reference's",
            arm.map_or(0, |arm| arm.counted().count())
        ),
        Why::FewPairs => format!(
            "{} of runs: fewer than {LEAST} cannot show a difference at 5 %",
            counted(pairs, "pair")
        ),
        Why::NotInEffect => or_empty(arm.map(not_in_effect)),
        Why::EffectUnread => {
            let unread = or_empty(arm.and_then(|arm| arm.took_effect.unread()));
            format!("whether it took effect is not known: {unread}")
        }
        Why::Reference => format!("the reference {}", or_empty(compare.arms.first().map(not_in_effect))),
    }
}

fn few_starts(pairs: usize) -> String {
    let started = counted(pairs, "time");
    format!(
        "exploratory, as every process has a speed of its own: each program was started {started}, and a verdict takes {LEAST} starts \
         (more time: --budget)"
    )
}

/// By how many percent a ratio is away from 1, upwards or downwards.
fn beyond(ratio: Option<f64>) -> f64 {
    ratio.map_or(0.0, |ratio| ratio.ln().abs().exp_m1() * 100.0)
}

/// How many of its runs count, where some do and some do not.
fn in_part(arm: &Arm) -> Option<String> {
    let (counted, all) = (arm.counted().count(), arm.runs.len());
    let is_part = counted > 0 && counted < all;
    is_part.then(|| {
        format!(
            "was in effect in {counted} of {all} runs only, and more than one in four that do not count are too many"
        )
    })
}

fn not_in_effect(arm: &Arm) -> String {
    if let Some(part) = in_part(arm) {
        return part;
    }
    let kind = or_empty(arm.kind);
    let is_about_code = arm.runs.iter().any(|run| run.text.is_some());
    let what = if is_about_code { "code" } else { "memory" };
    match &arm.coverage {
        Reading::Known(share) => {
            let note = arm.runs.last().and_then(|run| run.notes.last());
            let note = or_empty(note.map(|note| format!(" ({note})")));
            format!(
                "did not take effect: {:.1} % of the {what} was on {kind} pages{note}",
                share.median * 100.0
            )
        }
        Reading::Unread(why) => format!("may not have taken effect: {why}"),
    }
}
