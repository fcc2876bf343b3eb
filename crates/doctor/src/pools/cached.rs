//! Idle pools beside programs that map more of files than the page cache can hold.

use std::collections::BTreeMap;

use host::snapshot::Pool;
use model::Bytes;
use programs::{Area, Evidence, Program};

use super::asked::places;
use super::path::mapped;
use crate::facts::{available, by_pool, bytes, persistent, pool_file, running, sum, total};
use crate::remedy::Need;
use crate::rule::answers::readable;
use crate::rule::{Case, Reason};

/// What a program maps of files, and how much of that is resident.
struct Mapped<'e> {
    program: &'e Program,
    all: Bytes,
    resident: Bytes,
}

impl<'e> Mapped<'e> {
    fn of(program: &'e Program) -> Result<Self, Reason> {
        let is_file = |area: &&Area| {
            let is_named = area.name.starts_with('/') && !area.name.starts_with("/dev/");
            is_named && area.inode != 0 && !area.is_hugetlb() && !area.is_shmem()
        };
        let areas = program.areas()?.iter().filter(is_file);
        let mut files: BTreeMap<(&str, u64, u64), (Bytes, Bytes)> = BTreeMap::new();
        for area in areas {
            let own = (area.size(), area.resident().unwrap_or(area.size()));
            files.insert((&area.device, area.inode, area.offset), own);
        }
        let all = files.values().map(|(size, _)| *size).sum();
        let resident = files.values().map(|(_, resident)| *resident).sum();
        Ok(Self { program, all, resident })
    }
}

/// A pool of which next to nothing is in use, where a program reads its files again and again for want of that memory.
pub(super) fn beside_files(evidence: &Evidence, pool: &Pool) -> Result<Option<Case>, Reason> {
    let (has, free, total) = (persistent(pool)?, available(pool)?, total(evidence)?);
    let idle = bytes(pool, free);
    let is_idle = has.saturating_sub(free).saturating_mul(50) <= has;
    if !is_idle || idle.0 < total.0 / 10 {
        return Ok(None);
    }
    let left = total.0.saturating_sub(sum(&by_pool(evidence, persistent)?).0);
    let is_short = |mapped: &Mapped<'_>| mapped.all.0 > left && mapped.resident.0 < mapped.all.0 / 10 * 9;
    let (all, unread) = readable(running(evidence).map(Mapped::of));
    let all = all.into_iter().filter(is_short);
    match (all.max_by_key(|mapped| mapped.all), unread) {
        (Some(most), _) => Ok(Some(case(evidence, pool, idle, &most))),
        (None, Some(why)) => Err(why),
        (None, None) => Ok(None),
    }
}

/// Pages that programs have: those that none maps go with the pool, as soon as what holds them ends.
fn used(evidence: &Evidence, pool: &Pool) -> u64 {
    let taken = pool.taken().unwrap_or(0);
    let is_mapped = mapped(evidence).map_or(true, |mapped| mapped.0 > 0);
    let is_promised = pool.reserved.known().is_none_or(|reserved| *reserved > 0);
    if is_mapped || is_promised { taken } else { 0 }
}

fn case(evidence: &Evidence, pool: &Pool, idle: Bytes, mapped: &Mapped<'_>) -> Case {
    let Mapped { program, all, resident } = mapped;
    let (file, used) = (pool_file(pool, "nr_hugepages"), used(evidence, pool));
    let unwanted = || Need::Unwanted(pool.size);
    Case::likely(format!(
        "{idle} in the pool of {} pages is idle, and {} maps {all} of files, of which {resident} is resident: a pool holds no files, and takes this memory from the page cache",
        pool.size.exact(),
        program.title()
    ))
    .seen(&file, "", &pool.nr)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    .seen("/proc/meminfo", "MemTotal", &evidence.snapshot.memory.get("MemTotal"))
    .seen(program.file("smaps"), "mapped files", all)
    .seen(program.file("smaps"), "resident of them", resident)
    .fix_with(unwanted(), format!("give the pool back: echo {used} > {file}"))
    .with(places(evidence, pool), |case, places| {
        case.fix_with(unwanted(), format!("and lower the request in {places} to {used}"))
    })
    .fix("or start the program that the pool is meant for: it has to ask for the pages, which mapping a file does not")
}
