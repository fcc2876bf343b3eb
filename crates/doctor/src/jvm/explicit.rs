//! JVMs that are configured to use hugetlb pages.

use host::snapshot::Pool;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::{Jvm, JvmKind, Program};

use super::pool_pages;
use crate::explain::PoolState;
use crate::explain::heap::{Heap, largest_heap};
use crate::facts::{default_size, each_jvm, known, lacks_hugetlb, percent, pool_file};
use crate::kept::boot_fix;
use crate::remedy::{Need, Remedy};
use crate::rule::{Answer, Case, Reason};

/// With a smaller share of a heap on base pages it is only its ends that are.
const WORTH: f64 = 0.1;

pub(super) fn fallback(evidence: &Evidence) -> Answer {
    each_jvm(evidence, Jvm::wants_hugetlb, |program, jvm| {
        let missing = match jvm.lowered() {
            Some((_, granted)) => Some(format!(
                "found too few huge pages, and lowered the maximum of its heap to {granted}"
            )),
            None => missing(program)?,
        };
        missing
            .map(|missing| fallback_case(evidence, program, jvm, &missing))
            .transpose()
    })
}

/// What of a heap is not on the pages that were asked for, in words: by its own mappings; if those could not be read, by the status alone.
fn missing(program: &Program) -> Result<Option<String>, Reason> {
    let on_base = match Heap::of(program) {
        Ok(Some(heap)) => heap.on_base(),
        Ok(None) => return Ok(None),
        Err(why) => Err(why),
    };
    match on_base {
        Ok((base, all)) => {
            let is_worth = base.0 as f64 >= WORTH * all.0 as f64 && all.0 > 0;
            let share = percent(base, all);
            Ok(is_worth.then(|| {
                format!(
                    "is configured to use huge pages, and {share:.0} % of its heap ({base} of {all}) is backed by base pages"
                )
            }))
        }
        Err(_) if program.hugetlb()?.0 == 0 => Ok(Some(
            "is configured to use huge pages, and no page of a pool backs its heap".to_owned(),
        )),
        Err(why) => Err(why.into()),
    }
}

fn fallback_case(evidence: &Evidence, program: &Program, jvm: &Jvm, missing: &str) -> Result<Case, Reason> {
    let has = program.hugetlb()?;
    let case = Case::sure(format!("{} {missing}", program.title()))
        .seen(program.file("cmdline"), "huge pages", "configured")
        .seen_hugetlb(program, has);
    let thp_instead = || thp_instead(jvm.kind == JvmKind::OpenJ9);
    if lacks_hugetlb(evidence) {
        return Ok(case
            .seen("/proc/meminfo", "Hugepagesize", "no such line")
            .fix("a kernel with CONFIG_HUGETLBFS: this one has no pools, and the option has no effect")
            .remedy(thp_instead()));
    }
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let case = pools.fold(case, |case, pool| {
        case.seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
            .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    });
    if let Some(off) = &jvm.off {
        return Ok(case
            .seen(program.file("cmdline"), off, "set")
            .fix(format!(
                "leave {off} out: with it, this JVM takes no page of a pool, whatever the pool holds"
            ))
            .fix(RESTART)
            .remedy(thp_instead()));
    }
    let Some(heap) = largest_heap(program) else {
        return Ok(case
            .fix("set -Xmx: how many pages it needs depends on the maximum of its heap")
            .remedy(thp_instead()));
    };
    Ok(with_pool(evidence, program, jvm, heap, case)?
        .remedy(thp_instead())
        .otherwise("a smaller heap: the machine has no room for this one in the pool"))
}

const RESTART: &str = "then restart the JVM; -Xlog:pagesize shows the page sizes it got";

/// A pool that holds the heap.
fn with_pool(evidence: &Evidence, program: &Program, jvm: &Jvm, heap: Bytes, case: Case) -> Result<Case, Reason> {
    let asked = jvm.named_page(|page| evidence.snapshot.pool(page).is_some());
    let page = asked.or(default_size(evidence).ok()).unwrap_or(Bytes::mib(2));
    let pages = pool_pages(jvm, heap, page);
    // Its own pages are there already, and the rest is what it lacks.
    let missing = pages.saturating_sub(program.hugetlb()?.0 / page.0.max(1));
    let need = || Need::More(page, missing);
    if let Some((size, pages)) = roomier(evidence, jvm, heap, page) {
        let size = size.exact();
        return Ok(case
            .fix(format!(
                "-XX:LargePageSizeInBytes={size} (JDK 17 and later): the JVM asks for the default size, {}, and the pool of {size} has room for its {pages} pages",
                page.exact()
            ))
            .fix(RESTART));
    }
    if let Some(named) = unheard(evidence, jvm, heap) {
        let (size, named) = (page.exact(), named.exact());
        let case = case.fix(format!(
            "JDK 17 or later: of JDK 11 and older LargePageSizeInBytes has no effect on Linux, and the JVM asks for pages of the default size, {size}"
        ));
        return Ok(by_default_size(evidence, case, &named));
    }
    if let Some(pool) = gives_up(evidence, jvm, page)
        .filter(|_| evidence.snapshot.pool(page).and_then(Pool::available) >= Some(missing))
    {
        return Ok(tried_first(evidence, case.wants(page), pool, page));
    }
    let case = case.wants(page);
    let beside = match jvm.kind {
        _ if jvm.has_code_on_base() => "",
        JvmKind::OpenJ9 => " and the code cache",
        _ if page > Bytes::mib(2) => "; the code cache and the collector's tables take pages of 2M",
        JvmKind::HotSpot | JvmKind::Zing => ", the code cache and the collector's tables",
    };
    let sentence = format!(
        "the pool needs {pages} pages of {} for a heap of {heap}{beside}",
        page.exact()
    );
    // The pages of OpenJ9 come by shmget(), which a pool alone does not give.
    let is_alone = jvm.kind != JvmKind::OpenJ9;
    let plan = |case: Case| case.plan_with(need(), format!("jvm:pid={}", program.pid()));
    let case = case.when(is_alone, plan).fix_with(need(), sentence);
    Ok(case
        .raise(evidence, page, missing)
        .when(is_alone, |case| case.fix_with(need(), RESTART)))
}

