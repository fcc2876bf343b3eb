//! How the kernel obtains huge pages for THP in the background, and what that costs in time and memory.

use host::snapshot::{Feature, ThpSize};
use model::Bytes;
use model::findings::Severity;
use programs::{Area, Evidence, Kind, Program};

use super::databases::wants_no_empty_pages;
use super::vendors::{asked_by_vendor, off_for, private_thp};
use crate::facts::{any_size, counted_areas, has, is_own, known, looked_into, policy, thp, thp_file};
use crate::rule::answers::parts;
use crate::rule::{Answer, Case, Reason};

pub(super) fn vmstat(evidence: &Evidence, name: &str) -> Result<u64, Reason> {
    Ok(evidence.snapshot.memory.count(name).into_result()?)
}

pub(super) fn bloat(evidence: &Evidence) -> Answer {
    let found = [busy_khugepaged(evidence), many_areas(evidence), unmapped(evidence)];
    let cases = found.into_iter().flatten().collect();
    let cases = parts([Ok(cases), ranges(evidence)])?;
    if cases.is_empty() && policy(evidence)? == "always" {
        all_readable(evidence)?;
    }
    Ok(cases)
}

/// Could everything be read that would show an effect?
fn all_readable(evidence: &Evidence) -> Result<(), Reason> {
    evidence.snapshot.memory.get("AnonPages").map(drop).or_if_absent(())?;
    for examined in looked_into(evidence)? {
        let (program, details) = examined?;
        program.areas()?;
        program.jvm()?;
        private_thp(program)?;
        known(&program.threads)?;
        known(&program.arguments)?;
        if program.is(Kind::Mongo)? {
            known(&details.version)?;
        }
    }
    Ok(())
}

/// So many seconds of CPU matter, if they are this share of the time since boot.
const MUCH_CPU: f64 = 1800.0;
const MUCH_OF_UPTIME: f64 = 0.03;

fn busy_khugepaged(evidence: &Evidence) -> Option<Case> {
    let (used, uptime) = (*evidence.khugepaged.known()?, *evidence.uptime.known()?);
    let share = used / uptime.max(1.0);
    if used < MUCH_CPU || share < MUCH_OF_UPTIME || !any_size(evidence).ok()? {
        return None;
    }
    let case = Case::likely(format!(
        "khugepaged has used {:.0} min of CPU since boot, {:.1} % of the time: it scans and collapses all the while",
        used / 60.0,
        share * 100.0
    ))
    .severity(Severity::Warning)
    .seen(
        "/proc/*/stat",
        "khugepaged: user and system time, in seconds",
        format!("{used:.0}"),
    )
    .seen("/proc/uptime", "", uptime);
    Some(
        without_always(evidence, case)
            .write_as("khugepaged/scan_sleep_millisecs", "60000", |command| {
                format!("or let it scan less often: {command}")
            })
            .fix("and see whether it helps: top -p $(pgrep khugepaged)"),
    )
}

/// With `madvise` in place of `always`.
fn without_always(evidence: &Evidence, case: Case) -> Case {
    let is_always = policy(evidence).as_deref() == Ok("always");
    case.when(is_always, Case::madvise)
}

/// So many mappings of this size at most are stacks or arenas of threads.
const MANY_AREAS: usize = 32;
const SMALL_AREA: Bytes = Bytes::mib(8);
const WORTH_AREAS: Bytes = Bytes::mib(64);

