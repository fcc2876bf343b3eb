//! The verdict of a checkup in sentences: the answer first, then the numbers behind it.

use model::headline::{Percent, Shows, WORTH};
use model::verdict::{Choice, Coverage, Doubt, HostPages, Limits, PoolPages, Saved, Saving, User, Verdict, WhyNext};
use model::{Cause, PageKind, Reading};

use super::unseen::in_words;
use draw::{counted, number};

/// What huge pages save and which kind to choose, who uses them, and what limits their use now.
pub fn sentences(verdict: &Verdict) -> [String; 3] {
    let answer = saves(&verdict.saving);
    let answer = match verdict.host.filter(|_| is_measured(&verdict.saving)) {
        Some(host) => format!("{}{}.", answer.trim_end_matches('.'), taken(host)),
        None => answer,
    };
    let more = scattered(verdict).into_iter().chain(chosen(&verdict.choice));
    let answer = more.fold(answer, |answer, sentence| format!("{answer} {sentence}"));
    [answer, used(verdict), limited(&verdict.limits)]
}

fn is_measured(saving: &Saving) -> bool {
    !matches!(saving, Saving::NothingToCompare { .. } | Saving::NotMeasured { .. })
}

/// What the host takes away.
fn taken(host: HostPages) -> String {
    format!(
        "; the host backs huge pages with pages of {} ({:.0} % sure), which takes part of the gain away",
        host.bytes,
        host.confidence * 100.0
    )
}

/// What of the saving is due to where base pages lie.
fn scattered(verdict: &Verdict) -> Option<String> {
    let pieces = match &verdict.small_blocks {
        Some(Reading::Known(bytes)) => Some(format!(
            "{bytes} of free memory lay in blocks below 2M (/proc/buddyinfo), from which base pages come first."
        )),
        Some(Reading::Unread(why)) => {
            return Some(format!(
                "Base pages may lie scattered, and then part of the saving is due to that. Only root can read where they lie, and free memory \
                 could not be read ({why})."
            ));
        }
        None => None,
    };
    let lie = verdict.scattered.map(|lines| {
        format!(
            "Base pages lie scattered here, on {lines:.1} times as many lines of the host's page table as in order."
        )
    });
    let is_due = match lie {
        Some(_) => "Part of the saving is due to that",
        None => "So they likely lie scattered, and then part of the saving is due to that",
    };
    let known = draw::joined(lie.into_iter().chain(pieces), " ");
    (!known.is_empty()).then(|| {
        format!(
            "{known} {is_due}: after a restart, or in part after `echo 1 > /proc/sys/vm/compact_memory`, a program has less to gain."
        )
    })
}

/// Who uses huge pages now.
fn used(verdict: &Verdict) -> String {
    let covered = verdict.limits.coverage.as_ref().map(covered);
    let covered = covered.map(|covered| format!(" {covered}")).unwrap_or_default();
    let is_part = verdict
        .limits
        .coverage
        .as_ref()
        .is_some_and(|covered| !covered.unseen.is_none());
    match verdict.users.as_deref() {
        None => "Which programs use huge pages was not read.".to_owned(),
        Some([]) if verdict.limits.coverage.is_none() => "Which programs use huge pages is not known.".to_owned(),
        Some([]) if is_part => format!("No program that could be read uses huge pages now.{covered}"),
        Some([]) => format!("No program uses huge pages now.{covered}"),
        Some(users) => {
            let each = |user: &User| format!("{} ({})", user.name, user.bytes);
            let names: Vec<String> = users.iter().map(each).collect();
            format!("Huge pages are used now by {}.{covered}", joined(&names))
        }
    }
}

pub fn why(why: &WhyNext) -> String {
    match why {
        WhyNext::Findings { count, first } => format!(
            "{}; first: {first}",
            counted(*count, "error or warning").replace("error or warnings", "errors or warnings")
        ),
        WhyNext::Server { name, pid } => format!("are huge pages in use by {name} ({pid}), and why not?"),
        WhyNext::Machines => "which page kinds back the virtual machines".to_owned(),
        WhyNext::Try => "does a program of yours gain? (most gain less than a random read)".to_owned(),
        WhyNext::Enable => "what would change if every program got THP; nothing is applied".to_owned(),
        WhyNext::Longer => "a longer measurement shows it".to_owned(),
        WhyNext::OnTheMachine => "measures; run it on the machine itself".to_owned(),
        WhyNext::Look => "which page kinds back which process".to_owned(),
    }
}

