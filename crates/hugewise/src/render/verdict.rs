//! The verdict of a checkup in sentences: the answer first, then the numbers behind it.

use model::headline::{Percent, Shows};
use model::verdict::{Choice, Coverage, Doubt, Limits, PoolPages, Saved, Saving, Verdict};
use model::{Cause, PageKind, Reading};

use super::axis::number;
use super::words::{counted, processes};

/// What huge pages save, which kind to choose, and what limits their use now.
pub fn sentences(verdict: &Verdict) -> [String; 3] {
    let Verdict {
        saving, choice, limits, ..
    } = verdict;
    [saves(saving), chosen(choice), limited(limits)]
}

fn saves(saving: &Saving) -> String {
    match saving {
        Saving::Saves { at } => judged(at, "save", Shows::Saves),
        Saving::Costs { at } => judged(at, "cost", Shows::Costs),
        Saving::NoDifference { at } => judged(at, "make no difference", Shows::NoDifference),
        Saving::CannotTell { at, why, seconds } => {
            let long = seconds.map_or(String::new(), |seconds| {
                format!("; about {} of measuring would tell (--budget)", rounded(seconds))
            });
            let open: Vec<String> = at
                .iter()
                .filter(|at| at.shows == Shows::CannotTell)
                .map(interval_at)
                .collect();
            format!(
                "Whether huge pages save time here cannot be told: with {} the saving is {} (95 % CI). {}{long}.",
                at.first().map_or(PageKind::Thp, |at| at.kind),
                joined(&open),
                doubt(*why)
            )
        }
        Saving::NothingToCompare { why } => {
            let why = why.as_deref();
            let why = why.unwrap_or("base pages and a larger kind must both be selected");
            format!(
                "The saving by huge pages is not known: base pages and a larger kind were not both measured ({}).",
                why.trim_end_matches('.')
            )
        }
        Saving::NotMeasured { why } => format!("The saving by huge pages was not measured: {why}."),
    }
}

/// What is shown first, then what other working sets show.
fn judged(at: &[Saved], verb: &str, first: Shows) -> String {
    let of = |shows| at.iter().filter(move |at| at.shows == shows);
    let kind = at.first().map_or(PageKind::Thp, |at| at.kind);
    let main: Vec<String> = of(first)
        .map(|at| match first {
            Shows::Saves => format!("{} at {}", percent(&at.saved), at.bytes),
            Shows::Costs => format!("{} at {}", percent(&negated(&at.saved)), at.bytes),
            Shows::NoDifference | Shows::CannotTell => interval_at(at),
        })
        .collect();
    let main = match first {
        Shows::Saves | Shows::Costs => format!(
            "Huge pages {verb} {} of the time of a random read ({kind}, 95 % CI)",
            joined(&main)
        ),
        Shows::NoDifference | Shows::CannotTell => {
            format!(
                "Huge pages {verb} to a random read: with {kind} the saving is {} (95 % CI)",
                joined(&main)
            )
        }
    };
    let others = [
        (Shows::NoDifference, "no difference"),
        (Shows::Costs, "a loss"),
        (Shows::CannotTell, "cannot be told"),
    ];
    let others = others
        .into_iter()
        .filter(|(shows, _)| *shows != first)
        .filter_map(|(shows, name)| {
            let list: Vec<String> = of(shows).map(interval_at).collect();
            (!list.is_empty()).then(|| format!("; {name}: {}", joined(&list)))
        });
    format!("{main}{}.", others.collect::<String>())
}

fn negated(saved: &Percent) -> Percent {
    Percent {
        percent: -saved.percent,
        low: -saved.high,
        high: -saved.low,
    }
}

/// `8.1 % (7.2 to 9)`.
fn percent(saved: &Percent) -> String {
    format!(
        "{} % ({} to {})",
        number(saved.percent),
        number(saved.low),
        number(saved.high)
    )
}

