//! Page sizes of guests: those that there are none of, and memory that is no multiple of them.

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::Boot;
use programs::config::given::{Guest, Manager};

use crate::demand::{Room, guests, is_asked_for, runs_by_proxmox};
use crate::facts::{default_size, pages_for};
use crate::kept::boot_fix;
use crate::links;
use crate::remedy::Need;
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
        .seen(&guest.place, "page size", size.exact())
        .fix(format!("a size that the host has: {sizes}"))
        .fix_if(evidence.snapshot.is_made_at_boot(size), at_boot(evidence, size))
    });
    cases.collect()
}

/// Before Linux 5.8 `default_hugepagesz=1G` leaves the size of 2M out (hugetlb_init()), and before 3.16 that of 1G is left out always.
fn at_boot(evidence: &Evidence, size: Bytes) -> String {
    format!(
        "or have a pool of that size, which this kernel makes only if its command line names it: {}; then fill it",
        boot_fix(evidence, &format!("hugepagesz={}", size.exact()))
    )
}

/// Proxmox VE requests pages of the size that the guest's file names, whatever pool of another size was reserved for it.
pub(super) fn of_other_pool(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let is_ours = guest.manager == Manager::Proxmox && guest.refused.is_empty();
    let page = guest.hugetlb().find_map(|(_, page)| page).filter(|_| is_ours)?;
    // On a machine G04 says of pages of 1G how many are free, and one that runs has its pages.
    let is_said = evidence.has_machine && (page >= Bytes::gib(1) || runs_by_proxmox(evidence, guest));
    let own = guest.hugetlb().filter(|(_, own)| *own == Some(page) && !is_said);
    let size: Bytes = own.map(|(size, _)| size).sum();
    let room = Room::of(evidence).ok()?;
    let free = |other: Bytes, pages: u64| match evidence.snapshot.pool(other) {
        Some(pool) => pool.available().unwrap_or(0),
        None => pages,
    };
    let is_idle = |other: Bytes, pages: u64| {
        let bytes = other.0.saturating_mul(free(other, pages));
        other != page && bytes >= size.0 / 2 && is_asked_for(evidence, other) == Ok(false)
    };
    let is_served = size.0 == 0 || room.pages(page).saturating_mul(page.0) >= size.0;
    let mut others = room.filled().filter(|_| !is_served);
    let (other, (pages, place)) = others.find(|(other, (pages, _))| is_idle(*other, *pages))?;
    Some(other_pool_case(
        guest,
        (size, page),
        (other, free(other, *pages)),
        place,
    ))
}

/// Of so much memory in pages of one size, where so many pages of another are reserved at that place.
fn other_pool_case(guest: &Guest, asked: (Bytes, Bytes), reserved: (Bytes, u64), place: &str) -> Case {
    let ((size, page), (other, pages)) = (asked, reserved);
    let (own, others) = (page.exact(), other.exact());
    let (need, of_other) = (pages_for(size, page), pages_for(size, other));
    let fits = of_other <= pages && size.0.is_multiple_of(other.0.max(1));
    let keep = match page >= Bytes::gib(1) {
        true => format!("hugepagesz={own} hugepages={need} on the boot command line"),
        false => format!("Proxmox VE requests pages of {own} when the guest starts"),
    };
    Case::likely(format!(
        "{} takes {need} pages of {own}, and the pool of {} has pages of {others}: it stays idle, and the guest needs its memory beside it",
        guest.name,
        Bytes(other.0.saturating_mul(pages))
    ))
    .severity(Severity::Warning)
    .seen(&guest.place, "hugepages (the page size in MB, no number of pages)", page.0 >> 20)
    .seen(place, format!("pages of {others}"), pages)
    .fix_if(
        fits,
        format!("hugepages: {} in {}: it needs {of_other} pages of {others}", other.0 >> 20, guest.place),
    )
    .fix_with(
        Need::Pool(page, need),
        format!("{}keep its page size ({keep}), and take the pool of {others} out of {place}", if fits { "or " } else { "" }),
    )
}

pub(super) fn no_multiple(evidence: &Evidence) -> Answer {
    // Without a size it is the default one, which the machine or a boot line shows.
    let default = Room::of(evidence).map(|room| room.default);
    let default = default.or_else(|_| default_size(evidence)).ok();
    let guests = guests(evidence);
    let parts = guests
        .iter()
        .flat_map(|guest| guest.in_whole_pages().map(move |(size, page)| (guest, size, page)));
    let odd = parts.filter_map(|(guest, size, page)| {
        let is_default = page.is_none();
        let page = page.or(default);
        let page = page.filter(|page| page.0 > 0 && !size.0.is_multiple_of(page.0))?;
        let is_refused = matches!(
            guest.manager,
            Manager::CloudHypervisor | Manager::Firecracker | Manager::Proxmox
        );
        let (outcome, severity) = match is_refused {
            true => (", with which it does not start", Severity::Error),
            false => ("", Severity::Warning),
        };
        let whose = if is_default { " (default size)" } else { "" };
        let name = page.exact();
        Some(
            Case::sure(format!(
                "the {} of {} are not a multiple of the page size {name}{outcome}",
                size.exact(),
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
            .fix(whole_pages(guest, size, page)),
        )
    });
    Ok(odd.collect())
}

/// The file of Proxmox VE has the memory of all nodes of the guest together.
fn whole_pages(guest: &Guest, size: Bytes, page: Bytes) -> String {
    if guest.manager != Manager::Proxmox {
        return format!("make it {}", size.round_up_to(page).exact());
    }
    let parts = guest.memory.iter().map(|(size, _)| size.round_up_to(page));
    format!(
        "memory: {} (and the memory= of each numaN, if there are any, a multiple of {})",
        parts.sum::<Bytes>().0 >> 20,
        page.0 >> 20
    )
}
