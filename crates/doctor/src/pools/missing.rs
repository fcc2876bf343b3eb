//! Pools that files ask for, and that the running kernel does not have: why, and what makes one.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{PoolLine, PoolWrite, Setting};

use crate::facts::{default_size, is_arm, known, pages_for, persistent};
use crate::kept::{boot_again, boot_fix, pool_path};
use crate::remedy::Need;
use crate::rule::{Case, Reason};

/// What asks for pages of a size that has no pool.
pub(super) fn without_pool(evidence: &Evidence, pools: &[Pool]) -> Result<Vec<Case>, Reason> {
    let mut cases = at_next_boot(evidence, pools)?;
    for line in lines(evidence, pools) {
        cases.extend(missing(evidence, pools, &line)?);
    }
    cases.extend(mounts(evidence, pools));
    Ok(cases)
}

/// Units, profiles, scripts and other files that write to a pool of such a size. What is for the next boot is no write.
pub(super) fn lines(evidence: &Evidence, pools: &[Pool]) -> Vec<PoolLine> {
    let own = at_run_time(evidence).cloned();
    let default = default_size(evidence).unwrap_or(Bytes::mib(2));
    let mut all: Vec<PoolLine> = PoolWrite::left(&evidence.files.pool_writes, default);
    all.extend(own);
    let is_missing = |line: &PoolLine| {
        let is_there = |size: Bytes| pools.iter().any(|pool| pool.size == size);
        line.pages > 0 && line.size.is_some_and(|size| !is_there(size))
    };
    // Without any pool the kernel has no hugetlb.
    all.retain(|line| !pools.is_empty() && is_missing(line));
    all
}

/// Requests of files that hold while the machine runs, and not from the next boot on.
pub(super) fn at_run_time(evidence: &Evidence) -> impl Iterator<Item = &PoolLine> {
    let next = evidence.config.next_boot.as_ref();
    let own = evidence.config.pool_lines.known().into_iter().flatten();
    own.filter(move |line| next.is_none_or(|next| next.place != line.place))
}

/// Pages of the next boot for which the running kernel has no pool.
fn at_next_boot(evidence: &Evidence, pools: &[Pool]) -> Result<Vec<Case>, Reason> {
    let Some(next) = &evidence.config.next_boot else {
        return Ok(Vec::new());
    };
    let asked = next.boot.pools.iter();
    let mut asked: Vec<(Bytes, u64)> = asked
        .filter_map(|pool| Some((pool.size?, pool.pages.total())))
        .collect();
    let is_made = |size: Bytes| size >= Bytes::gib(1) || evidence.snapshot.is_made_at_boot(size);
    asked.retain(|(size, pages)| *pages > 0 && is_made(*size) && pools.iter().all(|pool| pool.size != *size));
    if asked.is_empty() || !*known(&evidence.snapshot.cpu.has("pdpe1gb"))? {
        return Ok(Vec::new());
    }
    let cases = asked.into_iter().map(|(size, pages)| {
        let size = size.exact();
        let parameters = format!("hugepagesz={size} hugepages={pages}");
        Case::sure(format!(
            "{pages} pages of {size} are asked for at boot, and the running kernel was started without them"
        ))
        .seen(&next.place, format!("hugepagesz={size} hugepages"), pages)
        .seen("/sys/kernel/mm/hugepages", format!("pool of {size}"), "none")
        .fix(boot_again(evidence, &parameters))
    });
    Ok(cases.collect())
}

/// One line whose write fails. Pages of 1G that the CPU does not offer are another rule's.
fn missing(evidence: &Evidence, pools: &[Pool], line: &PoolLine) -> Result<Option<Case>, Reason> {
    let Some(size) = line.size else { return Ok(None) };
    let snapshot = &evidence.snapshot;
    if size == Bytes::gib(1) && !is_arm(evidence)? && !*known(&snapshot.cpu.has("pdpe1gb"))? {
        return Ok(None);
    }
    let (name, pages, place) = (size.exact(), line.pages, &line.place);
    let sizes: Vec<String> = pools.iter().map(|pool| pool.size.exact()).collect();
    let case = Case::sure(format!(
        "this kernel has no pool of {name}: none of the {pages} pages that {place} asks for can be allocated"
    ))
    .seen(place, format!("pages of {name}"), pages)
    .seen("/sys/kernel/mm/hugepages", "sizes", sizes.join(" "));
    Ok(Some(match snapshot.is_made_at_boot(size) {
        true => {
            let pages = if size >= Bytes::gib(1) { pages } else { 0 };
            let then = format!("{place} sets the pages after the reboot, and stays as it is");
            named_at_boot(case, evidence, size, pages).fix_if(pages == 0, then)
        }
        false => in_other_pages(case, pools, size, pages),
    }))
}