/// An interval without a number in its middle, which would look surer than it is.
fn interval_at(at: &Saved) -> String {
    format!(
        "{} to {} % at {}",
        number(at.saved.low),
        number(at.saved.high),
        at.bytes
    )
}

fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn doubt(why: Doubt) -> String {
    match why {
        Doubt::FewDraws { draws } => {
            format!("There was time to take memory {draws} times only: the machine brings it in slowly, or is busy")
        }
        Doubt::DrawsDiffer { least, most } => format!(
            "Each time that memory was taken anew showed another saving, from {} to {} %: neighbors use the caches",
            number(least),
            number(most)
        ),
    }
}

fn rounded(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{:.0} s", (seconds / 10.0).ceil() * 10.0)
    } else {
        format!("{:.0} min", (seconds / 60.0).ceil())
    }
}

fn chosen(choice: &Choice) -> String {
    match choice {
        Choice::Best { kind } => format!("{kind} saves most{}.", effort(*kind)),
        Choice::Enough {
            kind,
            best,
            at_most_percent,
        } => format!(
            "{kind} is enough: it takes at most {} % more time than {best}{}.",
            number(*at_most_percent),
            effort(*kind)
        ),
        Choice::Open {
            best,
            rival,
            more_percent,
        } => format!(
            "{best} saved most, but {rival} may be as good: it takes {} to {} % more time (95 % CI).",
            number(more_percent.low),
            number(more_percent.high)
        ),
        Choice::Only { kind } => format!("{kind} is the only huge page kind that was measured."),
        Choice::NoDifference => "No huge page kind is shown to be better than another.".to_owned(),
        Choice::Unknown => "The best huge page kind is not known.".to_owned(),
    }
}

fn effort(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Hugetlb(_) => "; it needs a reserved pool and a program that asks for it",
        PageKind::Thp | PageKind::Mthp(_) => " and needs no reserved pool",
        PageKind::Base => "",
    }
}

fn limited(limits: &Limits) -> String {
    let coverage = limits.coverage.as_ref().map(covered);
    let sentences = [Some(policy(&limits.thp)), Some(pools(&limits.pools)), coverage];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn policy(thp: &Reading<String>) -> String {
    match thp {
        Reading::Unread(why) if why.unread == Cause::Absent => format!("THP is not available ({why})."),
        Reading::Unread(why) => format!("The THP policy could not be read ({why})."),
        Reading::Known(policy) => match policy.as_str() {
            "always" => "THP is enabled for every program.".to_owned(),
            "madvise" => "THP is limited to programs that request it with madvise.".to_owned(),
            "never" => "THP is disabled.".to_owned(),
            other => format!("The THP policy is `{other}`."),
        },
    }
}

fn pools(pools: &Reading<Vec<PoolPages>>) -> String {
    let pools = match pools {
        Reading::Known(pools) => pools,
        Reading::Unread(why) if why.unread == Cause::Absent => {
            return format!("There are no hugetlb pools ({why}).");
        }
        Reading::Unread(why) => return format!("The hugetlb pools could not be read ({why})."),
    };
    if let Some(why) = pools.iter().find_map(|pool| pool.pages.unread()) {
        return format!("The size of a hugetlb pool could not be read ({why}).");
    }
    let filled: Vec<String> = pools.iter().filter_map(filled).collect();
    if filled.is_empty() {
        "No hugetlb pool has any page.".to_owned()
    } else {
        format!("The hugetlb pools have {}.", filled.join(" and "))
    }
}

fn filled(pool: &PoolPages) -> Option<String> {
    let &pages = pool.pages.known().filter(|&&pages| pages > 0)?;
    let free = pool.free.as_ref().map(|free| format!("{free} free"));
    let pages = counted(usize::try_from(pages).ok()?, "page");
    Some(format!("{pages} of {} ({free})", pool.size.exact()))
}

fn covered(coverage: &Coverage) -> String {
    format!(
        "Huge pages back {} % of the {} resident in {}.",
        number(coverage.percent),
        coverage.resident_bytes,
        processes(coverage.processes)
    )
}
