//! Where huge pages for THP are not to be had: page faults that fell back, and free memory in small pieces.

use host::snapshot::ThpSize;
use host::snapshot::hugetlb::directory_name;
use model::Bytes;
use programs::Evidence;

use super::effort::vmstat;
use crate::facts::{known, percent, thp, thp_file, total};
use crate::pools::is_starved;
use crate::remedy::{Need, Remedy};
use crate::rule::{Answer, Case};

/// Fewer attempts show nothing.
const ENOUGH: u64 = 1000;

/// Page faults since boot that were eligible for THP of one size: where they are counted, how many got it, and how many did not.
struct Faults {
    size: String,
    place: String,
    got: (&'static str, u64),
    refused: (&'static str, u64),
}

impl Faults {
    /// How many fell back, in per cent, where that is often.
    fn share(&self) -> Option<f64> {
        let all = self.got.1.saturating_add(self.refused.1);
        let share = self.refused.1 as f64 / all.max(1) as f64;
        (all >= ENOUGH && share > 0.1).then_some(share * 100.0)
    }
}

pub(super) fn fallback_ratio(evidence: &Evidence) -> Answer {
    if is_starved(evidence) {
        return Ok(Vec::new());
    }
    let counted = |name: &'static str| vmstat(evidence, name).map(|number| (name, number));
    let (got, refused) = (counted("thp_fault_alloc")?, counted("thp_fault_fallback")?);
    let thp = thp(evidence)?;
    let pmd = thp.pmd_size.known();
    let whole = Faults {
        size: pmd.map_or_else(|| "the PMD size".to_owned(), |pmd| pmd.exact()),
        place: "/proc/vmstat".to_owned(),
        got,
        refused,
    };
    let smaller = thp.sizes.iter().filter(|size| pmd.is_none_or(|pmd| size.size < *pmd));
    let all = smaller.filter_map(faults_of).chain([whole]);
    let low: Vec<(Faults, f64)> = all
        .filter_map(|faults| faults.share().map(|share| (faults, share)))
        .collect();
    if low.is_empty() {
        return Ok(Vec::new());
    }
    let shares: Vec<String> = low
        .iter()
        .map(|(faults, share)| format!("{share:.0} % of those for {}", faults.size))
        .collect();
    let case = Case::hint(format!(
        "since boot, page faults often got smaller pages than they were eligible for: {}",
        shares.join(", ")
    ));
    let case = low.iter().fold(case, |case, (faults, _)| {
        [faults.got, faults.refused]
            .into_iter()
            .fold(case, |case, (name, number)| case.seen(&faults.place, name, number))
    });
    Ok(vec![
        case.fix("echo 1 > /proc/sys/vm/compact_memory")
            .remedy(compact_ahead())
            .collapse("for programs that need them", "PID")
            .fix("or keep more memory free, so that fewer faults fail"),
    ])
}

fn faults_of(size: &ThpSize) -> Option<Faults> {
    let stats = size.stats.known()?;
    let counted = |name: &'static str| Some((name, u64::try_from(*stats.get(name).known()?).ok()?));
    Some(Faults {
        size: size.size.exact(),
        place: thp_file(&format!("{}/stats", directory_name(size.size))),
        got: counted("anon_fault_alloc")?,
        refused: counted("anon_fault_fallback")?,
    })
}

pub(super) fn fragmented(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let (pmd, base) = (
        known(&thp(evidence)?.pmd_size)?.0,
        known(&evidence.snapshot.kernel.base_page)?.0,
    );
    let order = pmd.checked_div(base).and_then(u64::checked_ilog2);
    let order =
        order.ok_or_else(|| format!("{}: {pmd} is no size of a huge page", thp_file("hpage_pmd_size")))? as usize;
    let free = Bytes(memory.free_at_least(0).into_result()?.saturating_mul(base));
    let whole = Bytes(memory.free_at_least(order).into_result()?.saturating_mul(pmd));
    let total = total(evidence)?;
    if percent(free, total) < 5.0 || percent(whole, free) >= 10.0 {
        return Ok(Vec::new());
    }
    let case = Case::sure(format!(
        "{free} is free, but only {whole} of it in blocks of {}: huge pages cost compaction or cannot be allocated",
        Bytes(pmd).exact()
    ))
    .seen("/proc/buddyinfo", "free", free)
    .seen(
        "/proc/buddyinfo",
        format!("free in blocks of order {order} and above"),
        whole,
    )
    .fix("echo 1 > /proc/sys/vm/compact_memory")
    .remedy(compact_ahead())
    .remedy(
        Remedy::new("sysctl -w vm.min_free_kbytes=1048576")
            .need(Need::Sysctl("vm.min_free_kbytes"))
            .need(Need::Memory(Bytes::gib(64))),
    );
    Ok(vec![case])
}

fn compact_ahead() -> Remedy {
    let setting = "vm.compaction_proactiveness";
    Remedy::new(format!("sysctl -w {setting}=40")).need(Need::Sysctl(setting))
}
