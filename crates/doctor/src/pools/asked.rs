//! Pools that are smaller than files or the boot command line request.

use std::collections::BTreeMap;

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::{Boot, Setting, requested};

use super::held::is_held;
use super::memory::{is_starved, shrunk, starves};
use super::missing::{in_other_pages, without_pool};
use super::usual::MeantFor2m;
use super::writers::is_cut;
use crate::demand::{Demand, Requested, Requests, is_asked_for, waiting};
use crate::facts::{bytes, counted, counted_in, default_size, file_of, known, persistent, pool_file, pools};
use crate::kept::{apply_again, boot_again, boot_pages};
use crate::remedy::{Count, Need, fit_together, fits_alone, hindrance, most_pages};
use crate::rule::{Answer, Case, Reason};

/// So many pages of a pool are requested, by this line.
pub(crate) type Request = (u64, Setting);

pub(super) fn pool_short(evidence: &Evidence) -> Answer {
    let mut cases = Vec::new();
    for pool in counted(evidence)?.iter() {
        let Some(request) = request(evidence, pool)? else {
            continue;
        };
        let has = persistent(pool)?;
        if has < request.0 && !is_held(evidence, pool) && !is_cut(evidence, pool) {
            cases.push(short(evidence, pool, has, &request));
        }
    }
    cases.extend(by_files(evidence)?);
    match pools(evidence) {
        Ok(pools) => cases.extend(without_pool(evidence, pools)?),
        Err(reason) if cases.is_empty() => return Err(reason),
        Err(_) => {}
    }
    cases.extend(beyond_node(evidence));
    if cases.is_empty() {
        known(&evidence.config.boot)?;
        known(&evidence.config.sysctl)?;
        known(&evidence.config.pool_lines)?;
        // What a file asks for has a finding of its own, with that counter.
        let is_known = is_asked_for(evidence, default_size(evidence)?).unwrap_or(false);
        if !is_known && !is_starved(evidence) {
            cases.extend(failed_since_boot(evidence)?);
        }
    }
    Ok(cases)
}

/// What the allocator of Nitro enclaves cannot get: it takes all of it from the node of the enclave's CPUs, or gives back what it got.
fn beyond_node(evidence: &Evidence) -> Option<Case> {
    let set = evidence.config.enclaves.as_ref()?;
    let asked = Bytes(set.value.parse::<u64>().ok()?.checked_mul(1 << 20)?);
    let nodes = evidence.snapshot.topology.nodes.known()?.iter();
    let totals = nodes.map(|node| node.meminfo.known()?.get("MemTotal").known().copied());
    let most = totals.collect::<Option<Vec<Bytes>>>()?.into_iter().max()?;
    let case = Case::sure(format!(
        "nitro-enclaves-allocator takes {asked} from one NUMA node, and no node has more than {most}: it gives back what it got, and no \
         enclave starts"
    ))
    .seen_line(set)
    .seen("/sys/devices/system/node", "MemTotal of the largest node", most)
    .fix(format!(
        "memory_mib well below {} in {}, then: systemctl restart nitro-enclaves-allocator",
        most.0 >> 20,
        set.place
    ))
    .fix("or an instance whose nodes have more memory");
    (asked >= most).then_some(case)
}

/// Files that are to be put on this machine, and ask for more than it has: of one pool, or of all together. A boot line makes all pools anew.
fn by_files(evidence: &Evidence) -> Answer {
    if !evidence.has_machine {
        return Ok(Vec::new());
    }
    let requests = Requests::of(evidence)?;
    let by_size = &requests.by_size;
    let is_beside = evidence.files.boot.is_empty();
    let pages: BTreeMap<Bytes, u64> = by_size.iter().map(|(size, own)| (*size, own.pages)).collect();
    let fit = |asked: &BTreeMap<Bytes, u64>| fit_together(evidence, asked, is_beside);
    let pool = |size: &Bytes| evidence.snapshot.pool(*size);
    let too_large = by_size
        .iter()
        .filter(|(size, own)| !fit(&BTreeMap::from([(**size, own.pages)])));
    let too_large =
        too_large.filter_map(|(size, own)| Some(too_much(evidence, pool(size)?, own.pages, &own.line, None)));
    let mut cases: Vec<Case> = too_large.collect();
    if cases.is_empty() && !fit(&pages) {
        let largest = by_size
            .iter()
            .max_by_key(|(size, own)| size.0.saturating_mul(own.pages));
        let others = |largest: &Bytes| {
            let others = pages.iter().filter(|(size, _)| *size != largest);
            others.map(|(size, pages)| Bytes(size.0.saturating_mul(*pages))).sum()
        };
        let case = largest.and_then(|(size, own)| {
            Some(too_much(
                evidence,
                pool(size)?,
                own.pages,
                &own.line,
                Some(others(size)),
            ))
        });
        cases.extend(case);
    }
    let waiting = waiting(evidence, &requests);
    let not_yet = by_size
        .iter()
        .filter_map(|(size, own)| not_yet(evidence, pool(size)?, own, &waiting));
    cases.extend(not_yet);
    Ok(cases)
}

