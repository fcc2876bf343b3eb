//! How pools, or their absence, affect the rest of memory.

use std::collections::BTreeMap;

use host::snapshot::{Feature, Pool};
use model::{Bytes, Cause, Reading};
use programs::config::{Instance, Parameters, Setting};
use programs::size::oracle;
use programs::{Area, Evidence, Kind, Program};

use super::asked::{places, request};
use super::held::{self, swapped};
use super::meant::{meant_for, of_pods};
use super::usual::MeantFor2m;
use crate::demand::pages_asked;
use crate::facts::{
    available, by_pool, bytes, default_size, known, largest, pages_for, percent, persistent, policy, pool_file,
    running, sum, total,
};
use crate::kept::{boot_again, boot_fix};
use crate::limits::{bars_segments, raised_for};
use crate::remedy::Need;
use crate::rule::{Answer, Case, Reason};

pub(super) fn pool_starves(evidence: &Evidence) -> Answer {
    let Some((pool, unused)) = starving(evidence)? else {
        return held::pool_held(evidence);
    };
    let total = total(evidence)?;
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let case = Case::sure(format!(
        "{left} of {total} is left for programs while {unused} in hugetlb pools is unused: the machine swaps or kills \
         processes"
    ))
    .seen("/proc/meminfo", "MemAvailable", left)
    .seen("/proc/meminfo", "MemTotal", total)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    .seen(pool_file(pool, "resv_hugepages"), "", &pool.reserved);
    Ok(vec![match places(evidence, pool) {
        Some(places) => shrunk(case, evidence, pool, &places),
        None => case.fill(pool, needed(evidence, pool)),
    }])
}

/// The pool with most idle memory, where programs are left with too little beside that, and the idle memory of all pools.
fn starving(evidence: &Evidence) -> Result<Option<(&Pool, Bytes)>, Reason> {
    let total = total(evidence)?;
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let idle = by_pool(evidence, available)?;
    let unused = sum(&idle);
    // A large host leaves its own programs few per cent on purpose. What is in swap comes back as soon as it is used.
    let spare = left.0.saturating_sub(swapped(evidence).map_or(0, |swapped| swapped.0));
    let is_short = percent(left, total) < 5.0 && Bytes(spare) < ENOUGH && unused.0 >= left.0.max(total.0 / 50);
    Ok(largest(idle).filter(|_| is_short).map(|(pool, _)| (pool, unused)))
}

/// Memory on which a host runs whose guests have the rest (ubicloud/ubicloud#5996: 76 MiB are too little, and healthy hosts have over 2 GiB).
const ENOUGH: Bytes = Bytes::gib(2);

/// Is it the pool that A03 wants smaller? No other rule advises to use or to fill it then.
pub(crate) fn starves(evidence: &Evidence, pool: &Pool) -> bool {
    let worst = starving(evidence).ok().flatten();
    worst.is_some_and(|(worst, _)| worst.size == pool.size) || held::is_held(evidence, pool)
}

/// Does a pool leave programs too little? Memory is short then, and no setting of THP mends that.
pub(crate) fn is_starved(evidence: &Evidence) -> bool {
    let mut pools = evidence.snapshot.pools.known().into_iter().flatten();
    pools.any(|pool| starves(evidence, pool))
}

/// Pages of such a pool that stay: those that programs use or reserve, or that files which were given ask for. Guests that come later take
/// what is free now.
fn needed(evidence: &Evidence, pool: &Pool) -> u64 {
    let needed = pool.taken().unwrap_or(0).max(pages_asked(evidence, pool.size));
    let of_guests = enough(evidence, pool).filter(|_| is_for_guests(evidence, pool));
    let needed = of_guests.map_or(needed, |most| most.max(needed));
    let needed = MeantFor2m::of(evidence, pool).map_or(needed, |meant| meant.pages.max(needed));
    persistent(pool).map_or(needed, |has| needed.min(has))
}

