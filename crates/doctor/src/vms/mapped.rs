//! Guests whose memory KVM maps otherwise than it is backed, or not at all.

use model::Bytes;
use programs::Evidence;
use programs::config::given::{Backing, Guest, Manager};

use crate::facts::default_size;
use crate::links;
use crate::rule::Case;

/// KVM maps no huge page of a guest while it logs what the guest writes. Others do that for a migration alone.
pub(super) fn mapped_small(guest: &Guest) -> Option<Case> {
    let place = guest.tracked.as_ref()?;
    let (_, page) = guest.hugetlb().next()?;
    let page = page.map_or_else(|| "huge".to_owned(), |page| page.exact());
    Some(
        Case::sure(format!(
            "the {page} pages of {} gain nothing: KVM maps them as base pages while it logs the pages that the guest writes (track_dirty_pages)",
            guest.name
        ))
        .link(Some(links::of_manager(guest.manager)))
        .seen(place, "track_dirty_pages", "true")
        .fix("\"track_dirty_pages\": false; only differential snapshots need it")
        .fix("or leave \"huge_pages\" out"),
    )
}

/// KVM's HV on POWER maps a page of a guest by one of the host: pages as large as promised have to back it (QEMU, spapr_caps.c).
pub(super) fn promised_more(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let (place, promised) = guest.hpt_page.as_ref()?;
    let base = evidence.snapshot.kernel.base_page.known().copied();
    let base = base.unwrap_or(Bytes::kib(64));
    let default = default_size(evidence).ok();
    let page = |backing: &Backing| match backing {
        Backing::Any => Some(base),
        Backing::Hugetlb(page) => page.or(default),
        _ => None,
    };
    let pages: Option<Vec<Bytes>> = guest.memory.iter().map(|(_, backing)| page(backing)).collect();
    let page = pages?.into_iter().min().filter(|page| page < promised)?;
    let (promised, kib) = (promised.exact(), [promised.0 >> 10, page.0 >> 10]);
    Some(
        Case::sure(format!(
            "{} does not start: it is promised pages of {promised}, and pages of {} back it (QEMU: `Can't support {} kiB guest pages with {} kiB host pages with this KVM implementation`)",
            guest.name,
            page.exact(),
            kib[0],
            kib[1]
        ))
        .seen(place, "largest page", &promised)
        .seen(&guest.place, "page size", page.exact())
        .fix(match guest.manager {
            Manager::Libvirt => "<maxpagesize unit='KiB'>64</maxpagesize>, or no <maxpagesize>",
            _ => "cap-hpt-max-page-size=64k, or leave it out",
        })
        .fix(format!(
            "or back it by pages of {promised} or more: of 16M where the host has the hash MMU, of 1G where it has radix"
        )),
    )
}