/// Files that request the pages of their own programs, as long as the machine does not have them. A script makes them before its program starts.
fn not_yet(evidence: &Evidence, pool: &Pool, own: &Requested, waiting: &[(Bytes, Demand)]) -> Option<Case> {
    let place = &own.line.place;
    let mut waiting = waiting.iter().filter(|(size, _)| *size == pool.size);
    let (_, first) = waiting.find(|(_, demand)| file_of(&demand.seen.place) != file_of(place))?;
    let (file, field) = counted_in(evidence, pool);
    let size = pool.size.exact();
    let how = apply_again(evidence, place).map_or_else(String::new, |command| format!(" ({command})"));
    let case = Case::sure(format!(
        "{place} asks for {} pages of {size}, which {} needs, and the machine has {} until it is applied",
        own.pages,
        first.who,
        known(&pool.nr).map_or(0, |nr| *nr)
    ))
    .severity(Severity::Info)
    .wants(pool.size)
    .seen_line(&own.line)
    .seen_line(&first.seen)
    .seen(file, field, &pool.nr);
    Some(case.fix_with(
        Need::Pool(pool.size, own.pages),
        format!(
            "apply {place} before {} starts{how}, and read nr_hugepages after it",
            first.who
        ),
    ))
}

/// Gigabytes that the boot line itself did not get: no later request gets them either, unless memory was set aside for that.
fn short_at_boot(evidence: &Evidence, case: Case, pool: &Pool, has: u64) -> Case {
    let size = pool.size.exact();
    let boot = evidence.config.boot.known();
    if let Some(cma) = boot.and_then(Boot::cma_at_run_time) {
        let file = pool_file(pool, "nr_hugepages");
        return case.fix(format!(
            "with hugetlb_cma={cma} the kernel makes no pages of {size} at boot: have a unit fill the pool from that memory at each boot \
             (echo PAGES > {file}), or add hugetlb_cma_only=1 (Linux 6.15 and later), or take hugetlb_cma= out"
        ));
    }
    case.fix(format!(
        "the boot line asks for them already, and memory had no more whole pages of {size}: write hugepagesz={size} hugepages={has} \
         there, or ask for smaller pages in their place"
    ))
}

/// No boot line and no write makes such pages: the kernel finds them in the device tree.
fn short_of_firmware(case: Case, evidence: &Evidence, pool: &Pool, pages: u64) -> Case {
    let size = pool.size.exact();
    let case = case.seen("/proc/cpuinfo", "MMU", "Hash").fix(format!(
        "in a partition with the hash MMU the kernel takes pages of {size} from the hypervisor's list alone: give the partition's profile \
         {pages} huge pages on the HMC (its memory settings), shut the partition down and activate that profile"
    ));
    in_other_pages(
        case,
        evidence.snapshot.pools.known().map_or(&[], Vec::as_slice),
        pool.size,
        pages,
    )
}

fn short(evidence: &Evidence, pool: &Pool, has: u64, (pages, line): &Request) -> Case {
    let (pages, place) = (*pages, &line.place);
    if !fits_alone(evidence, pool.size, pages) {
        return too_much(evidence, pool, pages, line, None);
    }
    let size = pool.size.exact();
    let missing = pages - has;
    let (file, field) = counted_in(evidence, pool);
    // Pages of 1G come at boot.
    let cause = hindrance(evidence, pool.size, has, pages).filter(|_| pool.size < Bytes::gib(1));
    let cause = cause.map_or_else(String::new, |cause| {
        format!("; a request now may stop short again, as {cause}")
    });
    let case = Case::sure(format!(
        "{missing} of {pages} pages of {size} are missing from the pool ({}): programs that start last use base pages or fail{cause}",
        bytes(pool, missing)
    ))
    .wants(pool.size)
    .seen(place, &line.name, pages)
    .seen(file, field, known(&pool.nr).map_or(has, |nr| *nr));
    if evidence.snapshot.pools.is_absent() {
        // Which files it has is not known.
        return case
            .fix("stop programs first and request the pages again, or request them at boot, while memory is free");
    }
    if starves(evidence, pool) {
        return shrunk(case, evidence, pool, &with_all(evidence, pool, place));
    }
    if pool.size >= Bytes::gib(16) && evidence.config.is_hash_partition {
        return short_of_firmware(case, evidence, pool, pages);
    }
    if pool.size >= Bytes::gib(1) && place == "/proc/cmdline" {
        return short_at_boot(evidence, case, pool, has);
    }
    requested_again(evidence, case, pool, (pages, place))
}

