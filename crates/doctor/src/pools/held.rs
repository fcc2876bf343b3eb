//! A pool that programs hold, and that leaves the rest of a small machine too little.

use host::processes::taken_of_pool;
use host::snapshot::Pool;
use model::Bytes;
use programs::size::mysql::{Innodb, innodb};
use programs::{Evidence, Kind, Program};

use super::asked::places;
use crate::facts::{by_pool, bytes, largest, persistent, pool_file, sum, total};
use crate::rule::{Answer, Case, Reason};

/// The largest pool, and what is in swap, where pools have more than half of the memory and the other half does not do for the rest.
fn held(evidence: &Evidence) -> Result<Option<(&Pool, Bytes)>, Reason> {
    let total = total(evidence)?;
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let Some(swapped) = swapped(evidence) else {
        return Ok(None);
    };
    let pools = by_pool(evidence, persistent)?;
    let all = sum(&pools).0;
    let rest = total.0.saturating_sub(all);
    let is_short = all > rest && left.0 < rest / 10 && swapped.0 >= rest / 4;
    Ok(largest(pools).filter(|_| is_short).map(|(pool, _)| (pool, swapped)))
}

/// What is in swap.
pub(super) fn swapped(evidence: &Evidence) -> Option<Bytes> {
    let swap = |name: &str| evidence.snapshot.memory.get(name).known().copied();
    Some(Bytes(swap("SwapTotal")?.0.saturating_sub(swap("SwapFree")?.0)))
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
    let who = holder.map_or_else(|| "programs".to_owned(), |(program, _)| program.title());
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
    let most = (total.0 / 10 * 9).saturating_sub(needed);
    let case = match holder.and_then(|holder| less(holder, most, pool)) {
        Some((setting, pages)) => {
            let lower = |case: Case, places| case.fix(format!("and lower the request in {places} to {pages}"));
            case.fix(format!("give {who} less memory: {setting}; then restart it"))
                .fix(format!("then echo {pages} > {}", pool_file(pool, "nr_hugepages")))
                .with(places(evidence, pool), lower)
                .fix("or a larger machine, for which all numbers stay as they are")
        }
        None => case.fix("stop or move a program that uses the pool, or take a larger machine"),
    };
    Ok(vec![case])
}

/// The program that maps nearly all that is taken of a pool, with the bytes: where several share it, none has to give way alone.
fn holder<'e>(evidence: &'e Evidence, pool: &Pool) -> Option<(&'e Program, u64)> {
    let taken = bytes(pool, pool.taken()?).0;
    let mapped = |program: &Program| taken_of_pool(program.areas().unwrap_or_default(), pool.size).0;
    let all = evidence.programs.known()?.iter();
    let most = all
        .map(|program| (program, mapped(program)))
        .max_by_key(|(_, own)| *own);
    most.filter(|(_, own)| *own > 0 && *own >= taken / 10 * 9)
}

/// How a program asks for less, so that a pool needs no more than `most`, and the pages of that pool then; `None` where nothing is left
/// for it, or it has no more.
fn less((holder, own): (&Program, u64), most: u64, pool: &Pool) -> Option<(String, u64)> {
    let page = pool.size;
    let others = pool.taken()?.saturating_sub(own / page.0.max(1));
    let most = most.saturating_sub(others.saturating_mul(page.0));
    let step = if most >= Bytes::mib(256).0 {
        Bytes::mib(128).0
    } else {
        Bytes::mib(16).0
    };
    // The rest is what such programs take beside their buffers.
    let size = Bytes(most / 8 * 7 / step * step);
    let mib = size.0 >> 20;
    if mib == 0 || most < page.0 || most >= own {
        return None;
    }
    let setting = match holder.kind.known().copied().flatten() {
        Some(Kind::Mysql) => format!("innodb_buffer_pool_size = {mib}M"),
        Some(Kind::Postgres) => format!("shared_buffers = {mib}MB"),
        Some(Kind::Oracle) => format!("sga_target = {mib}M"),
        Some(Kind::Jvm) => format!("-Xmx{mib}m"),
        _ => format!("{mib} MiB or less"),
    };
    let innodb_of = holder.details.as_ref().and_then(|details| details.innodb);
    let counted = innodb_of.and_then(|own| {
        let smaller = Innodb {
            pool: size,
            pool_max: own.pool_max.map(|_| size),
            ..own
        };
        innodb(&smaller, page).ok()?.whole("pages")
    });
    let pages = counted.unwrap_or(most / page.0.max(1));
    Some((setting, pages.saturating_add(others)))
}