/// A size that is named to a JVM which takes the default size alone, where that pool has room for the heap.
fn unheard(evidence: &Evidence, jvm: &Jvm, heap: Bytes) -> Option<Bytes> {
    let named = jvm
        .page_size
        .filter(|_| jvm.takes_default_alone() && !jvm.takes_2m_alone())?;
    let room = evidence.snapshot.pool(named)?.available()?;
    (default_size(evidence) != Ok(named) && room >= pool_pages(jvm, heap, named)).then_some(named)
}

/// The pool of the default size without a page, of which HotSpot before 17 tries a page first: where it gets none it asks for no other size either
/// (JDK-8261636).
pub(crate) fn gives_up<'e>(evidence: &'e Evidence, jvm: &Jvm, page: Bytes) -> Option<&'e Pool> {
    let is_old = jvm.kind == JvmKind::HotSpot && jvm.version.is_some_and(|version| version < 17);
    let default = default_size(evidence)
        .ok()
        .filter(|default| is_old && *default != page)?;
    let pool = evidence.snapshot.pool(default)?;
    (PoolState::of(pool).spare == Some(0)).then_some(pool)
}

/// With what gives such a JVM the pages that are there.
fn tried_first(evidence: &Evidence, case: Case, pool: &Pool, page: Bytes) -> Case {
    let (size, named) = (pool.size.exact(), page.exact());
    let case = case.fix(format!(
        "JDK 17 or later: before it the JVM tries a page of the default size, {size}, first, and uses none of {named} where that pool has none free (JDK-8261636)"
    ))
    .fill_as(pool, pool.nr.known().map_or(1, |pages| pages.saturating_add(1)), |command| {
        format!("or a page of {size} for that: {command}")
    });
    by_default_size(evidence, case, &named)
}

fn by_default_size(evidence: &Evidence, case: Case, named: &str) -> Case {
    case.fix(format!(
        "or {}",
        boot_fix(evidence, &format!("default_hugepagesz={named}"))
    ))
    .fix(RESTART)
}

/// Another pool that would hold the heap of a JVM which names no size, and the pages that it takes there. JDK 17 and later ask for the size that
/// is named (JDK-8256155), earlier ones for the default size only.
fn roomier(evidence: &Evidence, jvm: &Jvm, heap: Bytes, page: Bytes) -> Option<(Bytes, u64)> {
    let is_able = jvm.kind == JvmKind::HotSpot && jvm.version.is_none_or(|version| version >= 17);
    let is_free = is_able && jvm.page_size.is_none() && !jvm.takes_2m_alone();
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let mut others = pools.filter(|pool| is_free && pool.size != page);
    others.find_map(|pool| {
        let pages = pool_pages(jvm, heap, pool.size);
        (pool.available()? >= pages).then_some((pool.size, pages))
    })
}

/// What helps without a pool.
fn thp_instead(is_openj9: bool) -> Remedy {
    let text = match is_openj9 {
        true => "or use THP: the policy `madvise` (recent releases advise their memory) or `always`, without -Xlp",
        false => "or use THP: -XX:+UseTransparentHugePages with the policy `madvise`",
    };
    Remedy::new(text).need(Need::HasThp)
}

pub(super) fn step_down(evidence: &Evidence) -> Answer {
    // OpenJ9 tries no smaller sizes in turn.
    let is_hotspot = |jvm: &Jvm| jvm.wants_hugetlb() && jvm.kind != JvmKind::OpenJ9;
    each_jvm(evidence, is_hotspot, |program, jvm| {
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
        .fix_if(
            jvm.takes_default_alone(),
            "JDK 17 or later: of JDK 11 and older LargePageSizeInBytes has no effect on Linux, and the JVM asks for pages of the default size",
        )
        .fix(format!(
            "a pool of {} pages that holds the whole heap, and -Xmx as a multiple of {}",
            asked.exact(),
            asked.exact()
        ))
        .fix("then restart the JVM with -Xlog:pagesize");
        Ok(Some(case))
    })
}