/// The program with most mappings of a few MiB that are backed by whole huge pages: E07 is for JVMs.
fn many_areas(evidence: &Evidence) -> Option<Case> {
    if policy(evidence).ok()? != "always" {
        return None;
    }
    let small = |area: &&Area| {
        let huge = area.counts().map_or(Bytes(0), |counts| counts.anon_huge);
        area.is_private_data() && area.size() <= SMALL_AREA && huge.0 > 0
    };
    let examined = looked_into(evidence).ok()?.filter_map(Result::ok);
    let found = examined.filter(|(program, _)| program.jvm().is_ok_and(|jvm| jvm.is_none()));
    let found = found.filter_map(|(program, _)| {
        let areas = counted_areas(program).ok()?;
        let huge = areas.iter().filter(small).filter_map(Area::counts);
        let (number, bytes) = huge.fold((0, 0_u64), |(number, bytes), counts| {
            (number + 1, bytes.saturating_add(counts.anon_huge.0))
        });
        let threads = *program.threads.known()?;
        (number >= MANY_AREAS && threads >= MANY_AREAS as u64).then_some((program, number, Bytes(bytes), threads))
    });
    let (program, number, bytes, threads) = found.max_by_key(|(.., bytes, _)| *bytes)?;
    if bytes < WORTH_AREAS {
        return None;
    }
    Some(
        Case::likely(format!(
            "{number} mappings of a few MiB of {} ({threads} threads) are backed by {bytes} of whole huge pages: stacks and arenas use little of theirs",
            program.title()
        ))
        .severity(Severity::Warning)
        .seen(thp_file("enabled"), "", "always")
        .seen(program.file("status"), "Threads", threads)
        .seen(program.file("smaps"), "AnonHugePages of mappings up to 8M", bytes)
        .madvise()
        .fix("or fewer arenas: MALLOC_ARENA_MAX=2 (glibc), MALLOC_CONF=narenas:2,thp:never (jemalloc)"),
    )
}

/// Less than that comes and goes.
const WORTH_SPLITTING: Bytes = Bytes::gib(1);

/// Anonymous memory on the kernel's lists that no program maps: what programs gave back of huge pages that they keep in part.
fn unmapped(evidence: &Evidence) -> Option<Case> {
    let sum = |names: &[&str]| {
        let sizes = names
            .iter()
            .map(|name| evidence.snapshot.memory.get(name).known().copied());
        sizes.sum::<Option<Bytes>>()
    };
    let (listed, used) = (
        sum(&["Active(anon)", "Inactive(anon)"])?,
        sum(&["AnonPages", "Shmem", "SwapCached"])?,
    );
    let waiting = Bytes(listed.0.saturating_sub(used.0));
    let queued = vmstat(evidence, "thp_deferred_split_page")
        .ok()
        .filter(|pages| *pages > 0)?;
    if waiting < WORTH_SPLITTING {
        return None;
    }
    let case = Case::hint(format!(
        "{waiting} of anonymous memory is charged to programs, and no program maps it: most likely the rest of huge pages that they keep in part. The kernel frees it when memory, or what a control group may have, is short"
    ))
    .severity(Severity::Info)
    .seen("/proc/meminfo", "Active(anon) + Inactive(anon)", listed)
    .seen("/proc/meminfo", "AnonPages + Shmem + SwapCached", used)
    .seen("/proc/vmstat", "thp_deferred_split_page", queued)
    .fix("to have it back now, write 1G to memory.reclaim of the program's control group (Linux 5.19 and later, cgroup v2)");
    Some(without_always(evidence, case))
}

/// `max_ptes_none`, and what stands for all base pages of a range but one.
fn max_ptes_none(evidence: &Evidence) -> Result<(i64, i64), Reason> {
    let thp = thp(evidence)?;
    let (pmd, base) = (known(&thp.pmd_size)?, known(&evidence.snapshot.kernel.base_page)?);
    let most = i64::try_from(pmd.0 / base.0.max(1)).unwrap_or(i64::MAX) - 1;
    Ok((*known(&known(&thp.khugepaged)?.get("max_ptes_none"))?, most))
}

