//! How much of the gain from large pages is left when only the guest or only the host has them, in one sentence. Pure.

use model::guest::{Guest, GuestPage};
use model::{Bytes, Estimate, PageKind};

/// Differences below this share are taken for noise: cells are measured minutes apart, on machines with neighbours.
const NOISE: f64 = 0.03;
/// A gain below this share is not worth dividing up.
const WORTH: f64 = 0.05;
/// What stands for large pages on the host, the surest first.
const LARGE: [PageKind; 2] = [PageKind::HUGETLB_2M, PageKind::Thp];

/// The sentence, if both corners of the matrix were measured at this size.
pub(super) fn sentence(guest: &Guest, bytes: Bytes) -> Option<String> {
    let at = |page, kind| at(guest, page, kind, bytes);
    let none = at(GuestPage::Size4K, PageKind::Base)?;
    let (kind, both) = LARGE
        .into_iter()
        .find_map(|kind| Some((kind, at(GuestPage::Size2M, kind)?)))?;
    let (slow, fast) = (none.median, both.median);
    if !is_less(both, none) || slow - fast < WORTH * slow {
        return Some(format!(
            "At {bytes} large pages on both sides gain nothing beyond noise ({slow:.1} ns against {fast:.1} ns)."
        ));
    }
    let one = |name: String, one: Option<Estimate>| Some(format!("{name} {}", share(none, both, one?)));
    let parts = [
        Some(format!(
            "2 MiB pages on both sides: {fast:.1} ns instead of {slow:.1} ns at {bytes}"
        )),
        one(
            "guest 2M on host base".to_owned(),
            at(GuestPage::Size2M, PageKind::Base),
        ),
        one(format!("guest 4K on host {kind}"), at(GuestPage::Size4K, kind)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(format!("{}.", parts.join("; ")))
}

/// What is left of the gain from `none` to `both`, as far as noise lets one tell.
fn share(none: Estimate, both: Estimate, one: Estimate) -> String {
    let percent = (none.median - one.median) / (none.median - both.median) * 100.0;
    if is_less(none, one) {
        return "is slower than without any".to_owned();
    }
    match (is_less(one, none), is_less(both, one)) {
        (false, false) => "cannot be told from either within noise".to_owned(),
        (false, true) => "keeps nothing of the gain, within noise".to_owned(),
        (true, false) => "keeps all of the gain, within noise".to_owned(),
        (true, true) if percent < 50.0 => format!("keeps only {percent:.0} % of the gain"),
        (true, true) => format!("keeps {percent:.0} % of the gain"),
    }
}

/// Is it less for sure: beyond both intervals, and by more than noise?
fn is_less(a: Estimate, b: Estimate) -> bool {
    a.high < b.low && a.median < b.median * (1.0 - NOISE)
}

/// The point for a guest page on a kind, at a size.
fn at(guest: &Guest, page: GuestPage, kind: PageKind, bytes: Bytes) -> Option<Estimate> {
    let mut points = guest.points.iter();
    let here = points
        .find(|point| point.guest_page == Some(page) && (point.point.kind, point.point.bytes) == (kind, bytes))?;
    here.point.ns
}

#[cfg(test)]
mod tests {
    use model::Estimate;

    use super::share;

    /// A median with an interval of so many percent to each side.
    fn ns(median: f64, percent: f64) -> Estimate {
        Estimate {
            median,
            low: median * (1.0 - percent / 100.0),
            high: median * (1.0 + percent / 100.0),
            samples: 6,
        }
    }

    #[test]
    fn a_share_is_given_only_where_both_ends_are_beyond_noise() {
        let told = |one: Estimate| share(ns(220.0, 1.0), ns(140.0, 1.0), one);
        assert_eq!(told(ns(204.0, 1.0)), "keeps only 20 % of the gain");
        assert_eq!(told(ns(160.0, 1.0)), "keeps 75 % of the gain");
        assert_eq!(told(ns(215.0, 1.0)), "keeps nothing of the gain, within noise");
        assert_eq!(told(ns(142.0, 1.0)), "keeps all of the gain, within noise");
        assert_eq!(told(ns(120.0, 1.0)), "keeps all of the gain, within noise");
        assert_eq!(told(ns(300.0, 1.0)), "is slower than without any");
    }

    #[test]
    fn wide_intervals_are_not_talked_away() {
        let (none, both) = (ns(220.0, 2.0), ns(140.0, 2.0));
        assert_eq!(
            share(none, both, ns(190.0, 20.0)),
            "keeps nothing of the gain, within noise"
        );
        assert_eq!(
            share(none, both, ns(180.0, 40.0)),
            "cannot be told from either within noise"
        );
    }
}