fn saves(saving: &Saving) -> String {
    match saving {
        Saving::Saves { at } => judged(at, Shows::Saves),
        Saving::Costs { at } => judged(at, Shows::Costs),
        Saving::NoDifference { at } => judged(at, Shows::NoDifference),
        Saving::CannotTell { at, why, seconds } => {
            let long = seconds.map_or(String::new(), |seconds| {
                format!("; about {} of measuring would show it (--budget)", rounded(seconds))
            });
            let open = at.iter().filter(|at| at.shows == Shows::CannotTell);
            let (kinds, open): (Vec<PageKind>, Vec<String>) = open.map(|at| (at.kind, interval_at(at))).unzip();
            let open = match kinds.first() {
                Some(kind) => format!(": with {kind} the saving is {} (95 % CI)", joined(&open)),
                None => String::new(),
            };
            format!(
                "Whether huge pages save time here is not clear{open}. {}{long}.",
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
fn judged(at: &[Saved], first: Shows) -> String {
    let of = |shows| at.iter().filter(move |at| at.shows == shows);
    let kind = at.first().map_or(PageKind::Thp, |at| at.kind);
    let each = |text: fn(&Saved) -> String| joined(&of(first).map(text).collect::<Vec<_>>());
    let share = format!("of the time of a random read, by working set ({kind}, 95 % CI)");
    let main = match first {
        Shows::Saves => {
            let saved = each(|at: &Saved| format!("{} at {}", percent(&at.saved), at.bytes));
            format!("Huge pages save {saved} {share}")
        }
        Shows::Costs => {
            let cost = each(|at: &Saved| format!("{} at {}", percent(&negated(&at.saved)), at.bytes));
            format!("Huge pages cost {cost} {share}")
        }
        Shows::NoDifference | Shows::CannotTell => format!(
            "Huge pages make no difference to a random read: with {kind} the saving is {} (95 % CI)",
            each(interval_at)
        ),
    };
    let others = [
        (Shows::NoDifference, format!("no difference ({WORTH} points or less)")),
        (Shows::Costs, "a loss".to_owned()),
        (Shows::CannotTell, "not clear".to_owned()),
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

/// No saving is known better than to tenths.
fn tenths(percent: f64) -> String {
    number((percent * 10.0).round() / 10.0)
}

/// `8.1 % (7.2 to 9)`.
fn percent(saved: &Percent) -> String {
    format!(
        "{} % ({} to {})",
        tenths(saved.percent),
        tenths(saved.low),
        tenths(saved.high)
    )
}

/// An interval without a number in its middle, which would look surer than it is.
fn interval_at(at: &Saved) -> String {
    format!(
        "{} to {} % at {}",
        tenths(at.saved.low),
        tenths(at.saved.high),
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
            format!(
                "There was time to take memory {} only: the machine brings it in slowly, or is busy; give more time with --budget",
                counted(draws as usize, "time")
            )
        }
        Doubt::DrawsDiffer { least, most } => format!(
            "Each time that memory was taken anew showed another saving, from {} to {} %: contention for the caches, or base pages that lie elsewhere",
            tenths(least),
            tenths(most)
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

/// `None` where there is nothing to choose.
fn chosen(choice: &Choice) -> Option<String> {
    Some(match choice {
        Choice::Best { kind } => format!("{kind} saves most{}.", effort(*kind)),
        Choice::Enough {
            kind,
            best,
            at_most_percent,
        } => format!(
            "{kind} is enough: it takes at most {} % more time than {best}{}.",
            tenths(*at_most_percent),
            effort(*kind)
        ),
        Choice::Open {
            best,
            rival,
            more_percent,
        } => format!(
            "{best} saved most, but {rival} may be as good: it takes {} to {} % more time (95 % CI).",
            tenths(more_percent.low),
            tenths(more_percent.high)
        ),
        Choice::Only { .. } | Choice::NoDifference | Choice::Unknown => return None,
    })
}

fn effort(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Hugetlb(_) => "; it needs a reserved pool and a program that asks for it",
        PageKind::Thp | PageKind::Mthp(_) => " and needs no reserved pool",
        PageKind::Base => "",
    }
}

fn limited(limits: &Limits) -> String {
    format!("{} {}", policy(&limits.thp), pools(&limits.pools))
}

fn policy(thp: &Reading<String>) -> String {
    match thp {
        Reading::Unread(why) if why.unread == Cause::Absent => format!("THP is not available ({why})."),
        Reading::Unread(why) => format!("The THP policy could not be read ({why})."),
        Reading::Known(policy) => match policy.as_str() {
            "always" => "THP is enabled for every program.".to_owned(),
            "madvise" => "THP is limited to programs that request it with madvise.".to_owned(),
            "never" => "THP is disabled for private memory.".to_owned(),
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
    let filled = draw::joined(pools.iter().filter_map(filled), " and ");
    match filled.is_empty() {
        true => "No hugetlb pool has any page.".to_owned(),
        false => format!("The hugetlb pools have {filled}."),
    }
}

fn filled(pool: &PoolPages) -> Option<String> {
    let &pages = pool.pages.known().filter(|&&pages| pages > 0)?;
    let free = pool.free.as_ref().map(|free| format!("{free} free"));
    let pages = counted(usize::try_from(pages).ok()?, "page");
    Some(format!("{pages} of {} ({free})", pool.size.exact()))
}

fn covered(coverage: &Coverage) -> String {
    let back = format!(
        "Huge pages back {} % of the {} resident in {}.",
        number(coverage.percent),
        coverage.resident_bytes,
        counted(coverage.processes as usize, "process")
    );
    match in_words(&coverage.unseen) {
        Some(unseen) => format!("{} that could be read; {unseen}.", back.trim_end_matches('.')),
        None => back,
    }
}
