//! A pool that programs hold, and that leaves the rest of a small machine too little.

use host::snapshot::Pool;
use model::Bytes;
use programs::size::mysql::{Innodb, innodb};
use programs::{Evidence, Kind, Program};

use super::asked::places;
use crate::facts::{bytes, persistent, pool_file, pools, total};
use crate::rule::{Answer, Case, Reason};

/// The largest pool, and what is in swap, where pools have more than half of the memory and the other half does not do for the rest.
fn held(evidence: &Evidence) -> Result<Option<(&Pool, Bytes)>, Reason> {
    let total = total(evidence)?;
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let swap = |name: &str| evidence.snapshot.memory.get(name).known().copied();
    let Some((swap, unused)) = swap("SwapTotal").zip(swap("SwapFree")) else {
        return Ok(None);
    };
    let swapped = Bytes(swap.0.saturating_sub(unused.0));
    let (mut all, mut largest): (u64, Option<(&Pool, u64)>) = (0, None);
    for pool in pools(evidence)? {
        let own = bytes(pool, persistent(pool)?).0;
        all = all.saturating_add(own);
        if largest.is_none_or(|(_, most)| own > most) {
            largest = Some((pool, own));
        }
    }
    let rest = total.0.saturating_sub(all);
    let is_short = all > rest && left.0 < rest / 10 && swapped.0 >= rest / 4;
    Ok(largest.filter(|_| is_short).map(|(pool, _)| (pool, swapped)))
}

/// Is it such a pool? More pages, or all of them again, make it worse.
pub(super) fn is_held(evidence: &Evidence, pool: &Pool) -> bool {
    let held = held(evidence).ok().flatten();
    held.is_some_and(|(own, _)| own.size == pool.size)
}

pub(super) fn pool_held(evidence: &Evidence) -> Answer {
    let Some((pool, swapped)) = held(evidence)? else {
        return Ok(Vec::new());
    };
    let (total, has) = (total(evidence)?, bytes(pool, persistent(pool)?));
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let holder = holder(evidence, pool);
    let who = holder.map_or_else(|| "programs".to_owned(), Program::title);
    let case = Case::sure(format!(
        "{left} of {total} is left beside {has} in the pool of {} pages, which {who} uses or reserves: {swapped} is in swap",
        pool.size.exact()
    ))
    .seen("/proc/meminfo", "MemAvailable", left)
    .seen("/proc/meminfo", "MemTotal", total)
    .seen("/proc/meminfo", "swap in use", swapped)
    .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    .seen(pool_file(pool, "resv_hugepages"), "", &pool.reserved);
    // What is outside of the pool now, and a tenth to spare.
    let needed = total.0.saturating_sub(has.0).saturating_add(swapped.0);
    let most = (total.0 / 10 * 9).saturating_sub(needed).min(total.0 / 2);
    let case = match less(holder, most, pool.size) {
        Some((setting, pages)) => {
            let places = places(evidence, pool);
            let lower = places
                .as_ref()
                .map(|places| format!("and lower the request in {places} to {pages}"));
            case.fix(format!("give {who} less memory: {setting}; then restart it"))
                .fix(format!("then echo {pages} > {}", pool_file(pool, "nr_hugepages")))
                .fix_if(lower.is_some(), lower.unwrap_or_default())
        }
        None => case,
    };
    Ok(vec![
        case.fix("or a larger machine, for which all numbers stay as they are"),
    ])
}

/// The program that maps most of a pool.
fn holder<'e>(evidence: &'e Evidence, pool: &Pool) -> Option<&'e Program> {
    let mapped = |program: &Program| -> u64 {
        let areas = program.areas().unwrap_or_default().iter();
        let own = areas.filter(|area| area.hugetlb_page() == Some(pool.size));
        own.map(|area| area.size().0).sum()
    };
    let all = evidence.programs.known()?.iter();
    all.filter(|program| mapped(program) > 0)
        .max_by_key(|program| mapped(program))
}

/// How a program asks for no more than that, and the pages that it needs then; `None` where nothing is left for it.
fn less(holder: Option<&Program>, most: u64, page: Bytes) -> Option<(String, u64)> {
    let step = if most >= Bytes::mib(256).0 {
        Bytes::mib(128).0
    } else {
        Bytes::mib(16).0
    };
    // The rest is what such programs take beside their buffers.
    let size = Bytes(most / 8 * 7 / step * step);
    let mib = size.0 >> 20;
    if mib == 0 || most < page.0 {
        return None;
    }
    let setting = match holder.and_then(|program| program.kind.known().copied().flatten()) {
        Some(Kind::Mysql) => format!("innodb_buffer_pool_size = {mib}M"),
        Some(Kind::Postgres) => format!("shared_buffers = {mib}MB"),
        Some(Kind::Oracle) => format!("sga_target = {mib}M"),
        Some(Kind::Jvm) => format!("-Xmx{mib}m"),
        _ => format!("{mib} MiB or less"),
    };
    let own = holder.and_then(|program| program.details.as_ref()?.innodb);
    let counted = own.and_then(|own| {
        let smaller = Innodb {
            pool: size,
            pool_max: own.pool_max.map(|_| size),
            ..own
        };
        innodb(&smaller, page).ok()?.whole("pages")
    });
    Some((setting, counted.unwrap_or(most / page.0.max(1))))
}
