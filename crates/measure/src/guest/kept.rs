//! How much of the gain from huge pages is left when only the guest or only the host has them, in one sentence. Pure.

use model::guest::{Guest, GuestPage};
use model::{Bytes, Estimate, PageKind};

/// Differences below this share are taken for noise.
const NOISE: f64 = 0.03;
/// A gain below this share is not worth dividing up.
const WORTH: f64 = 0.05;
/// Huge pages on the host, the surest kind first.
const LARGE: [PageKind; 2] = [PageKind::HUGETLB_2M, PageKind::Thp];

/// The sentence, if both corners of the matrix were measured at this size.
pub(super) fn sentence(guest: &Guest, bytes: Bytes) -> Option<String> {
    let at = |page, kind| Corner::at(guest, page, kind, bytes);
    let none = at(GuestPage::Size4K, PageKind::Base)?;
    let (kind, both) = LARGE
        .into_iter()
        .find_map(|kind| Some((kind, at(GuestPage::Size2M, kind)?)))?;
    let gain = 1.0 - both.ns() / none.ns();
    if gain < WORTH {
        return Some(format!(
            "At {bytes} pages of 2 MiB on both sides gain nothing worth speaking of ({:.0} %).",
            gain * 100.0
        ));
    }
    if !both.is_less_than(&none) {
        return Some(format!(
            "At {bytes} the gain from pages of 2 MiB on both sides is lost in noise ({:.0} ± {:.0} %): repeat on a quieter \
             machine, or with a larger --budget.",
            gain * 100.0,
            both.noise(&none) * 100.0
        ));
    }
    let one = |name: String, one: Option<Corner>| Some(format!("{name} {}", share(&none, &both, &one?)));
    let parts = [
        Some(format!(
            "Pages of 2 MiB on both sides save a guest {:.0} ± {:.0} % of the time at {bytes}",
            gain * 100.0,
            (1.0 - gain) * both.error(&none) * 100.0
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

/// What is left of the gain from `none` to `both`, as far as noise allows.
fn share(none: &Corner, both: &Corner, one: &Corner) -> String {
    let percent = (none.ns() - one.ns()) / (none.ns() - both.ns()) * 100.0;
    if none.is_less_than(one) {
        return "is slower than without any".to_owned();
    }
    match (one.is_less_than(none), both.is_less_than(one)) {
        (false, false) => "differs from neither beyond noise".to_owned(),
        (false, true) => "keeps nothing of the gain, within noise".to_owned(),
        (true, false) => "keeps all of the gain, within noise".to_owned(),
        (true, true) if percent < 50.0 => format!("keeps only {percent:.0} % of the gain"),
        (true, true) => format!("keeps {percent:.0} % of the gain"),
    }
}

/// A cell of the matrix as what it is times the native walk. Cells are measured one after the other, while contention comes
/// and goes; the native walks beside them show the state of the machine, so cells on the same memory compare by ratios.
#[derive(Clone, Copy, Debug)]
struct Corner {
    kind: PageKind,
    native: Estimate,
    ratio: Estimate,
}

impl Corner {
    fn at(guest: &Guest, page: GuestPage, kind: PageKind, bytes: Bytes) -> Option<Self> {
        let find = |page| {
            let mut points = guest.points.iter();
            points.find(|point| (point.guest_page, point.point.kind, point.point.bytes) == (page, kind, bytes))
        };
        Some(Self {
            kind,
            native: find(None)?.point.ns?,
            ratio: find(Some(page))?.ratio?,
        })
    }

    fn ns(&self) -> f64 {
        self.native.median * self.ratio.median
    }

    /// Is it less for sure: beyond the intervals of both, and by more than noise?
    fn is_less_than(&self, other: &Self) -> bool {
        self.ns() < other.ns() * (1.0 - self.noise(other))
    }

    /// The share by which both differ by chance, and never less than what counts as noise.
    fn noise(&self, other: &Self) -> f64 {
        self.error(other).max(NOISE)
    }

    /// Half the 95 % interval of the ratio of both, as a share of it: their errors are independent, as they were measured one after
    /// the other, and on the same memory the native ones cancel.
    fn error(&self, other: &Self) -> f64 {
        let natives = [self.native, other.native]
            .into_iter()
            .filter(|_| self.kind != other.kind);
        let errors = [self.ratio, other.ratio].into_iter().chain(natives);
        let squares: f64 = errors.map(|estimate| estimate.relative_error().powi(2)).sum();
        squares.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use model::{Estimate, PageKind};

    use super::{Corner, NOISE, share};

    /// A median with an interval of so many percent to each side.
    fn estimate(median: f64, percent: f64) -> Estimate {
        Estimate {
            median,
            low: median * (1.0 - percent / 100.0),
            high: median * (1.0 + percent / 100.0),
            samples: 6,
        }
    }

    /// On base pages natively 200 ns, on transparent ones 140.
    fn corner(kind: PageKind, ns: f64, percent: f64) -> Corner {
        let native = if kind == PageKind::Base { 200.0 } else { 140.0 };
        Corner {
            kind,
            native: estimate(native, 1.0),
            ratio: estimate(ns / native, percent),
        }
    }

    fn told(one: Corner) -> String {
        share(
            &corner(PageKind::Base, 220.0, 1.0),
            &corner(PageKind::Thp, 140.0, 1.0),
            &one,
        )
    }

    #[test]
    fn a_share_is_given_only_where_both_ends_are_beyond_noise() {
        let told = |ns| told(corner(PageKind::Base, ns, 1.0));
        assert_eq!(told(204.0), "keeps only 20 % of the gain");
        assert_eq!(told(160.0), "keeps 75 % of the gain");
        assert_eq!(told(215.0), "keeps nothing of the gain, within noise");
        assert_eq!(told(142.0), "keeps all of the gain, within noise");
        assert_eq!(told(120.0), "keeps all of the gain, within noise");
        assert_eq!(told(300.0), "is slower than without any");
    }

    #[test]
    fn wide_intervals_are_not_talked_away() {
        let told = |ns, percent| told(corner(PageKind::Base, ns, percent));
        assert_eq!(told(190.0, 20.0), "keeps nothing of the gain, within noise");
        assert_eq!(told(180.0, 40.0), "differs from neither beyond noise");
    }

    #[test]
    fn a_slow_spell_of_the_machine_is_no_difference_between_cells_on_the_same_memory() {
        let spell = |native: f64, percent| Corner {
            native: estimate(native, percent),
            ..corner(PageKind::Base, 200.0, 1.0)
        };
        let slower = Corner {
            ratio: estimate(1.06, 1.0),
            ..spell(300.0, 30.0)
        };
        assert!(
            spell(300.0, 30.0).is_less_than(&slower),
            "by ratios, whatever the native interval"
        );
        let elsewhere = corner(PageKind::Thp, 200.0, 1.0);
        assert!(
            !elsewhere.is_less_than(&spell(250.0, 30.0)),
            "across kinds the native interval counts"
        );
        assert!(elsewhere.is_less_than(&spell(250.0, 5.0)));
        let noise = elsewhere.noise(&corner(PageKind::Base, 200.0, 1.0));
        assert!(
            (noise - NOISE).abs() < 1e-9,
            "four errors of 1 % are 2 %, and the least is {NOISE}"
        );
    }
}
