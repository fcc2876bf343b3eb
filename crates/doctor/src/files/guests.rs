//! Virtual machines by their files: libvirt, QEMU, VMware.

use host::config::given::{Backing, FileKind, Guest};
use model::Bytes;
use model::findings::Severity;

use super::demand::{Shortage, shortages};
use super::{Check, Scope};
use crate::rule::{Answer, Case};
use crate::vms::vmware::{disabled, one_g};

const OF: &[FileKind] = &[FileKind::Libvirt, FileKind::Qemu];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "G02",
        of: OF,
        look: on_base,
    },
    Check {
        id: "G03",
        of: OF,
        look: no_reserve,
    },
    Check {
        id: "G04",
        of: OF,
        look: no_room,
    },
    Check {
        id: "G05",
        of: OF,
        look: no_multiple,
    },
    Check {
        id: "G06",
        of: &[FileKind::Vmware],
        look: |scope| one_g(&scope.given.vmware),
    },
    Check {
        id: "G07",
        of: &[FileKind::Vmware],
        look: |scope| disabled(&scope.given.vmware),
    },
];

/// A guest smaller than this gains little.
const WORTH: Bytes = Bytes::gib(4);

fn on_base(scope: &Scope<'_>) -> Answer {
    let plain =
        |guest: &&Guest| guest.total() >= WORTH && guest.memory.iter().all(|(_, backing)| *backing == Backing::Any);
    let cases = scope.given.guests.iter().filter(plain).map(|guest| {
        Case::hint(format!(
            "the {} of {} are on large pages only as far as the host's transparent pages reach, which no file tells",
            guest.total(),
            guest.name
        ))
        .severity(Severity::Info)
        .seen(&guest.place, "memory", guest.total())
        .seen(&guest.place, "hugetlb pages", "not asked for")
        .fix("libvirt: <memoryBacking><hugepages/></memoryBacking>; QEMU: -object memory-backend-memfd,hugetlb=on,...")
        .fix("or look at the running guest: hugewise vm")
    });
    Ok(cases.collect())
}

fn no_reserve(scope: &Scope<'_>) -> Answer {
    let open = |guest: &&Guest| guest.unreserved && !guest.prealloc && guest.hugetlb().next().is_some();
    let cases = scope.given.guests.iter().filter(open).map(|guest| {
        Case::likely(format!(
            "{} takes its pages as it touches them: when the pool runs out, it dies of SIGBUS",
            guest.name
        ))
        .severity(Severity::Warning)
        .seen(&guest.place, "reserve", "off")
        .seen(&guest.place, "prealloc", "off")
        .fix("reserve=on, or prealloc=on")
    });
    Ok(cases.collect())
}

fn no_room(scope: &Scope<'_>) -> Answer {
    if scope.given.guests.iter().all(|guest| guest.hugetlb().next().is_none()) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage| {
        let text = format!("{} does not start: it {}", short.demand.who, short.text());
        short.case(Case::likely(text))
    };
    Ok(shortages(scope, FileKind::Libvirt)?.into_iter().map(case).collect())
}

fn no_multiple(scope: &Scope<'_>) -> Answer {
    let guests = scope.given.guests.iter();
    let parts = guests.flat_map(|guest| guest.hugetlb().map(move |(size, page)| (guest, size, page)));
    let odd = parts.filter_map(|(guest, size, page)| {
        let page = page.filter(|page| page.0 > 0 && !size.0.is_multiple_of(page.0))?;
        Some(
            Case::sure(format!(
                "{} of {} is no whole number of pages of {}",
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
