//! JVMs that are configured to use hugetlb pages.

use model::{Bytes, PageKind};
use programs::Evidence;
use programs::{Jvm, Program};

use super::pool_pages;
use crate::facts::{each_jvm, known, pool_file};
use crate::rule::{Answer, Case, Reason};

/// A smaller mapping cannot be recognized as the heap.
const WORTH: Bytes = Bytes::mib(64);

pub(super) fn fallback(evidence: &Evidence) -> Answer {
    each_jvm(evidence, Jvm::wants_hugetlb, |program, jvm| {
        let has = program.hugetlb()?;
        let base = if has.0 == 0 {
            Some(*known(&program.pages.rss)?)
        } else {
            heap_on_base(program, jvm, has)?
        };
        Ok(base.map(|base| fallback_case(evidence, program, jvm, has, base)))
    })
}

/// The largest private mapping on base pages, if hugetlb pages hold less than the heap and it may be the rest.
fn heap_on_base(program: &Program, jvm: &Jvm, has: Bytes) -> Result<Option<Bytes>, Reason> {
    if jvm.heap_max.is_some_and(|heap| has >= heap) {
        return Ok(None);
    }
    let areas = program
        .areas()?
        .iter()
        .filter(|area| area.is_private_data() && area.is_anonymous());
    let unknown = program.areas()?.iter().any(|area| area.counted.is_none());
    if unknown {
        return Err(format!(
            "{}: its mappings were not walked, because that would stall a process of this size",
            program.file("smaps")
        )
        .into());
    }
    let largest = areas.filter_map(|area| area.base()).max().unwrap_or_default();
    Ok((largest >= WORTH && largest.0 >= has.0 / 3).then_some(largest))
}

fn fallback_case(evidence: &Evidence, program: &Program, jvm: &Jvm, has: Bytes, base: Bytes) -> Case {
    let heap = jvm.heap_max.unwrap_or(Bytes(has.0.saturating_add(base.0)));
    let share = 100.0 * base.0 as f64 / (base.0.saturating_add(has.0)).max(1) as f64;
    let page = jvm
        .page_size
        .or(evidence.snapshot.memory.get("Hugepagesize").known().copied())
        .unwrap_or(Bytes::mib(2));
    let pages = pool_pages(jvm, heap, page);
    let case = Case::sure(format!(
        "{} is configured to use huge pages, and {share:.0} % of its heap ({base}) is backed by base pages",
        program.title()
    ))
    .seen(program.file("cmdline"), "huge pages", "configured")
    .seen(program.file("status"), "HugetlbPages", has);
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let case = pools.fold(case, |case, pool| {
        case.seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
            .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    });
    case.plan(format!("jvm:pid={}", program.pid()))
        .fix(format!(
            "the pool needs {pages} pages of {} for a heap of {heap}, the code cache and the collector's tables",
            page.exact()
        ))
        .fix("then restart the JVM; -Xlog:pagesize shows the page sizes it got")
        .fix("or use THP: -XX:+UseTransparentHugePages with the policy `madvise`")
}

pub(super) fn step_down(evidence: &Evidence) -> Answer {
    each_jvm(evidence, Jvm::wants_hugetlb, |program, jvm| {
        let Some(asked) = jvm.page_size else { return Ok(None) };
        if program.hugetlb()?.0 == 0 {
            return Ok(None);
        }
        let backing = known(&program.pages.backing)?;
        if backing.of(PageKind::Hugetlb(asked)).0 > 0 {
            return Ok(None);
        }
        let got = backing
            .iter()
            .filter_map(|(kind, bytes)| Some((kind.pool()?, bytes)))
            .max_by_key(|(_, bytes)| *bytes);
        let Some((got, bytes)) = got.filter(|(got, _)| *got < asked) else {
            return Ok(None);
        };
        let case = Case::sure(format!(
            "{} is configured for pages of {} and silently uses {bytes} of {}",
            program.title(),
            asked.exact(),
            got.exact()
        ))
        .seen(program.file("cmdline"), "-XX:LargePageSizeInBytes", asked.exact())
        .seen(program.file("smaps"), "KernelPageSize", got.exact())
        .fix(format!(
            "a pool of {} pages that holds the whole heap, and -Xmx as a multiple of {}",
            asked.exact(),
            asked.exact()
        ))
        .fix("then restart the JVM with -Xlog:pagesize");
        Ok(Some(case))
    })
}
