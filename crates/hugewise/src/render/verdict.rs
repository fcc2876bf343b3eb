//! The verdict of a checkup in sentences: the answer first, then the numbers behind it.

use model::verdict::{Choice, Coverage, KindSaved, Limits, PoolPages, Saved, Saving, Verdict};
use model::{Cause, PageKind, Reading};

use super::axis::number;
use super::words::{counted, processes};

/// What huge pages save, which kind to choose, and what limits their use now.
pub fn sentences(verdict: &Verdict) -> [String; 3] {
    let Verdict {
        saving, choice, limits, ..
    } = verdict;
    [saves(saving), chosen(choice, saving), limited(limits)]
}

fn saves(saving: &Saving) -> String {
    match saving {
        Saving::Saves { saved, from_bytes, .. } => {
            let is_long = *from_bytes < saved.bytes;
            let from = is_long.then(|| format!(" The saving lasts from a working set of {from_bytes} on."));
            let from = from.unwrap_or_default();
            format!(
                "Huge pages save {} % of the time of {} at a working set of {} ({}): {} instead of {} ns.{from}",
                number(saved.percent),
                access(saved),
                saved.bytes,
                interval(saved),
                number(saved.ns),
                number(saved.base_ns)
            )
        }
        Saving::NoDifference { saved } => format!(
            "Huge pages show no lasting saving up to a working set of {}. There {} saved {} % ({}).",
            saved.bytes,
            saved.kind,
            number(saved.percent),
            interval(saved)
        ),
        Saving::NoInterval { saved } => {
            let each = |saved: &Saved| format!("{} saved {} % at {}", saved.kind, number(saved.percent), saved.bytes);
            format!(
                "The saving by huge pages has no confidence interval: this result holds fewer than two visits to each \
                 point. By medians alone: {}.",
                listed(saved.iter().map(each))
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

fn access(saved: &Saved) -> String {
    format!("a {} {}", saved.pattern, saved.access)
}

/// The interval of a saving; that of the best of several curves says so.
fn interval(saved: &Saved) -> String {
    let Some(interval) = saved.percent_interval else {
        return "no interval".to_owned();
    };
    let chosen = match saved.candidates {
        0 | 1 => String::new(),
        candidates => format!(", corrected for choosing among {candidates}"),
    };
    let [low, high] = [interval.low, interval.high].map(number);
    format!("95 % CI {low} to {high} %{chosen}")
}

fn chosen(choice: &Choice, saving: &Saving) -> String {
    let measured = kinds(saving);
    match choice {
        Choice::Best { kind } => format!("{kind} saves most{}.{measured}", effort(*kind)),
        Choice::Enough {
            kind,
            best,
            at_most_percent,
        } => format!(
            "{kind} is enough: it takes at most {} % more time than {best}{}.{measured}",
            number(*at_most_percent),
            effort(*kind)
        ),
        Choice::Open {
            best,
            rival,
            more_percent,
        } => format!(
            "{best} saved most, but {rival} may be as good: it takes {} to {} % more time (95 % CI).{measured}",
            number(more_percent.low),
            number(more_percent.high)
        ),
        Choice::Only { kind } => format!("{kind} is the only huge page kind that was measured there.{measured}"),
        Choice::NoDifference => "No huge page kind is shown to be better than another.".to_owned(),
        Choice::Unknown => "The best huge page kind is not known.".to_owned(),
    }
}

/// What each kind saved at the point of the verdict, as a sentence behind another.
fn kinds(saving: &Saving) -> String {
    let Saving::Saves { saved, kinds, .. } = saving else {
        return String::new();
    };
    let each = |kind: &KindSaved| format!("{} {} %", kind.kind, number(kind.percent));
    format!(" Saved at {}: {}.", saved.bytes, listed(kinds.iter().map(each)))
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
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