/// Does a guest run in it, or does a kubelet give its pages to pods?
fn is_for_guests(evidence: &Evidence, pool: &Pool) -> bool {
    let is_in_it = |area: &Area| area.hugetlb_page() == Some(pool.size);
    let mut guests =
        running(evidence).filter(|program| program.kind.known().copied().flatten().is_some_and(Kind::is_hypervisor));
    of_pods(evidence, pool).is_some() || guests.any(|guest| guest.areas().is_ok_and(|areas| areas.iter().any(is_in_it)))
}

/// With the fixes for such a pool: its other pages go, now and where they are requested.
pub(super) fn shrunk(case: Case, evidence: &Evidence, pool: &Pool, places: &str) -> Case {
    let lower = |case: Case, pages: u64| lowered(case, evidence, pool, places, pages);
    let pages = needed(evidence, pool);
    let hidden = evidence.config.instances.unread();
    if let Some(why) = hidden.filter(|why| pages == 0 && why.unread != Cause::Absent) {
        return case
            .fix(format!(
                "read what Oracle's instances have as their SGA, which is not known here ({why})"
            ))
            .fix(format!(
                "and lower the request in {places} to the pages that they ask for"
            ));
    }
    let Some(most) = half(evidence, pool).filter(|_| pages == 0) else {
        let pages = enough(evidence, pool).map_or(pages, |most| most.max(pages));
        let case = case.fill(pool, pages);
        return match MeantFor2m::of(evidence, pool) {
            Some(meant) => meant.lowered(case, evidence, pool, ("and lower", places, pages)),
            None => lower(case, pages),
        };
    };
    let instances = instances(evidence);
    let asks = |instance: &Instance| oracle(instance.in_granules(), 1, pool.size).ok()?.whole("pages");
    // Each has pages of its own, and the largest can give most.
    let needs: Option<u64> = instances.iter().map(asks).sum();
    let Some((instance, needs)) = instances.iter().max_by_key(|instance| instance.sga).zip(needs) else {
        let program = format!(
            "and give its program no more than {}, half of the memory",
            bytes(pool, most)
        );
        return lower(case.fill(pool, most), most).fix(program);
    };
    let case = instances.iter().fold(case, |case, own| case.seen_line(&own.setting));
    if needs <= most {
        return lower(case.fill(pool, needs), needs);
    }
    // Those that it takes beyond its SGA, and those of the others.
    let beyond = needs.saturating_sub(pages_for(instance.in_granules(), pool.size));
    let sga = Instance::within(bytes(pool, most.saturating_sub(beyond))).0 >> 20;
    let strict = match instance.is_strict {
        true => ": with use_large_pages = ONLY it does not start on fewer pages than it asks for",
        false => "",
    };
    let Setting { place, name, .. } = &instance.setting;
    lower(case.fill(pool, most), most)
        .fix_if(sga > 0, format!("and {name} = {sga}M or less in {place}{strict}"))
        .fix("or a larger machine, for which both numbers stay as they are")
}

/// Instances of Oracle that files of the root describe, with the whole of their SGA.
fn instances(evidence: &Evidence) -> Vec<Instance> {
    let all = evidence.config.instances.known().into_iter().flatten();
    all.filter_map(Parameters::instance).collect()
}

/// With the request of so many pages, and how the defaults of GRUB come to the kernel.
fn lowered(case: Case, evidence: &Evidence, pool: &Pool, places: &str, pages: u64) -> Case {
    let parameters = format!("hugepagesz={} hugepages={pages}", pool.size.exact());
    let next = evidence.config.next_boot.as_ref();
    case.fix(format!("and lower the request in {places} to {pages}"))
        .fix_if(
            next.is_some_and(|next| places.contains(&next.place)),
            format!("for the next boot: {}", boot_again(evidence, &parameters)),
        )
}

