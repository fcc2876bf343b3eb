//! Pools that are smaller than files or the boot command line request.

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::{Boot, is_packaged, requested};

use super::held::is_held;
use super::memory::{is_starved, shrunk, starves};
use super::usual::MeantFor2m;
use crate::facts::{bytes, default_size, file_name, file_of, known, node_file, persistent, pool_file, pools};
use crate::kept::{apply_again, boot_again, boot_pages};
use crate::remedy::{Need, Remedy, fits_alone, most_pages};
use crate::rule::{Answer, Case, Reason};

/// A request for pages of a pool, and where it is written.
pub(crate) struct Request {
    pub(crate) pages: u64,
    pub(crate) place: String,
    field: String,
}

pub(super) fn pool_short(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let mut cases = Vec::new();
    for pool in pools {
        let Some(request) = request(evidence, pool)? else {
            continue;
        };
        let has = persistent(pool)?;
        if has < request.pages && !is_held(evidence, pool) {
            cases.push(short(evidence, pool, has, &request));
        }
    }
    cases.extend(by_file(evidence)?);
    cases.extend(without_pool(evidence, pools)?);
    if cases.is_empty() {
        known(&evidence.config.boot)?;
        known(&evidence.config.sysctl)?;
        known(&evidence.config.pool_lines)?;
        default_size(evidence)?;
        cases.extend(failed_since_boot(evidence).filter(|_| !is_starved(evidence)));
    }
    Ok(cases)
}