/// An older kernel makes this pool where its boot line names the size (hugetlb_init()). Pages of 1G it allocates at boot only.
fn named_at_boot(case: Case, evidence: &Evidence, size: Bytes, pages: u64) -> Case {
    let boot = evidence.config.boot.known();
    let default = boot.and_then(|boot| boot.default_size).map(Bytes::exact);
    let since = if size >= Bytes::gib(1) { "3.16" } else { "5.8" };
    let parameters = format!("hugepagesz={} hugepages={pages}", size.exact());
    case.with(kept(evidence, size), Case::wants).with(default, |case, default| {
        case.seen("/proc/cmdline", "default_hugepagesz", default)
    })
    .seen("/proc/sys/kernel/osrelease", "", &evidence.snapshot.kernel.release)
    .fix_with(Need::Pool(size, pages), format!(
        "Linux before {since} makes this pool only if the boot line names its size, with each count behind its own size: {}",
        boot_fix(evidence, &parameters)
    ))
    .otherwise("ask for fewer pages: the machine has no room for such a pool beside the other findings")
}

/// The pool beside this one that the new boot line keeps.
fn kept(evidence: &Evidence, page: Bytes) -> Option<Bytes> {
    let (boot, default) = (evidence.config.boot.known()?, default_size(evidence).ok());
    let mut others = evidence.snapshot.pools.known()?.iter().map(|pool| pool.size);
    others.find(|size| *size != page && boot.pages_of(*size, default) > Some(0))
}

/// Mounts of a size that has no pool.
fn mounts(evidence: &Evidence, pools: &[Pool]) -> Vec<Case> {
    let lines = evidence.config.hugetlb_mounts.known().into_iter().flatten();
    let sizes: Vec<String> = pools.iter().map(|pool| pool.size.exact()).collect();
    let case = |line: &Setting| {
        let size: Bytes = line.value.parse().ok()?;
        if pools.is_empty() || pools.iter().any(|pool| pool.size == size) {
            return None;
        }
        let mut optional = evidence.config.optional_mounts.known().into_iter().flatten();
        let stops = match optional.any(|own| own.place == line.place) {
            true => "",
            false => ", and the boot may stop for it",
        };
        let case = Case::sure(format!(
            "this kernel has no pool of {}: the mount of {} fails{stops}",
            size.exact(),
            line.name
        ))
        .seen(&line.place, "pagesize", &line.value)
        .seen("/sys/kernel/mm/hugepages", "sizes", sizes.join(" "));
        let (case, or) = match evidence.snapshot.is_made_at_boot(size) {
            true => (named_at_boot(case, evidence, size, 0), "or "),
            false => (case, ""),
        };
        Some(case.fix(format!(
            "{or}name a size in {} that this kernel has ({})",
            line.place,
            sizes.join(", ")
        )))
    };
    lines.filter_map(case).collect()
}

/// The same memory in pages that there are: the next smaller size, or else the smallest.
pub(super) fn in_other_pages(case: Case, pools: &[Pool], size: Bytes, pages: u64) -> Case {
    let smaller = pools
        .iter()
        .filter(|pool| pool.size < size)
        .max_by_key(|pool| pool.size);
    let other = smaller.or_else(|| pools.iter().min_by_key(|pool| pool.size));
    case.with(other, |case, pool| {
        let page = pool.size;
        let (more, has) = (
            pages_for(Bytes(size.0.saturating_mul(pages)), page),
            persistent(pool).unwrap_or(0),
        );
        let instead = more.saturating_add(has);
        let beside = match has {
            0 => String::new(),
            has => format!(", {more} beside the {has} that are there"),
        };
        let text = format!(
            "write the same memory in pages of {}{beside}: echo {instead} > {}",
            page.exact(),
            pool_path(page)
        );
        case.fix_with(Need::Pool(page, instead), text)
    })
    .otherwise("take the line out: the machine has no room for so many pages of another size")
}