/// Of a pool that was filled as it is asked for: the most pages that leave a twentieth of the memory, and room for what is in swap, where those
/// are most of it. A request that the machine cannot meet is no measure.
fn enough(evidence: &Evidence, pool: &Pool) -> Option<u64> {
    let (has, request) = (persistent(pool).ok()?, request(evidence, pool).ok()?);
    let is_met = request.is_none_or(|(asked, _)| has >= asked);
    let left = evidence.snapshot.memory.get("MemAvailable");
    let swapped = swapped(evidence).unwrap_or_default();
    let reserve = (total(evidence).ok()?.0 / 20).saturating_add(swapped.0);
    let bytes = bytes(pool, has)
        .0
        .saturating_add(left.known()?.0)
        .saturating_sub(reserve);
    let pages = bytes / pool.size.0.max(1);
    (is_met && pages < has && pages >= has / 4 * 3).then_some(pages)
}

/// Half of the memory in pages of a pool that is larger and is for a program, as a file says: without any page that program would not
/// start, and with more the others have too little.
fn half(evidence: &Evidence, pool: &Pool) -> Option<u64> {
    let has = persistent(pool).ok()?;
    let pages = total(evidence).ok()?.0 / 2 / pool.size.0.max(1);
    let is_meant = || !instances(evidence).is_empty() || !meant_for(evidence, pool, bytes(pool, has)).is_empty();
    (pages > 0 && pages < has && is_meant()).then_some(pages)
}

/// What descriptors of a smaller pool take is not worth a restart.
const LARGE_POOLS: Bytes = Bytes::gib(64);
/// A descriptor (struct page) of a base page.
const DESCRIPTOR: u64 = 64;
/// Page tables of a smaller segment are not worth a pool.
const WORTH_SHARING: Bytes = Bytes::mib(64);

pub(super) fn whole_descriptors(evidence: &Evidence) -> Answer {
    let base = known(&evidence.snapshot.kernel.base_page)?.0.max(1);
    let pools = by_pool(evidence, persistent)?;
    let all = sum(&pools);
    // One page of descriptors of each huge page stays.
    let each = |page: Bytes| (page.0 / base * DESCRIPTOR).saturating_sub(base);
    let descriptors =
        |(pool, own): &(&Pool, Bytes)| Bytes((own.0 / pool.size.0.max(1)).saturating_mul(each(pool.size)));
    let kept: Bytes = pools.iter().map(descriptors).sum();
    if all < LARGE_POOLS {
        return Ok(Vec::new());
    }
    let setting = "vm.hugetlb_optimize_vmemmap";
    let is_on: Reading<u64> = evidence.snapshot.sysctls.number(setting);
    // A kernel without the setting cannot do without them.
    let Some(0) = is_on.if_present()? else {
        return Ok(Vec::new());
    };
    let case = Case::sure(format!(
        "{kept} of memory describes base pages of pools of {all}, which nothing reads: the kernel can free it"
    ))
    .seen("/proc/sys/vm/hugetlb_optimize_vmemmap", "", 0)
    .seen("/sys/kernel/mm/hugepages", "pages of all pools", all)
    .fix_with(Need::Feature(Feature::FreeVmemmap), boot_fix(evidence, "hugetlb_free_vmemmap=on"))
    .fix_with(
        Need::Sysctl(setting),
        format!("or for pages that are allocated from now on, with the pools emptied and filled again after it: sysctl -w {setting}=1"),
    );
    Ok(vec![case])
}

