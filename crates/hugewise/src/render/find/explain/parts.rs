//! One part of a program's memory in words and numbers.

use doctor::explain::{HugetlbPages, InUse, Part, PartKind};
use model::{Backing, Bytes, Cause, PageKind, Reading};

use draw::{counted, joined, or_empty};

pub(super) fn title(what: PartKind) -> &'static str {
    match what {
        PartKind::SharedMemory => "shared memory",
        PartKind::JavaHeap => "Java heap",
        PartKind::GuestMemory => "guest memory",
        PartKind::PrivateMemory => "private memory",
        PartKind::MappedFiles => "file memory",
    }
}

/// `base pages`, or each kind with its bytes.
pub(super) fn kinds(part: &Part) -> String {
    if let Some(pages) = part.hugetlb {
        let kind = PageKind::Hugetlb(pages.page);
        return match part.in_use() {
            InUse::Yes => format!("{kind} pages"),
            _ => format!(
                "{kind} {}{}",
                Bytes(pages.total.saturating_mul(pages.page.0)),
                beside(&part.backing)
            ),
        };
    }
    match &part.backing {
        Reading::Unread(why) => format!("pages that could not be read: {why}"),
        Reading::Known(backing) => mixed(backing),
    }
}

pub(super) fn mixed(backing: &Backing) -> String {
    let kinds: Vec<_> = backing.iter().filter(|(_, bytes)| bytes.0 > 0).collect();
    match kinds.as_slice() {
        [] => "no page yet".to_owned(),
        [(kind, _)] => format!("{kind} pages"),
        several => joined(several.iter().map(|(kind, bytes)| format!("{kind} {bytes}")), ", "),
    }
}

/// `1.0G: hugetlb-2M, 537 pages: 325 touched + 212 reserved`.
pub(super) fn in_numbers(part: &Part) -> String {
    if let (None, Some(why)) = (part.hugetlb, part.backing.unread()) {
        return match why.unread {
            Cause::Absent => format!("not found in {}: {}", why.place, why.why),
            _ => format!("could not be read: {why}"),
        };
    }
    let size = part.size;
    let body = match (part.hugetlb, &part.backing) {
        (Some(pages), backing) => format!("{}{}", hugetlb(&pages), beside(backing)),
        (None, Reading::Unread(_)) => String::new(),
        (None, Reading::Known(backing)) => {
            let needs = part.needs.filter(|_| part.in_use() != InUse::Yes);
            let needs = or_empty(needs.map(|needs| {
                let pages = counted(needs.pages as usize, "page");
                let beside = match part.what {
                    // Those take pages of 2M then.
                    PartKind::JavaHeap if needs.page <= Bytes::mib(2) => " with code cache and collector tables",
                    _ => "",
                };
                format!("; {pages} of {} would hold it{beside}", PageKind::Hugetlb(needs.page))
            }));
            format!("{}{needs}", mixed(backing))
        }
    };
    let touched = part.touched.known().filter(|_| part.hugetlb.is_none());
    let touched = or_empty(touched.map(|bytes| format!(", {bytes} touched")));
    format!("{size}{touched}: {body}")
}

/// What of a part lies beside the pages of a pool.
fn beside(backing: &Reading<Backing>) -> String {
    let other = backing.known().into_iter().flat_map(Backing::iter);
    let other = other.filter(|(kind, bytes)| kind.pool().is_none() && bytes.0 > 0);
    other.map(|(kind, bytes)| format!(", {kind} {bytes}")).collect()
}

fn hugetlb(pages: &HugetlbPages) -> String {
    let kind = PageKind::Hugetlb(pages.page);
    let total = counted(pages.total as usize, "page");
    match (pages.touched, pages.reserved()) {
        (Some(touched), Some(reserved)) => format!("{kind}, {total}: {touched} touched + {reserved} reserved"),
        _ => {
            format!("{kind}, {total}; how many are touched is not known (root can read it, a capture does not hold it)")
        }
    }
}
