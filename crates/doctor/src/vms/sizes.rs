//! Page sizes of guests: those that there are none of, and memory that is no multiple of them.

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::Boot;
use programs::config::given::{Guest, Manager};

use crate::demand::guests;
use crate::facts::default_size;
use crate::kept::boot_fix;
use crate::links;
use crate::rule::{Answer, Case};

/// Page sizes of a guest that the machine, or x86-64, does not have.
pub(super) fn lacking(evidence: &Evidence, guest: &Guest) -> Vec<Bytes> {
    let pools = evidence.snapshot.pools.known();
    let exists = |size: Bytes| match pools {
        Some(pools) => pools.iter().any(|pool| pool.size == size),
        None if guest.is_x86 => size == Bytes::mib(2) || size == Bytes::gib(1),
        None => Boot::SIZES.contains(&size),
    };
    let mut wrong: Vec<Bytes> = guest.hugetlb().filter_map(|(_, page)| page).collect();
    wrong.retain(|size| !exists(*size));
    wrong.dedup();
    wrong
}

pub(super) fn no_such_size(evidence: &Evidence, guest: &Guest) -> Vec<Case> {
    let pools = evidence.snapshot.pools.known();
    let (place, sizes) = match pools {
        Some(pools) => {
            let free = |pool: &Pool| {
                pool.available()
                    .map_or_else(String::new, |free| format!(" ({free} free)"))
            };
            let sizes = pools.iter().map(|pool| format!("{}{}", pool.size.exact(), free(pool)));
            ("on this machine", sizes.collect::<Vec<_>>().join(", "))
        }
        None => (
            "on such machines",
            "2M and 1G on x86-64 (ls /sys/kernel/mm/hugepages)".to_owned(),
        ),
    };
    let cases = lacking(evidence, guest).into_iter().map(|size| {
        Case::sure(format!(
            "{} does not start: there are no pages of {} {place}",
            guest.name,
            size.exact()
        ))
        .link(Some(links::of_manager(guest.manager)))
        .seen(&guest.place, "page size", size.exact())
        .fix(format!("a size that the host has: {sizes}"))
        .fix_if(is_offered(evidence, size), at_boot(evidence, size))
    });
    cases.collect()
}

/// Has the CPU pages of that size, whatever pools the kernel made?
fn is_offered(evidence: &Evidence, size: Bytes) -> bool {
    let flag = match size {
        size if size == Bytes::mib(2) => "pse",
        size if size == Bytes::gib(1) => "pdpe1gb",
        _ => return false,
    };
    // Without hugetlb no command line helps.
    let has_pools = evidence.snapshot.pools.known().is_some_and(|pools| !pools.is_empty());
    has_pools && evidence.snapshot.cpu.has(flag).known() == Some(&true)
}

/// Before Linux 5.8 `default_hugepagesz=1G` leaves the size of 2M out (hugetlb_init()), and before 3.16 that of 1G is left out always.
fn at_boot(evidence: &Evidence, size: Bytes) -> String {
    format!(
        "or have a pool of that size, which this kernel makes only if its command line names it: {}; then fill it",
        boot_fix(evidence, &format!("hugepagesz={}", size.exact()))
    )
}

pub(super) fn no_multiple(evidence: &Evidence) -> Answer {
    // Without a size it is the default one, which the machine shows.
    let default = default_size(evidence).ok();
    let guests = guests(evidence);
    let parts = guests
        .iter()
        .flat_map(|guest| guest.hugetlb().map(move |(size, page)| (guest, size, page)));
    let odd = parts.filter_map(|(guest, size, page)| {
        let is_default = page.is_none();
        let page = page.or(default);
        let page = page.filter(|page| page.0 > 0 && !size.0.is_multiple_of(page.0))?;
        let starts = matches!(guest.manager, Manager::CloudHypervisor | Manager::Firecracker);
        let (outcome, severity) = match starts {
            true => (", with which it does not start", Severity::Error),
            false => ("", Severity::Warning),
        };
        let whose = if is_default { " (default size)" } else { "" };
        let name = page.exact();
        Some(
            Case::sure(format!(
                "the {size} of {} are not a multiple of the page size {name}{outcome}",
                guest.name
            ))
            .severity(severity)
            .link(Some(links::of_manager(guest.manager)))
            .seen(&guest.place, "memory", size.exact())
            .seen(&guest.place, "page size", format!("{name}{whose}"))
            .fix_if(
                is_default && guest.manager == Manager::CloudHypervisor,
                "hugepage_size=2M, with a pool of that size",
            )
            .fix(format!("make it {}", size.round_up_to(page).exact())),
        )
    });
    Ok(odd.collect())
}
