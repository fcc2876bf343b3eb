//! Control groups that limit hugetlb pages.

use model::{Bytes, Cause};
use programs::Evidence;
use programs::{Area, Details, HugetlbLimit, JvmKind, Kind, Limit, Program};

use crate::facts::{each_looked_into, known, persistent, pools, programs};
use crate::rule::{Answer, Case, Reason};

pub(super) fn limit(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    each_looked_into(evidence, |program, _| {
        let Some(groups) = program.cgroup()? else {
            return Ok(None);
        };
        for pool in pools {
            let need = need(program, pool.size)?;
            for limit in groups.limits(pool.size) {
                if let Some(case) = too_low(program, limit, need)? {
                    return Ok(Some(case));
                }
            }
        }
        Ok(None)
    })
}

/// Its hugetlb memory of a page size, mapped or configured.
fn need(program: &Program, page: Bytes) -> Result<Bytes, Reason> {
    if let Some(jvm) = program.jvm()?
        && jvm.wants_hugetlb()
        && jvm.page_size.is_none_or(|size| size == page)
        && let Some(heap) = jvm.heap_max
    {
        return Ok(heap);
    }
    let of_page = program.areas()?.iter().filter(|area| area.hugetlb_page() == Some(page));
    Ok(of_page.map(Area::size).sum())
}

fn too_low(program: &Program, limit: &HugetlbLimit, need: Bytes) -> Result<Option<Case>, Reason> {
    let refused = match &limit.refused {
        model::Reading::Unread(why) if why.unread == Cause::Absent => 0,
        other => *known(other)?,
    };
    let Limit::Bytes(max) = *known(&limit.max)? else {
        return Ok(None);
    };
    if refused == 0 && need.0 <= max {
        return Ok(None);
    }
    let what = if refused > 0 {
        format!(
            "{} was refused hugetlb pages {refused} times: each is a SIGBUS, or a mapping that failed",
            program.title()
        )
    } else {
        format!(
            "{} needs {need} of hugetlb memory and its control group is limited to {}: touching more ends in SIGBUS",
            program.title(),
            Bytes(max)
        )
    };
    let case = if refused > 0 {
        Case::sure(what)
    } else {
        Case::likely(what)
    };
    Ok(Some(
        case.seen(&limit.file, "", Bytes(max))
            .seen(limit.file.replace(".max", ".events"), "max", refused)
            .seen(program.file("smaps"), "hugetlb needed", need)
            .fix(format!(
                "Kubernetes: request hugepages-{}i in the pod's resources",
                limit.page.exact()
            ))
            .fix(format!("elsewhere: echo {} > {}", need.0.max(max), limit.file))
            .fix("or configure the program not to use them (PostgreSQL huge_pages=off, -XX:-UseLargePages)"),
    ))
}

pub(super) fn reservation(evidence: &Evidence) -> Answer {
    let mut filled = Vec::new();
    for pool in pools(evidence)? {
        if persistent(pool)? > 0 {
            filled.push(pool.size);
        }
    }
    if filled.is_empty() {
        return Ok(Vec::new());
    }
    each_looked_into(evidence, |program, _| {
        let Some(groups) = program.cgroup()?.filter(|groups| groups.is_container) else {
            return Ok(None);
        };
        if !may_draw(program)? {
            return Ok(None);
        }
        for &page in &filled {
            let limits: Vec<&HugetlbLimit> = groups.limits(page).collect();
            if let Some(limit) = open_above(&limits)? {
                return Ok(Some(open_case(program, limit)?));
            }
        }
        Ok(None)
    })
}

/// The tightest limit, if more than that can be reserved: the tightest of all levels holds, for each of the two.
fn open_above<'a>(limits: &[&'a HugetlbLimit]) -> Result<Option<&'a HugetlbLimit>, Reason> {
    let (mut tightest, mut reserved) = (None, Limit::Unlimited);
    for &limit in limits {
        let max = *known(&limit.max)?;
        if tightest.is_none_or(|(least, _)| max < least) {
            tightest = Some((max, limit));
        }
        // Before Linux 5.7 there was no limit of reservations.
        if let Ok(max) = known(&limit.reserved_max) {
            reserved = reserved.min(*max);
        }
    }
    Ok(tightest
        .filter(|(max, _)| *max < Limit::Unlimited && reserved > *max)
        .map(|(_, limit)| limit))
}

/// Does it use hugetlb pages, or try to?
fn may_draw(program: &Program) -> Result<bool, Reason> {
    if program.hugetlb()?.0 > 0 {
        return Ok(true);
    }
    let off = || program.details.as_ref().is_some_and(Details::is_off);
    Ok(match known(&program.kind)? {
        Some(Kind::Postgres) => !off(),
        Some(Kind::Jvm) => program
            .jvm()?
            .is_some_and(|jvm| jvm.wants_hugetlb() || jvm.kind == JvmKind::OpenJ9),
        _ => false,
    })
}

fn open_case(program: &Program, limit: &HugetlbLimit) -> Result<Case, Reason> {
    let (max, page) = (*known(&limit.max)?, limit.page.exact());
    let reserved = limit.file.replace(".max", ".rsvd.max");
    Ok(Case::sure(format!(
        "{} can reserve more pages of {page} than the {max} that it may touch: a touch beyond that ends in SIGBUS instead of a fallback",
        program.title()
    ))
    .seen(&limit.file, "", max)
    .seen(&reserved, "", &limit.reserved_max)
    .fix("update the container run-time to one that sets rsvd limits (runc, containerd, Incus: see the link)")
    .fix(format!("until then: cat {} > {reserved}", limit.file))
    .fix("or configure the program not to try (PostgreSQL huge_pages=off)"))
}

pub(super) fn no_controller(evidence: &Evidence) -> Answer {
    if *known(&evidence.snapshot.cgroup.hugetlb)? {
        return Ok(Vec::new());
    }
    let mut pages = 0_u64;
    for pool in pools(evidence)? {
        pages = persistent(pool)?.saturating_add(pages);
    }
    let container = programs(evidence)?.iter().find_map(|program| {
        let groups = program.cgroup().ok()??;
        groups.is_container.then_some((program, groups))
    });
    let Some((program, groups)) = container.filter(|_| pages > 0) else {
        return Ok(Vec::new());
    };
    let case = Case::sure("any container can take all pages of the pools: hugetlb pages cannot be limited here")
        .seen("/sys/fs/cgroup/cgroup.controllers", "hugetlb", "not there")
        .seen(program.file("cgroup"), "", &groups.path)
        .fix("echo +hugetlb > /sys/fs/cgroup/cgroup.subtree_control, if the kernel has the controller (CONFIG_CGROUP_HUGETLB)");
    Ok(vec![case])
}