/// With a request for them now, and one that comes with the kernel's start.
fn requested_again(evidence: &Evidence, case: Case, pool: &Pool, (pages, place): (u64, &str)) -> Case {
    let (size, whole) = (pool.size.exact(), Count::of(pool.size, pages));
    let parameters = format!("hugepagesz={size} hugepages={whole}");
    let need = || Need::Pool(pool.size, pages);
    let lower = format!(
        "lower the request in {place}: beside the other findings of this report the machine has no room for it"
    );
    let case = case.plan_with(need(), format!("pool:{size}={pages}"));
    let next = evidence.config.next_boot.as_ref();
    let boot = match next.is_some_and(|next| next.place == place) {
        true => format!(
            "the running kernel was started without it: {}",
            boot_again(evidence, &parameters)
        ),
        false => boot_pages(evidence, pool.size, whole),
    };
    if pool.size >= Bytes::gib(1) {
        return case.fix_with(need(), boot).otherwise(lower);
    }
    // The running kernel has that on its line already.
    let boot = (place != "/proc/cmdline").then(|| format!("if it stays short: {boot}"));
    case.fix_with(
        need(),
        "sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory",
    )
    .fill(pool, pages)
    .with(boot, |case, boot| case.fix_with(need(), boot))
    .otherwise(lower)
}

/// More than the machine has: memory is missing, not contiguous memory. `others` is the memory of other pools that the same files ask for.
fn too_much(evidence: &Evidence, pool: &Pool, pages: u64, line: &Setting, others: Option<Bytes>) -> Case {
    let (total, place) = (&evidence.config.total, &line.place);
    let (file, field) = counted_in(evidence, pool);
    let with_others = others.map_or_else(String::new, |others| {
        format!(" beside the {others} of other pools that these files ask for")
    });
    let case = Case::sure(format!(
        "{pages} pages of {} are {}, more than this machine{} can set aside{with_others}: its programs lose the memory, and the pool stays short",
        pool.size.exact(),
        bytes(pool, pages),
        total.known().map_or_else(String::new, |total| format!(" of {total}"))
    ))
    .seen(place, &line.name, pages)
    .with(beside(evidence, pool, place), |case, pages| case.seen("/proc/cmdline", "hugepages", pages))
    .seen("/proc/meminfo", "MemTotal", total)
    .seen(file, field, &pool.nr);
    match starves(evidence, pool) {
        true => shrunk(case, evidence, pool, &with_all(evidence, pool, place)),
        false => lowered(case.wants(pool.size), evidence, pool, place),
    }
}

/// What the boot line asks for, where another place sets the pool after it.
fn beside(evidence: &Evidence, pool: &Pool, place: &str) -> Option<u64> {
    let boot = evidence.config.boot.known().filter(|_| place != "/proc/cmdline")?;
    boot.pages_of(pool.size, default_size(evidence).ok())
}

/// With what a request may be at most, beside what runs now.
fn lowered(case: Case, evidence: &Evidence, pool: &Pool, place: &str) -> Case {
    let size = pool.size.exact();
    let needed = match pool.taken() {
        None => "request what programs need (hugewise size); how many they use now could not be read".to_owned(),
        Some(0) => {
            "no program uses any now: request what the program needs that the pool is for (hugewise size)".to_owned()
        }
        Some(used) => format!("programs use or reserve {used} now"),
    };
    match (most_pages(evidence, pool).unwrap_or(0), MeantFor2m::of(evidence, pool)) {
        (_, Some(meant)) => meant.lowered(case, evidence, pool, ("lower", place, meant.pages)),
        (0, None) => case.fix(format!(
            "remove the request in {place}: beside the programs that run now, no page of {size} leaves a tenth of the memory"
        )),
        (most, None) => case.fix(format!("lower the request in {place}: {needed}")).fix(format!(
            "beside the programs that run now, at most {most} pages of {size} leave a tenth of the memory"
        )),
    }
}

