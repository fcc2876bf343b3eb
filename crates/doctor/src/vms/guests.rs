//! Huge pages in a guest and under it: both levels are needed.

use host::snapshot::{Choice, Feature};
use model::{Bytes, PageKind, Reading};
use programs::Evidence;
use programs::config::given::Manager;
use programs::{Area, Kind, Program};

use super::definitions::on_pages;
use crate::facts::{
    absent, any_size, available, bytes, counted_areas, default_size, has, is_in_group, is_of_libvirt, known, largest,
    never_advised, pages_for, pool_file, pools, programs, thp, thp_file,
};
use crate::links;
use crate::remedy::Need;
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

pub(super) fn guest_without(evidence: &Evidence) -> Answer {
    let hypervisor = known(&evidence.snapshot.cpu.hypervisor)?;
    if hypervisor == "none" || any_size(evidence)? {
        return Ok(Vec::new());
    }
    for pool in pools(evidence)? {
        if *known(&pool.nr)? > 0 || *known(&pool.overcommit)? > 0 {
            return Ok(Vec::new());
        }
    }
    let all = programs(evidence)?.iter();
    let all = all.map(|program| Ok((program, *known(&program.pages.rss)?)));
    let most = largest(all.collect::<Result<Vec<_>, Reason>>()?);
    let Some((program, rss)) = most.filter(|(_, rss)| *rss >= Bytes::gib(1)) else {
        return Ok(Vec::new());
    };
    let case = Case::sure(format!(
        "in this guest ({hypervisor}) {} with {rss} can only use base pages",
        program.title()
    ))
    .seen("/proc/cpuinfo", "hypervisor", hypervisor)
    .seen(thp_file("enabled"), "", "never")
    .seen("/sys/kernel/mm/hugepages", "pages in pools", 0)
    .seen_rss(program)
    .plan("thp=madvise")
    .write_as("enabled", "madvise", |command| {
        format!("{command} (or always), and restart the program")
    })
    .fix("or fill a pool and let the program use it")
    .fix("measure the page size of the host's backing: hugewise measure tlb");
    Ok(vec![case])
}

/// A guest smaller than this has hardly started.
const WORTH: Bytes = Bytes::mib(512);

/// Options of QEMU that put a guest's memory into a guest_memfd.
const PRIVATE: [&str; 4] = ["sev-snp-guest", "tdx-guest", "guest-memfd=on", "guest_memfd=on"];

/// The option by which a guest's memory is one that no process maps.
fn private_memory(program: &Program) -> Result<Option<&str>, Reason> {
    if !program.is(Kind::Qemu)? {
        return Ok(None);
    }
    let arguments = known(&program.arguments)?;
    let is_private = |argument: &&String| PRIVATE.iter().any(|word| argument.contains(word));
    Ok(arguments.iter().find(is_private).map(String::as_str))
}

pub(super) fn unseen(evidence: &Evidence) -> Answer {
    if !has(evidence, Feature::GuestMemfd)? {
        return Ok(Vec::new());
    }
    each(programs(evidence)?, |program| {
        let case = private_memory(program)?.map(|option| {
            Case::sure(format!(
                "the private memory of the guest in {} is a guest_memfd: no process maps it, so its page kinds are not among those shown",
                program.title()
            ))
            .seen(program.file("cmdline"), "", option)
            .fix("count its memory by what the guest is configured for; ps, vm and explain show the part that is shared with the host")
            .fix("what backs it shows inside the guest: hugewise measure tlb")
        });
        Ok(case)
    })
}

pub(super) fn on_base(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        let is_guest = known(&program.kind)?.is_some_and(Kind::is_hypervisor);
        if !is_guest || program.hugetlb()?.0 > 0 || private_memory(program)?.is_some() {
            return Ok(None);
        }
        let backing = known(&program.pages.backing)?;
        let (base, huge) = (backing.of(PageKind::Base), backing.of(PageKind::Thp));
        if base < WORTH || huge >= base {
            return Ok(None);
        }
        let share = 100.0 * base.0 as f64 / backing.total().0.max(1) as f64;
        let page = default_size(evidence).unwrap_or(Bytes::mib(2));
        let need = Need::More(page, pages_for(backing.total(), page));
        let case = Case::sure(format!(
            "{share:.0} % ({base}) of the guest's memory in {} is backed by base pages of the host",
            program.title()
        ))
        .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
        .seen_backing(program, PageKind::Thp, huge)
        .seen_backing(program, PageKind::Base, base)
        .plan_with(need, format!("vm:pid={}", program.pid()));
        let manager = manager(program);
        let case = case.link(manager.map(links::of_manager)).fix(on_pages(manager));
        let case = match manager {
            Some(Manager::Firecracker) => with_pool(evidence, program, Bytes::mib(2), case),
            Some(Manager::CloudHypervisor) => with_pool(evidence, program, page, case),
            _ => case,
        };
        Ok(Some(with_thp(evidence, program, case)))
    })
}

