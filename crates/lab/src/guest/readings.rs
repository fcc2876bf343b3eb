//! What the numbers of a guest measurement say, in sentences. Pure.

use host::snapshot::Mmu;
use model::guest::{Guest, GuestPage};
use model::{Bytes, PageKind};

use super::outcome::median;

/// All sentences that this measurement supports.
pub(super) fn all(guest: &Guest, mmu: Option<Mmu>) -> Vec<String> {
    let largest = guest.points.iter().map(|point| point.point.bytes).max();
    let Some(bytes) = largest else { return Vec::new() };
    let mut readings: Vec<String> = Vec::new();
    readings.extend(mmu.map(|mmu| translation(guest, mmu, bytes)));
    readings.extend(price(guest));
    readings.extend(kept(guest, bytes));
    readings.extend(mmu.and_then(other_mmu));
    readings
}

/// What a warm guest costs, and why.
fn translation(guest: &Guest, mmu: Mmu, bytes: Bytes) -> String {
    let why = if mmu.is_nested_paging() {
        "each TLB miss walks the guest's tables and, for every step of that, the host's"
    } else {
        "once warm, the CPU walks one table that the hypervisor keeps, as natively"
    };
    let same = guest.points.iter().filter(|point| point.point.bytes == bytes);
    let ratios = same.filter_map(|point| Some((point.guest_page?, point.point.kind, point.ratio?.median)));
    let (mut low, mut high): (Option<(_, _, f64)>, Option<(_, _, f64)>) = (None, None);
    for one in ratios {
        low = Some(low.filter(|low| low.2 <= one.2).unwrap_or(one));
        high = Some(high.filter(|high| high.2 >= one.2).unwrap_or(one));
    }
    match (low, high) {
        (Some(low), Some(high)) => format!(
            "{mmu}: {why}. At {bytes} a warm guest takes {:.2} times the native time on the same memory ({} on {}) to {:.2} times ({} on {}).",
            low.2, low.0, low.1, high.2, high.0, high.1
        ),
        _ => format!("{mmu}: {why}."),
    }
}

/// What a first touch costs.
fn price(guest: &Guest) -> Option<String> {
    let faults = |page: GuestPage| {
        let mut touches = guest.fault_ns.iter();
        touches.find(|touch| touch.guest_page == page && touch.ns.is_some())
    };
    let touch = faults(GuestPage::Size4K).or_else(|| faults(GuestPage::Size2M))?;
    Some(format!(
        "The first touch of a page is paid once: {:.1} us for each of {} faults over {} pages of 4 KiB (guest {} on {}).",
        touch.ns? / 1000.0,
        touch.faults?,
        touch.touched,
        touch.guest_page,
        touch.kind
    ))
}

/// How much of the gain from large pages is left when only one side has them.
fn kept(guest: &Guest, bytes: Bytes) -> Vec<String> {
    let large = [PageKind::HUGETLB_2M, PageKind::Thp];
    let at = |page, kind| median(guest, Some(page), kind, bytes);
    let sentence = || {
        let none = at(GuestPage::Size4K, PageKind::Base)?;
        let kind = large.into_iter().find(|&kind| at(GuestPage::Size2M, kind).is_some())?;
        let both = at(GuestPage::Size2M, kind)?;
        let gain = none - both;
        if gain < 0.05 * none {
            return Some(vec![format!(
                "At {bytes} large pages on both sides gain nothing worth speaking of ({none:.1} ns against {both:.1} ns)."
            )]);
        }
        let one = |name: String, ns: Option<f64>| {
            let share = (none - ns?) / gain * 100.0;
            Some(format!("{name} keeps {:.0} % of the gain", share.clamp(0.0, 100.0)))
        };
        let parts = [
            one(
                "guest 2M on host base".to_owned(),
                at(GuestPage::Size2M, PageKind::Base),
            ),
            one(format!("guest 4K on host {kind}"), at(GuestPage::Size4K, kind)),
        ];
        let whole = format!("2 MiB pages on both sides: {both:.1} ns instead of {none:.1} ns at {bytes}");
        let parts: Vec<String> = [whole].into_iter().chain(parts.into_iter().flatten()).collect();
        Some(vec![format!("{}.", parts.join("; "))])
    };
    sentence().unwrap_or_default()
}

/// How to see the other way of translation on this machine.
fn other_mmu(mmu: Mmu) -> Option<String> {
    let (module, parameter, value, other) = match mmu {
        Mmu::Ept => ("kvm_intel", "ept", 0, "shadow paging"),
        Mmu::ShadowVmx => ("kvm_intel", "ept", 1, "two-dimensional paging (EPT)"),
        Mmu::Npt => ("kvm_amd", "npt", 0, "shadow paging"),
        Mmu::ShadowSvm => ("kvm_amd", "npt", 1, "two-dimensional paging (NPT)"),
        Mmu::ShadowPvm => return None,
    };
    Some(format!(
        "To compare with {other}: stop all VMs, `modprobe -r {module} && modprobe {module} {parameter}={value}`, and measure again."
    ))
}