/// Are these pages the part that there is of a larger pool, which the machine could have?
pub(super) fn is_part(evidence: &Evidence, pool: &Pool) -> bool {
    // Another file than those that can be read may ask for less.
    let config = &evidence.config;
    let is_read =
        config.sysctl.known().is_some() && config.pool_lines.known().is_some() && crate::facts::total(evidence).is_ok();
    let request = request(evidence, pool).ok().flatten().filter(|_| is_read);
    let is_short = |asked: u64| persistent(pool).is_ok_and(|has| has < asked) && fits_alone(evidence, pool.size, asked);
    request.is_some_and(|(pages, _)| is_short(pages))
}

/// The request that holds in the end: sysctl.d is applied after boot, for the default size.
pub(crate) fn request(evidence: &Evidence, pool: &Pool) -> Result<Option<Request>, Reason> {
    let default = default_size(evidence).ok();
    if default == Some(pool.size)
        && let Some(files) = evidence.config.sysctl.known()
        && let Some((pages, line)) = files.number("vm.nr_hugepages")?
    {
        return Ok(Some((pages, line.clone())));
    }
    let boot = evidence.config.boot.known();
    let pages = boot.and_then(|boot| boot.pages_of(pool.size, default));
    if let Some(pages) = pages {
        let name = match boot.and_then(|boot| boot.sysctl.as_ref()) {
            Some(_) if default == Some(pool.size) => "sysctl.vm.nr_hugepages".to_owned(),
            _ => format!("hugepagesz={} hugepages", pool.size.exact()),
        };
        return Ok(Some((pages, Setting::new("/proc/cmdline", name, pages.to_string()))));
    }
    let lines = evidence.config.pool_lines.known().map_or(&[][..], Vec::as_slice);
    Ok(requested(lines, pool.size, default).map(|line| {
        let name = format!("pages of {}", pool.size.exact());
        (line.pages, Setting::new(&line.place, name, line.pages.to_string()))
    }))
}

/// Every place that requests pages of a pool, in words.
pub(crate) fn places(evidence: &Evidence, pool: &Pool) -> Option<String> {
    let default = default_size(evidence).ok();
    let sysctl = evidence.config.sysctl.known().filter(|_| default == Some(pool.size));
    let of_files = sysctl.into_iter().flat_map(|files| files.all("vm.nr_hugepages"));
    let mut places: Vec<&str> = of_files.map(|line| line.place.as_str()).collect();
    let others = evidence.config.pool_lines.known().into_iter().flatten();
    let others = others.filter(|line| line.size.or(default) == Some(pool.size));
    places.extend(others.map(|line| line.place.as_str()));
    let boot = evidence.config.boot.known();
    // What the next boot line is made of is the place to edit.
    let next = evidence.config.next_boot.as_ref();
    let is_there = next.is_some_and(|next| places.contains(&next.place.as_str()));
    if !is_there && boot.is_some_and(|boot| boot.pages_of(pool.size, default).is_some()) {
        places.push("the boot command line");
    }
    (!places.is_empty()).then(|| places.join(" and "))
}

/// That place, which a file may be that was given, with all others that request pages of the pool.
fn with_all(evidence: &Evidence, pool: &Pool, place: &str) -> String {
    match places(evidence, pool) {
        Some(all) if place == "/proc/cmdline" || all.contains(place) => all,
        Some(all) => format!("{all} and {place}"),
        None => place.to_owned(),
    }
}

fn failed_since_boot(evidence: &Evidence) -> Result<Option<Case>, Reason> {
    let failed = evidence
        .snapshot
        .memory
        .count("htlb_buddy_alloc_fail")
        .or_if_absent(0)?;
    let case =
        Case::hint(format!(
            "{failed} attempts since boot to allocate a page for a pool failed; the kernel does not record the request itself"
        ))
        .severity(Severity::Info)
        .seen("/proc/vmstat", "htlb_buddy_alloc_fail", failed)
        .fix("write requests to /etc/sysctl.d or the boot command line, so that they can be compared with the pool")
        .fix("request the pages again after this: echo 1 > /proc/sys/vm/compact_memory");
    Ok((failed > 0).then_some(case))
}