/// What starts the guest; `None` of QEMU alone, behind which there may be another.
fn manager(program: &Program) -> Option<Manager> {
    match program.kind.known().copied().flatten() {
        Some(Kind::Firecracker) => Some(Manager::Firecracker),
        Some(Kind::CloudHypervisor) => Some(Manager::CloudHypervisor),
        _ if is_of_libvirt(program) => Some(Manager::Libvirt),
        _ if is_in_group(program, "/qemu.slice/") => Some(Manager::Proxmox),
        _ => None,
    }
}

/// A mapping smaller than this has no memory of a guest.
const PART: Bytes = Bytes::mib(64);

/// The guest's whole memory, touched or not: its largest mapping, with others of that name.
fn guest_size(program: &Program) -> Option<Bytes> {
    let areas = program.areas().ok()?;
    let parts = || areas.iter().filter(|area| area.size() >= PART && !area.is_hugetlb());
    let largest: &str = &parts().max_by_key(|area| area.size())?.name;
    Some(parts().filter(|area| &*area.name == largest).map(Area::size).sum())
}

/// With a pool of that size for its memory, which nothing fills for it.
fn with_pool(evidence: &Evidence, program: &Program, page: Bytes, case: Case) -> Case {
    let counts = || {
        let pool = evidence.snapshot.pool(page)?;
        let pages = pages_for(guest_size(program)?, page);
        Some((pool, pages, pool.available()?))
    };
    let Some((pool, pages, free)) = counts() else {
        return case;
    };
    let needs = format!("it needs {pages} pages of {}, and {free} are free", page.exact());
    match free >= pages {
        true => case.fix(format!("{needs}: start it anew")),
        false => case.fill_more(pool, pages, |command| format!("{needs}: {command}; then start it anew")),
    }
}

/// The policies of THP that keep a guest from it, each with the one that lets it ask; another policy does not, and is left alone.
fn with_thp(evidence: &Evidence, program: &Program, case: Case) -> Case {
    let Ok(thp) = thp(evidence) else { return case };
    if never_advised(program).any(|area| area.size() >= WORTH) {
        return case;
    }
    let is_off = |policy: &Reading<Choice>| {
        let policy = policy.known().map(|policy| policy.chosen.as_str());
        matches!(policy, Some("never" | "deny"))
    };
    case.when(is_off(&thp.enabled), |case| {
        case.write_as("enabled", "madvise", |command| {
            format!("or THP for private memory: {command}")
        })
    })
    .when(is_off(&thp.shmem_enabled), |case| {
        case.write_as("shmem_enabled", "advise", |command| {
            format!("or THP for shared memory: {command}")
        })
    })
}

pub(super) fn no_reserve(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        if !known(&program.kind)?.is_some_and(Kind::is_hypervisor) {
            return Ok(None);
        }
        for pool in pools(evidence)? {
            let open = unreserved(program, pool.size)?;
            let left = bytes(pool, available(pool)?);
            if open > left {
                let more = open.0.div_ceil(pool.size.0);
                let missing = (open.0 - left.0).div_ceil(pool.size.0);
                let case = Case::sure(format!(
                    "the guest in {} can still touch {open} in pages of {}, and {left} is left: a touch beyond that kills it",
                    program.title(),
                    pool.size.exact()
                ))
                .seen(program.file("smaps"), "VmFlags: ht nr, not resident", open)
                .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
                .seen(pool_file(pool, "resv_hugepages"), "", &pool.reserved)
                .fill_more(pool, more, |command| {
                    format!("it needs {more} pages beside those that it has, {missing} more than are free: {command}")
                })
                .fix("and start guests with reserve=on or prealloc=on (QEMU), prefault=on (Cloud Hypervisor)");
                return Ok(Some(case));
            }
        }
        Ok(None)
    })
}

/// hugetlb memory of that page size that is mapped without a reservation and not resident yet.
fn unreserved(program: &Program, page: Bytes) -> Result<Bytes, Reason> {
    let of_page = |area: &&Area| {
        let size = area.counted.as_ref().and_then(|counted| counted.kernel_page);
        area.has("ht") == Some(true) && area.has("nr") == Some(true) && size == Some(page)
    };
    Ok(counted_areas(program)?.iter().filter(of_page).map(absent).sum())
}
