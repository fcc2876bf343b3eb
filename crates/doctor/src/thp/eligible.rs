//! Mappings that could be backed by huge pages and are not.

use host::processes::{Ground, Reason as Why, why_base};
use host::snapshot::{Feature, MountTree};
use model::Bytes;
use programs::{Area, Evidence, Program};

use super::stalls::stalls_much;
use super::vendors::asked_by_vendor;
use crate::facts::{any_size, counted_areas, each_looked_into, known, looked_into, policy, range, thp, thp_file};
use crate::rule::answers::readable;
use crate::rule::{Answer, Case, Reason};

/// Smaller mappings do not decide the speed of a program.
const LARGE: Bytes = Bytes::mib(64);

pub(super) fn not_eligible(evidence: &Evidence) -> Answer {
    let thp = thp(evidence)?;
    known(&thp.enabled)?;
    each_looked_into(evidence, |program, _| {
        let areas = counted_areas(program)?;
        let has_reason = may_be_except_advised(evidence, areas);
        let refused = areas
            .iter()
            .filter(|area| area.is_private_data() && area.base() >= Some(LARGE));
        let refused = refused.filter_map(|area| {
            let why = why_base(
                &area.to_pages(),
                &program.pages,
                &Ground::new(&evidence.snapshot, &MountTree::default()),
            )?;
            let is_refused = why == Why::AdvisedAgainst || (why == Why::NotEligible && has_reason);
            is_refused.then_some((area, why))
        });
        Ok(refused
            .max_by_key(|(area, _)| area.base())
            .map(|(area, why)| refused_case(program, area, why)))
    })
}

/// Can its process be under PR_THP_DISABLE_EXCEPT_ADVISED? Older kernels have no such thing, and under it no memory gets THP without advice.
/// Without that a mapping that is not eligible has a cause that nothing here shows.
fn may_be_except_advised(evidence: &Evidence, areas: &[Area]) -> bool {
    let has_without_advice = |area: &Area| {
        area.is_private_data()
            && area.has("hg") == Some(false)
            && area.counts().is_some_and(|counts| counts.anon_huge.0 > 0)
    };
    evidence.snapshot.kernel.has(Feature::ExceptAdvised) != Some(false) && !areas.iter().any(has_without_advice)
}

fn refused_case(program: &Program, area: &Area, why: Why) -> Case {
    let own_choice = why == Why::AdvisedAgainst;
    let base = area.base().unwrap_or_default();
    let flags = area.counted.as_ref().map_or("", |counted| &*counted.flags);
    let range = range(&area.range);
    let case = Case::sure(format!("{base} of {} cannot be backed by THP: {why}", program.title()))
        .info_if(own_choice)
        .seen(program.file("smaps"), format!("{range} VmFlags"), flags)
        .seen(program.file("smaps"), format!("{range} Rss"), base);
    if own_choice {
        case.fix("if that is not intended: upgrade or configure its run-time (Go 1.21.x and later, jemalloc thp:default, -XX:+UseTransparentHugePages)")
    } else {
        case.fix("check the unit's MemoryTHP= and prctl calls of its launcher; hugewise ps PID --vmas shows the reason for each mapping")
    }
}

pub(super) fn too_slow(evidence: &Evidence) -> Answer {
    if !any_size(evidence)? || stalls_much(evidence) {
        return Ok(Vec::new());
    }
    let khugepaged = known(&thp(evidence)?.khugepaged)?;
    let number = |name: &str| -> Result<f64, Reason> { Ok(*known(&khugepaged.get(name))? as f64) };
    let (pages, sleep) = (number("pages_to_scan")?, number("scan_sleep_millisecs")? / 1000.0);
    let base = known(&evidence.snapshot.kernel.base_page)?.0 as f64;
    let rate = pages * base / sleep.max(0.001);
    // A faster khugepaged makes worse what D29 finds.
    let is_always = policy(evidence).is_ok_and(|policy| policy == "always");
    let is_unwanted = |program: &Program| is_always && asked_by_vendor(&evidence.snapshot, program).is_some();
    let wanted = looked_into(evidence)?.filter(|examined| match examined {
        Ok((program, _)) => !is_unwanted(program),
        Err(_) => true,
    });
    let (areas, unknown) = readable(wanted.map(|examined| counted_areas(examined?.0)));
    let waiting: Bytes = areas.into_iter().flatten().map(eligible).sum();
    let hours = waiting.0 as f64 / rate / 3600.0;
    if hours < 1.0 {
        return unknown.map_or(Ok(Vec::new()), Err);
    }
    let case = Case::sure(format!(
        "{waiting} of eligible memory is backed by base pages, and khugepaged at {:.1} MiB/s takes {hours:.0} h to scan it once",
        rate / 1_048_576.0
    ))
    .seen(thp_file("khugepaged/pages_to_scan"), "", pages)
    .seen(thp_file("khugepaged/scan_sleep_millisecs"), "", sleep * 1000.0)
    .seen("/proc/*/smaps", "THPeligible: 1, backed by base pages", waiting)
    .collapse("for one program, at once", "PID")
    .write_as("khugepaged/scan_sleep_millisecs", "1000", |command| {
        format!("for a while: {command}")
    })
    .otherwise("restart the programs: memory that is touched anew gets huge pages at once");
    Ok(vec![case])
}

fn eligible(area: &Area) -> Bytes {
    let is_eligible = area.counted.as_ref().and_then(|counted| counted.thp_eligible) == Some(true);
    let base = area.base().filter(|_| is_eligible && area.is_anonymous());
    base.unwrap_or_default()
}

/// Smaller code fits into the TLBs.
const MUCH_TEXT: Bytes = Bytes::mib(16);

pub(super) fn text_not_alignable(evidence: &Evidence) -> Answer {
    let pmd = *known(&thp(evidence)?.pmd_size)?;
    let answer = each_looked_into(evidence, |program, _| {
        let is_text = |area: &&Area| area.perms.starts_with("r-x") && area.name.starts_with('/');
        let odd = |area: &&Area| !area.range.start.wrapping_sub(area.offset).is_multiple_of(pmd.0);
        let there = |area: &&Area| {
            area.resident() >= Some(MUCH_TEXT) && area.counts().is_some_and(|counts| counts.file_pmd.0 == 0)
        };
        let text = counted_areas(program)?
            .iter()
            .filter(is_text)
            .filter(odd)
            .filter(there)
            .max_by_key(|area| area.size());
        Ok(text.map(|area| text_case(program, area)))
    })?;
    Ok(answer.into_iter().take(3).collect())
}

fn text_case(program: &Program, area: &Area) -> Case {
    let resident = area.resident().unwrap_or_default();
    Case::sure(format!(
        "{resident} of code of {} cannot be backed by huge pages: {} is not aligned for them",
        program.title(),
        area.name
    ))
    .seen(
        program.file("smaps"),
        format!("{:x} offset {:x}", area.range.start, area.offset),
        &area.name,
    )
    .fix("link it with -Wl,-z,max-page-size=2097152 (and -Wl,-z,separate-code)")
    .fix("or optimize it with llvm-bolt -hugify")
}