pub(super) fn page_tables(evidence: &Evidence) -> Answer {
    let total = total(evidence)?;
    let tables = evidence.snapshot.memory.get("PageTables").into_result()?;
    let share = percent(tables, total);
    if share < 2.0 || tables < Bytes::mib(256) {
        return Ok(Vec::new());
    }
    let case = Case::sure(format!("{tables} ({share:.1} % of memory) is spent on page tables")).seen(
        "/proc/meminfo",
        "PageTables",
        tables,
    );
    let all = by_name(evidence);
    let case = all.iter().take(3).fold(case, |case, (of_name, tables)| {
        let (first, field) = (of_name[0], format!("{}: VmPTE", of_name[0].pages.name));
        match of_name.len() {
            1 => case.seen(first.file("status"), field, tables),
            count => case.seen("/proc/*/status", format!("{field} of {count} processes"), tables),
        }
    });
    let has_pools = evidence.snapshot.pools.known().is_some_and(|pools| !pools.is_empty());
    let largest = all.first().filter(|_| has_pools);
    let option = largest.and_then(|(of_name, _)| Some((of_name[0], sharing_option(evidence, of_name)?)));
    let case = case.with(option, |case, (program, option)| {
        case.fix(format!(
            "put the memory of {} on hugetlb pages: {option}",
            program.pages.name
        ))
    });
    let of_oracle = largest.filter(|(of_name, _)| of_name[0].is(Kind::Oracle) == Ok(true));
    let case = match of_oracle {
        Some(_) => pool_for_sga(case, evidence),
        None => case,
    };
    // Oracle asks for `never`.
    let is_oracle = running(evidence).any(|program| program.is(Kind::Oracle) == Ok(true));
    let case = case.when(policy(evidence).as_deref() == Ok("never") && !is_oracle, |case| {
        case.write_as("enabled", "madvise", |command| {
            format!("or allow THP for private memory that is advised: {command}")
        })
    });
    Ok(vec![case.otherwise(
        "find the processes with most of them, and lower their number or their memory",
    )])
}

/// With the pages that hold the largest segment of Oracle on base pages, and the right of its owner to them.
fn pool_for_sga(case: Case, evidence: &Evidence) -> Case {
    let own = running(evidence).filter(|program| program.is(Kind::Oracle) == Ok(true));
    let segments = own.flat_map(|program| {
        let areas = program.areas().unwrap_or_default().iter();
        let is_segment = |area: &&Area| area.is_shared_data() && !area.is_hugetlb();
        areas.filter(is_segment).map(move |area| (program, area))
    });
    let largest = segments.max_by_key(|(_, area)| area.size());
    let pool = default_size(evidence)
        .ok()
        .and_then(|page| evidence.snapshot.pool(page));
    let Some(((program, segment), pool)) = largest.zip(pool) else {
        return case;
    };
    let (sga, size) = (segment.size(), pool.size.exact());
    let needs = oracle(sga, 1, pool.size).ok().and_then(|sizing| sizing.whole("pages"));
    let needs = needs.unwrap_or_else(|| pages_for(sga, pool.size));
    let all = persistent(pool).unwrap_or(0).saturating_add(needs);
    let case = case.seen_mapping(program, segment).fill_as(pool, all, |command| {
        format!("its segment of {sga} needs {needs} pages of {size}: {command}")
    });
    raised_for(evidence, program, case, sga)
}

/// Programs by name, with the page tables of all that have it, the most first.
fn by_name(evidence: &Evidence) -> Vec<(Vec<&Program>, Bytes)> {
    let mut all: BTreeMap<&str, (Vec<&Program>, Bytes)> = BTreeMap::new();
    for program in running(evidence) {
        if let Some(tables) = program.pages.page_tables.known() {
            let (of_name, sum) = all.entry(&program.pages.name).or_default();
            of_name.push(program);
            sum.0 = sum.0.saturating_add(tables.0);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|(_, tables)| std::cmp::Reverse(*tables));
    all
}

/// How programs of one name come to share page tables, if they share memory.
fn sharing_option(evidence: &Evidence, programs: &[&Program]) -> Option<&'static str> {
    let shares = |area: &Area| area.is_shared_data() && !area.is_hugetlb() && area.size() >= WORTH_SHARING;
    let first = programs[0];
    match first.kind.known().copied().flatten() {
        // An instance that is to have them only does not start without the right to them.
        Some(Kind::Oracle) if bars_segments(evidence, Kind::Oracle) => Some("raise its memlock limit first (B02)"),
        Some(Kind::Oracle) => Some("use_large_pages=ONLY"),
        Some(kind) if kind.server().is_some() => kind.server().map(|server| server.on),
        _ => (programs.len() > 1 && first.areas().is_ok_and(|areas| areas.iter().any(shares)))
            .then_some("its own option for huge pages, if it has one"),
    }
}
