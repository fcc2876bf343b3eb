//! How the kernel obtains huge pages for THP, what that costs, and how often it fails.

use host::snapshot::ThpSize;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;

use crate::facts::{known, percent, policy, thp, thp_file};
use crate::rule::{Answer, Case, Reason};

fn vmstat(evidence: &Evidence, name: &str) -> Result<u64, Reason> {
    Ok(evidence.snapshot.memory.count(name).into_result()?)
}

pub(super) fn defrag_stalls(evidence: &Evidence) -> Answer {
    let thp = thp(evidence)?;
    let defrag = &known(&thp.defrag)?.chosen;
    if defrag != "always" || policy(evidence)? == "never" {
        return Ok(Vec::new());
    }
    let (stalls, failed) = (vmstat(evidence, "compact_stall")?, vmstat(evidence, "compact_fail")?);
    let case = Case::likely(format!(
        "page faults wait for compaction: {stalls} waited since boot, {failed} of them without success, each for up to many milliseconds"
    ))
    .info_if(stalls < 1000)
    .seen(thp_file("defrag"), "", defrag)
    .seen("/proc/vmstat", "compact_stall", stalls)
    .seen("/proc/vmstat", "compact_fail", failed)
    .fix(format!("echo defer+madvise > {}", thp_file("defrag")));
    Ok(vec![case])
}

pub(super) fn bloat(evidence: &Evidence) -> Answer {
    let thp = thp(evidence)?;
    let (pmd, base) = (known(&thp.pmd_size)?, known(&evidence.snapshot.kernel.base_page)?);
    let most = i64::try_from(pmd.0 / base.0).unwrap_or(i64::MAX) - 1;
    let none = *known(&known(&thp.khugepaged)?.get("max_ptes_none"))?;
    if none < most || policy(evidence)? != "always" {
        return Ok(Vec::new());
    }
    let collapsed = vmstat(evidence, "thp_collapse_alloc")?;
    // Counted since Linux 6.12; before, it is not known.
    let underused = vmstat(evidence, "thp_underused_split_page").ok();
    let matters = underused.is_some_and(|pages| pages >= 1000) || collapsed >= 50_000;
    let split = underused.map_or_else(
        || "this kernel does not count how many were split again as unused".to_owned(),
        |pages| format!("{} were split again as unused", Bytes(pmd.0.saturating_mul(pages))),
    );
    let case = Case::hint(format!(
        "khugepaged may collapse a range for a single used base page: it collapsed {} since boot, {split}",
        Bytes(pmd.0.saturating_mul(collapsed)),
    ))
    .severity(if matters { Severity::Warning } else { Severity::Info })
    .seen(thp_file("khugepaged/max_ptes_none"), "", none)
    .seen(thp_file("enabled"), "", "always")
    .seen("/proc/vmstat", "thp_collapse_alloc", collapsed)
    .plan("thp:khugepaged.max_ptes_none=64")
    .fix(format!("echo 64 > {}", thp_file("khugepaged/max_ptes_none")))
    .fix(format!(
        "Linux 6.12 and later: echo 1 > {}",
        thp_file("shrink_underused")
    ));
    Ok(vec![case])
}

/// Fewer attempts show nothing.
const ENOUGH: u64 = 1000;

pub(super) fn fallback_ratio(evidence: &Evidence) -> Answer {
    let (given, refused) = (
        vmstat(evidence, "thp_fault_alloc")?,
        vmstat(evidence, "thp_fault_fallback")?,
    );
    let whole = fallback(
        "/proc/vmstat",
        ("thp_fault_alloc", given),
        ("thp_fault_fallback", refused),
    );
    let mut cases = Vec::from_iter(whole);
    let thp = thp(evidence)?;
    let smaller = |size: &&ThpSize| thp.pmd_size.known().is_none_or(|pmd| size.size < *pmd);
    for size in thp.sizes.iter().filter(smaller) {
        let Some(stats) = size.stats.known() else { continue };
        let number = |name: &str| stats.get(name).known().and_then(|&number| u64::try_from(number).ok());
        let (Some(given), Some(refused)) = (number("anon_fault_alloc"), number("anon_fault_fallback")) else {
            continue;
        };
        let place = thp_file(&format!("hugepages-{}kB/stats", size.size.0 >> 10));
        cases.extend(fallback(
            &place,
            ("anon_fault_alloc", given),
            ("anon_fault_fallback", refused),
        ));
    }
    Ok(cases)
}

fn ratio(given: u64, refused: u64) -> Option<f64> {
    let all = given.saturating_add(refused);
    let share = refused as f64 / all.max(1) as f64;
    (all >= ENOUGH && share > 0.1).then_some(share * 100.0)
}

fn fallback(place: &str, given: (&str, u64), refused: (&str, u64)) -> Option<Case> {
    let share = ratio(given.1, refused.1)?;
    let case = Case::hint(format!(
        "since boot, {share:.0} % of the page faults that were eligible for a huge page got base pages"
    ))
    .seen(place, given.0, given.1)
    .seen(place, refused.0, refused.1)
    .fix("echo 1 > /proc/sys/vm/compact_memory")
    .fix("sysctl -w vm.compaction_proactiveness=40")
    .fix("for programs that need them: hugewise collapse PID, or a hugetlb pool");
    Some(case)
}

pub(super) fn fragmented(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let (pmd, base) = (
        known(&thp(evidence)?.pmd_size)?.0,
        known(&evidence.snapshot.kernel.base_page)?.0,
    );
    let order = (pmd / base).ilog2() as usize;
    let free = Bytes(memory.free_at_least(0).into_result()?.saturating_mul(base));
    let whole = Bytes(memory.free_at_least(order).into_result()?.saturating_mul(pmd));
    let total = memory.get("MemTotal").into_result()?;
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
    .fix("sysctl -w vm.compaction_proactiveness=40")
    .fix("sysctl -w vm.min_free_kbytes=1048576 (1 GiB: on machines of 64 GiB and more)");
    Ok(vec![case])
}
