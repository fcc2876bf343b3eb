//! What the numbers of a guest measurement say, in sentences. Pure.

use host::snapshot::Mmu;
use model::guest::{Guest, GuestPage};
use model::{Bytes, PageKind};

use super::kept;

/// All sentences that this measurement supports.
pub(super) fn all(guest: &Guest, mmu: Option<Mmu>) -> Vec<String> {
    let largest = guest.points.iter().map(|point| point.point.bytes).max();
    let Some(bytes) = largest else { return Vec::new() };
    let mut readings: Vec<String> = Vec::new();
    readings.extend(mmu.map(|mmu| translation(guest, mmu, bytes)));
    readings.extend(price(guest));
    readings.extend(kept::sentence(guest, bytes));
    readings.extend(mmu.and_then(other_mmu));
    readings
}

/// What a warm guest costs, and why. Only pages of one size on both sides are compared with the native walk: elsewhere the
/// smaller page decides, and that is another question.
fn translation(guest: &Guest, mmu: Mmu, bytes: Bytes) -> String {
    let why = if mmu.is_nested_paging() {
        "each TLB miss walks the guest's tables and, for every step of that, the host's"
    } else {
        "once warm, the CPU walks one table that the hypervisor keeps, as natively"
    };
    let points = guest.points.iter().filter(|point| point.point.bytes == bytes);
    let alike = points.filter_map(|point| {
        let (page, kind) = (point.guest_page?, point.point.kind);
        let ratio = point.ratio?.median;
        is_alike(page, kind).then(|| format!("{ratio:.2} times the native time with {page} on {kind}"))
    });
    let alike: Vec<String> = alike.collect();
    match alike.is_empty() {
        true => format!("{mmu}: {why}."),
        false => format!("{mmu}: {why}. At {bytes} a warm guest takes {}.", alike.join(", ")),
    }
}

fn is_alike(page: GuestPage, kind: PageKind) -> bool {
    kind.x86_size() == page.size()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use host::snapshot::Mmu;
    use model::guest::{FirstTouch, Guest, GuestPage, GuestPoint};
    use model::latency::{Access, Backed, Pattern, Point};
    use model::{Backing, Bytes, Estimate, PageKind, Reading};

    use super::all;

    fn estimate(median: f64) -> Estimate {
        Estimate {
            median,
            low: median,
            high: median,
            samples: 6,
        }
    }

    fn native(kind: PageKind, ns: f64) -> GuestPoint {
        GuestPoint {
            guest_page: None,
            ratio: None,
            ..point(GuestPage::Size4K, kind, ns, 1.0)
        }
    }

    fn point(page: GuestPage, kind: PageKind, ns: f64, ratio: f64) -> GuestPoint {
        let backing = Backed {
            asked: kind,
            got: Backing::new(),
            proof: String::new(),
        };
        GuestPoint {
            guest_page: Some(page),
            point: Point {
                ns: Some(estimate(ns)),
                ..Point::bare(kind, Bytes::gib(1), Pattern::RandomLine, Access::Read, backing)
            },
            ratio: Some(estimate(ratio)),
            warm_stats: BTreeMap::new(),
            timed_stats: BTreeMap::new(),
        }
    }

    fn guest(points: Vec<GuestPoint>) -> Guest {
        Guest {
            mmu: Reading::Known("ept".to_owned()),
            sanity: None,
            points,
            fault_ns: vec![FirstTouch {
                guest_page: GuestPage::Size4K,
                kind: PageKind::Base,
                touched: 1000,
                faults: Some(1003),
                touch_ns: None,
                warm_ns: None,
                ns: Some(12_340.0),
                kvm_stats: BTreeMap::new(),
            }],
            exits: Vec::new(),
            churn: Vec::new(),
            kvm_stats: BTreeMap::new(),
            readings: Vec::new(),
            tsc_ghz: 1.0,
            cpu: 0,
            seconds: 0.0,
        }
    }

    #[test]
    fn the_share_of_the_gain_that_one_side_keeps_is_told() {
        let guest = guest(vec![
            native(PageKind::Base, 200.0),
            native(PageKind::Thp, 140.0),
            point(GuestPage::Size4K, PageKind::Base, 220.0, 1.1),
            point(GuestPage::Size2M, PageKind::Base, 204.0, 1.02),
            point(GuestPage::Size4K, PageKind::Thp, 160.0, 160.0 / 140.0),
            point(GuestPage::Size2M, PageKind::Thp, 140.0, 1.0),
        ]);
        let readings = all(&guest, Some(Mmu::Ept));
        assert_eq!(
            readings,
            [
                "ept: each TLB miss walks the guest's tables and, for every step of that, the host's. At 1G a warm guest takes 1.10 times the native time with 4K on base, 1.00 times the native time with 2M on thp.",
                "The first touch of a page is paid once: 12.3 us for each of 1003 faults over 1000 pages of 4 KiB (guest 4K on base).",
                "Pages of 2 MiB on both sides save a guest 36 ± 0 % of the time at 1G; guest 2M on host base keeps only 20 % of the gain; guest 4K on host thp keeps 75 % of the gain.",
                "To compare with shadow paging: stop all VMs, `modprobe -r kvm_intel && modprobe kvm_intel ept=0`, and measure again.",
            ]
        );
    }

    #[test]
    fn nothing_is_said_about_shares_of_no_gain_or_of_missing_points() {
        let flat = guest(vec![
            native(PageKind::Base, 100.0),
            native(PageKind::Thp, 99.0),
            point(GuestPage::Size4K, PageKind::Base, 100.0, 1.0),
            point(GuestPage::Size2M, PageKind::Thp, 99.0, 1.0),
        ]);
        assert!(all(&flat, None)[1].contains("gain nothing"));
        let one = guest(vec![point(GuestPage::Size2M, PageKind::Base, 100.0, 1.0)]);
        let readings = all(&one, Some(Mmu::ShadowPvm));
        assert_eq!(readings.len(), 2, "{readings:?}");
        assert!(all(&guest(Vec::new()), Some(Mmu::Ept)).is_empty());
    }
}
