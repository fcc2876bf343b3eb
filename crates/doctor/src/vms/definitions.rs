//! Guests as libvirt and QEMU are configured to start them.

use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::given::{Backing, FileKind, Guest};

use crate::demand::{Shortage, shortages};
use crate::rule::{Answer, Case};

pub(super) const OF: &[FileKind] = &[FileKind::Libvirt, FileKind::Qemu];

/// A guest smaller than this gains little.
const WORTH: Bytes = Bytes::gib(4);

pub(super) fn on_base(evidence: &Evidence) -> Answer {
    let plain =
        |guest: &&Guest| guest.total() >= WORTH && guest.memory.iter().all(|(_, backing)| *backing == Backing::Any);
    let cases = evidence.files.guests.iter().filter(plain).map(|guest| {
        Case::hint(format!(
            "the {} of {} is backed by huge pages only where the host's THP allows it, which no file shows",
            guest.total(),
            guest.name
        ))
        .severity(Severity::Info)
        .seen(&guest.place, "memory", guest.total())
        .seen(&guest.place, "hugetlb pages", "not requested")
        .fix("libvirt: <memoryBacking><hugepages/></memoryBacking>; QEMU: -object memory-backend-memfd,hugetlb=on,...")
        .fix("or check the running guest: hugewise vm")
    });
    Ok(cases.collect())
}

pub(super) fn no_reserve(evidence: &Evidence) -> Answer {
    let open = |guest: &&Guest| guest.unreserved && !guest.prealloc && guest.hugetlb().next().is_some();
    let cases = evidence.files.guests.iter().filter(open).map(|guest| {
        Case::likely(format!(
            "{} takes pages from the pool as it touches them, without a reservation: when the pool is empty, it dies of SIGBUS",
            guest.name
        ))
        .severity(Severity::Warning)
        .seen(&guest.place, "reserve", "off")
        .seen(&guest.place, "prealloc", "off")
        .fix("reserve=on, or prealloc=on")
    });
    Ok(cases.collect())
}

pub(super) fn no_room(evidence: &Evidence) -> Answer {
    if evidence
        .files
        .guests
        .iter()
        .all(|guest| guest.hugetlb().next().is_none())
    {
        return Ok(Vec::new());
    }
    let case = |short: Shortage| short.case(format!("{} does not start: it {}", short.demand.who, short.text()));
    Ok(shortages(evidence, FileKind::Libvirt)?.into_iter().map(case).collect())
}

pub(super) fn no_multiple(evidence: &Evidence) -> Answer {
    let guests = evidence.files.guests.iter();
    let parts = guests.flat_map(|guest| guest.hugetlb().map(move |(size, page)| (guest, size, page)));
    let odd = parts.filter_map(|(guest, size, page)| {
        let page = page.filter(|page| page.0 > 0 && !size.0.is_multiple_of(page.0))?;
        Some(
            Case::sure(format!(
                "the {} of {} are not a multiple of the page size {}",
                size,
                guest.name,
                page.exact()
            ))
            .seen(&guest.place, "memory", size.exact())
            .seen(&guest.place, "page size", page.exact())
            .fix(format!("make it {}", size.round_up_to(page).exact())),
        )
    });
    Ok(odd.collect())
}