/// Pages of the next boot for which the running kernel has no pool: before 3.16 only the boot line makes one of 1 GiB pages.
fn without_pool(evidence: &Evidence, pools: &[Pool]) -> Result<Vec<Case>, Reason> {
    let Some(next) = &evidence.config.next_boot else {
        return Ok(Vec::new());
    };
    let asked = next.boot.pools.iter();
    let mut asked: Vec<(Bytes, u64)> = asked
        .filter_map(|pool| Some((pool.size?, pool.pages.total())))
        .collect();
    asked.retain(|(size, pages)| *pages > 0 && *size >= Bytes::gib(1) && pools.iter().all(|pool| pool.size != *size));
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

/// A file that is to be put on this machine, and asks for more than it has: the count is of pages of the default size there.
fn by_file(evidence: &Evidence) -> Result<Option<Case>, Reason> {
    if !evidence.has_machine {
        return Ok(None);
    }
    let Some((pages, line)) = evidence.files.sysctl.number("vm.nr_hugepages")? else {
        return Ok(None);
    };
    let pool = evidence.snapshot.pool(default_size(evidence)?);
    let request = Request {
        pages,
        place: line.place.clone(),
        field: "vm.nr_hugepages".to_owned(),
    };
    let too_large = pool.filter(|pool| !fits_alone(evidence, pool.size, pages));
    Ok(too_large.map(|pool| too_much(evidence, pool, &request)))
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

fn short(evidence: &Evidence, pool: &Pool, has: u64, request: &Request) -> Case {
    if !fits_alone(evidence, pool.size, request.pages) {
        return too_much(evidence, pool, request);
    }
    let size = pool.size.exact();
    let missing = request.pages - has;
    let case = Case::sure(format!(
        "{missing} of {} pages of {size} are missing from the pool ({}): programs that start last use base pages or fail",
        request.pages,
        bytes(pool, missing)
    ))
    .wants(pool.size)
    .seen(&request.place, &request.field, request.pages)
    .seen(pool_file(pool, "nr_hugepages"), "", known(&pool.nr).map_or(has, |nr| *nr));
    if starves(evidence, pool) {
        return shrunk(case, evidence, pool, &with_all(evidence, pool, &request.place));
    }
    if pool.size >= Bytes::gib(1) && request.place == "/proc/cmdline" {
        return short_at_boot(evidence, case, pool, has);
    }
    let parameters = format!("hugepagesz={size} hugepages={}", request.pages);
    let need = || Need::pool(pool.size, request.pages);
    let lower = format!(
        "lower the request in {}: beside the other findings of this report the machine has no room for it",
        request.place
    );
    let case = case.plan_with(need(), format!("pool:{size}={}", request.pages));
    let next = evidence.config.next_boot.as_ref();
    let boot = match next.is_some_and(|next| next.place == request.place) {
        true => format!(
            "the running kernel was started without it: {}",
            boot_again(evidence, &parameters)
        ),
        false => boot_pages(evidence, pool.size, request.pages),
    };
    if pool.size >= Bytes::gib(1) {
        return case.fix_with(need(), boot).otherwise(lower);
    }
    case.fix_with(
        need(),
        "sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory",
    )
    .fill(pool, request.pages)
    .fix_with(need(), format!("if it stays short: {boot}"))
    .otherwise(lower)
}

/// More than the machine has: memory is missing, not contiguous memory.
fn too_much(evidence: &Evidence, pool: &Pool, request: &Request) -> Case {
    let total = &evidence.config.total;
    let case = Case::sure(format!(
        "{} pages of {} are {}, more than this machine{} can set aside: its programs lose the memory, and the pool stays short",
        request.pages,
        pool.size.exact(),
        bytes(pool, request.pages),
        total.known().map_or_else(String::new, |total| format!(" of {total}"))
    ))
    .seen(&request.place, &request.field, request.pages)
    .seen("/proc/meminfo", "MemTotal", total)
    .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr);
    match starves(evidence, pool) {
        true => shrunk(case, evidence, pool, &with_all(evidence, pool, &request.place)),
        false => lowered(case.wants(pool.size), evidence, pool, &request.place),
    }
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
        (_, Some(meant)) => {
            let (pages, why) = (meant.pages, meant.why(pool));
            case.fix(format!("lower the request in {place} to {pages}{why}"))
        }
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
    request.is_some_and(|request| is_short(request.pages))
}

/// The request that holds in the end: sysctl.d is applied after boot, for the default size.
pub(crate) fn request(evidence: &Evidence, pool: &Pool) -> Result<Option<Request>, Reason> {
    let default = default_size(evidence).ok();
    if default == Some(pool.size)
        && let Some(files) = evidence.config.sysctl.known()
        && let Some((pages, line)) = files.number("vm.nr_hugepages")?
    {
        return Ok(Some(Request {
            pages,
            place: line.place.clone(),
            field: line.name.clone(),
        }));
    }
    let boot = evidence.config.boot.known();
    let pages = boot.and_then(|boot| boot.pages_of(pool.size, default));
    if let Some(pages) = pages {
        return Ok(Some(Request {
            pages,
            place: "/proc/cmdline".to_owned(),
            field: match boot.and_then(|boot| boot.sysctl.as_ref()) {
                Some(_) if default == Some(pool.size) => "sysctl.vm.nr_hugepages".to_owned(),
                _ => format!("hugepagesz={} hugepages", pool.size.exact()),
            },
        }));
    }
    let lines = evidence.config.pool_lines.known().map_or(&[][..], Vec::as_slice);
    Ok(requested(lines, pool.size, default).map(|line| Request {
        pages: line.pages,
        place: line.place.clone(),
        field: format!("pages of {}", pool.size.exact()),
    }))
}

/// Every place that requests pages of a pool, in words.
pub(super) fn places(evidence: &Evidence, pool: &Pool) -> Option<String> {
    let default = default_size(evidence).ok();
    let sysctl = evidence.config.sysctl.known().filter(|_| default == Some(pool.size));
    let of_files = sysctl.into_iter().flat_map(|files| files.all("vm.nr_hugepages"));
    let mut places: Vec<&str> = of_files.map(|line| line.place.as_str()).collect();
    let others = evidence.config.pool_lines.known().into_iter().flatten();
    let others = others.filter(|line| line.size.or(default) == Some(pool.size));
    places.extend(others.map(|line| line.place.as_str()));
    let boot = evidence.config.boot.known();
    if boot.is_some_and(|boot| boot.pages_of(pool.size, default).is_some()) {
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

fn failed_since_boot(evidence: &Evidence) -> Option<Case> {
    let count = evidence.snapshot.memory.count("htlb_buddy_alloc_fail");
    let failed = *count.known().filter(|count| **count > 0)?;
    Some(
        Case::hint(format!(
            "{failed} attempts since boot to allocate a page for a pool failed; the kernel does not record the request itself"
        ))
        .severity(Severity::Info)
        .seen("/proc/vmstat", "htlb_buddy_alloc_fail", failed)
        .fix("write requests to /etc/sysctl.d or the boot command line, so that they can be compared with the pool")
        .fix("echo 1 > /proc/sys/vm/compact_memory, then request the pages again"),
    )
}

pub(super) fn pool_clobbered(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let files = known(&evidence.config.sysctl)?;
    let mut writers: Vec<(String, String)> = files
        .all("vm.nr_hugepages")
        .map(|line| (line.place.clone(), line.value.clone()))
        .collect();
    let default = default_size(evidence)?;
    let boot = known(&evidence.config.boot)?;
    if let Some(pages) = boot.pages_of(default, Some(default)) {
        writers.insert(0, ("/proc/cmdline".to_owned(), pages.to_string()));
    }
    let mut cases: Vec<Case> = disagreement(evidence, &writers).into_iter().collect();
    cases.extend(pools.iter().filter_map(|pool| overwritten(evidence, pool)));
    Ok(cases)
}

/// Places, in the order in which they are applied, that set the default pool to different values.
pub(crate) fn disagreement(evidence: &Evidence, writers: &[(String, String)]) -> Option<Case> {
    let name = "vm.nr_hugepages";
    let (place, _) = writers
        .last()
        .filter(|(_, last)| writers.iter().any(|(_, value)| value != last))?;
    let case = Case::sure(format!(
        "{} places set {name} to different values; {place} is applied last, and the pool changes when their order does",
        writers.len()
    ));
    let case = writers
        .iter()
        .fold(case, |case, (place, value)| case.seen(place, name, value));
    let case = match place.split_once("/usr/lib/tuned/") {
        Some(("", rest)) => return Some(included(case, rest)),
        _ if is_packaged(place) => masked(case, place),
        _ => case.fix(format!(
            "decide on one value; to keep that of {place}, remove the other lines, else remove this one"
        )),
    };
    Some(case.fix(apply_again(evidence, place).unwrap_or("sysctl --system")))
}

/// A package's profile of tuned wins: a file of its name would have to repeat all of it.
fn included(case: Case, rest: &str) -> Case {
    let profile = rest.rsplit_once('/').map_or(rest, |(profile, _)| profile);
    case.fix(format!(
        "the profile {profile} belongs to a package: write one of your own, /etc/tuned/hugepages/tuned.conf, with `[main]`, `include={profile}`, `[sysctl]` and your value"
    ))
    .fix("tuned-adm profile hugepages")
    .fix("or, where reapply_sysctl is on (/etc/tuned/tuned-main.conf, the default): your value in /etc/sysctl.d/99-hugepages.conf, then systemctl restart tuned")
}

/// A package's file wins: the next update brings it again, so it is hidden or outdone, not edited.
fn masked(case: Case, place: &str) -> Case {
    let (file, name) = (file_of(place), file_name(place));
    case.fix(format!(
        "{file} belongs to a package: hide it with a file of its name and the value that you want, /etc/sysctl.d/{name}"
    ))
    .fix(format!(
        "or give your own file a name that is sorted after {name}, such as /etc/sysctl.d/99-hugepages.conf"
    ))
}

/// Was a value that hugewise applied changed by something else?
fn overwritten(evidence: &Evidence, pool: &Pool) -> Option<Case> {
    let applied = evidence.applied.known()?;
    let all = persistent(pool).unwrap_or(0);
    let changed = |(file, now): (String, u64)| {
        let applied = applied.iter().rfind(|applied| applied.path == file)?;
        (applied.value != now.to_string()).then(|| {
            let again = Remedy::new(format!("find the other writer, then: echo {} > {file}", applied.value));
            // A node's part comes to those of the others.
            let pages = applied.value.parse::<u64>().unwrap_or(u64::MAX);
            let need = Need::pool(pool.size, all.saturating_sub(now).saturating_add(pages));
            Case::sure(format!(
                "hugewise set the pool of {} pages to {}, and it has {now} now: something else writes it too",
                pool.size.exact(),
                applied.value
            ))
            .seen("journal", &applied.path, &applied.value)
            .seen(&file, "", now)
            .remedy(again.need(need))
            .otherwise("find the other writer; memory has no room for what was set beside the other findings")
        })
    };
    let whole = persistent(pool).ok().map(|now| (pool_file(pool, "nr_hugepages"), now));
    let nodes = pool.nodes.known().into_iter().flatten().filter_map(|node| {
        let (nr, surplus) = (node.nr.known()?, node.surplus.or_if_absent(0).ok()?);
        Some((node_file(pool, node.node), nr.saturating_sub(surplus)))
    });
    whole.into_iter().chain(nodes).find_map(changed)
}