pub(super) fn neither_none_nor_all(evidence: &Evidence) -> Answer {
    if !has(evidence, Feature::CollapseToSizes)? {
        return Ok(Vec::new());
    }
    let thp = thp(evidence)?;
    let (none, most) = max_ptes_none(evidence)?;
    let pmd = *known(&thp.pmd_size)?;
    let is_on =
        |size: &ThpSize| size.size < pmd && thp.policy(size.size).known().is_some_and(|policy| policy != "never");
    if none == 0 || none >= most || !thp.sizes.iter().any(is_on) {
        return Ok(Vec::new());
    }
    let file = "khugepaged/max_ptes_none";
    let case = Case::sure(format!(
        "khugepaged takes max_ptes_none = {none} for 0 when it collapses to sizes below {}: this kernel knows 0 and {most} there",
        pmd.exact()
    ))
    .seen(thp_file(file), "", none)
    .seen("/proc/sys/kernel/osrelease", "", &evidence.snapshot.kernel.release)
    .plan("thp:khugepaged.max_ptes_none=0")
    .write_as(file, "0", |command| format!("say what it does: {command}"));
    Ok(vec![case])
}

fn ranges(evidence: &Evidence) -> Answer {
    let pmd = *known(&thp(evidence)?.pmd_size)?;
    let (none, most) = max_ptes_none(evidence)?;
    if none < most || policy(evidence)? != "always" {
        return Ok(Vec::new());
    }
    let collapsed = vmstat(evidence, "thp_collapse_alloc")?;
    // Counted since Linux 6.12; before, it is not known.
    let underused = vmstat(evidence, "thp_underused_split_page").ok();
    let matters = underused.is_some_and(|pages| pages >= 1000) || collapsed >= 50_000;
    let split = split_again(underused, pmd);
    let wanted = wants_no_empty_pages(evidence);
    let most = most_huge(evidence);
    let keeper = most.and_then(|(program, _)| asked_by_vendor(&evidence.snapshot, program));
    // It is the kernel's default: without an effect, or a program that suffers by it, nothing is wrong.
    if !matters && wanted.is_none() && keeper.is_none() {
        return Ok(Vec::new());
    }
    // Where it collapses to smaller sizes too, what is between none and all counts as none.
    let is_none = wanted.is_some() || evidence.snapshot.kernel.has(Feature::CollapseToSizes) == Some(true);
    let few = if is_none { "0" } else { "64" };
    let whose = most.map_or_else(String::new, |(program, huge)| {
        format!("; the program with most THP is {}: {huge}", program.title())
    });
    let of_vendor = wanted.map_or_else(String::new, |product| {
        format!("; the vendor of {product} asks for max_ptes_none = 0, as freed memory comes back else")
    });
    let case = Case::hint(format!(
        "khugepaged may collapse a range for a single used base page: it collapsed {} since boot, {split}{whose}{of_vendor}",
        Bytes(pmd.0.saturating_mul(collapsed)),
    ))
    .severity(Severity::Warning)
    .info_if(!matters && wanted.is_none())
    .seen(thp_file("khugepaged/max_ptes_none"), "", none)
    .seen(thp_file("enabled"), "", "always")
    .seen("/proc/vmstat", "thp_collapse_alloc", collapsed)
    .plan(format!("thp:khugepaged.max_ptes_none={few}"))
    .write("khugepaged/max_ptes_none", few)
    .write_as("shrink_underused", "1", |command| {
        format!("and let the kernel split unused ones: {command}")
    });
    // Named in the text alone: a hint about the machine is no finding of that program.
    Ok(vec![case.with(keeper, |case, (product, asks)| {
        case.write_as("enabled", off_for(evidence, asks), |command| {
            format!("or, as the vendor of {product} asks for {asks}: {command}")
        })
    })])
}

/// How much of it was split, in words.
fn split_again(underused: Option<u64>, pmd: Bytes) -> String {
    match underused {
        Some(pages) => format!("{} were split again as unused", Bytes(pmd.0.saturating_mul(pages))),
        None => "this kernel does not count how many were split again as unused".to_owned(),
    }
}

/// The program with most memory of its own on huge pages, if that is worth naming.
fn most_huge(evidence: &Evidence) -> Option<(&Program, Bytes)> {
    let all = evidence.programs.known()?.iter().filter(|program| !is_own(program));
    let huge = all.filter_map(|program| Some((program, private_thp(program).ok()?)));
    huge.filter(|(_, huge)| *huge >= WORTH_SPLITTING)
        .max_by_key(|(_, huge)| *huge)
}
