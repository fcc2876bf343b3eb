//! Which page size of the host lies under huge pages: a whole page needs one TLB entry, a splintered one many.

use model::tlb::{HostBacking, Verdict};

/// What lines are visited on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Small pages, one line each: what a splintered page must cost.
    Small,
    /// As many lines on as few small pages as hold them: what a page held whole must cost.
    Dense,
    /// One huge page, its lines on as many small pages' worth of it.
    Region(usize),
}

/// Memory to be judged.
pub trait Regions {
    /// How many huge pages are sampled.
    fn count(&self) -> usize;

    /// Core cycles of one access when `lines` lines of an area take turns; `None` if this attempt was disturbed.
    fn cost(&mut self, area: Area, lines: u32, pass: u32) -> Option<f64>;
}

/// What sampling huge pages of one size gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Pages that behave as one TLB entry.
    pub whole: usize,
    /// Pages that behave as smaller ones.
    pub split: usize,
    /// Pages in between.
    pub unclear: usize,
    /// Cycles between both references: many entries less one.
    pub contrast: f64,
    /// How far the references differ between halves of the passes, in cycles.
    pub noise: f64,
}

/// Least contrast in cycles: half of the smallest known first-level miss penalty.
const LEAST_CONTRAST: f64 = 1.5;
/// Contrast must exceed the noise by this factor.
const ABOVE_NOISE: f64 = 8.0;
/// From this share of the contrast on a page counts as splintered.
const SPLIT_FROM: f64 = 0.65;
/// Up to this share it counts as whole.
const WHOLE_TO: f64 = 0.35;

/// Samples every huge page in `passes` passes. `lines` must be well beyond the first-level entries for small pages, and the
/// lines must fit the first-level cache.
pub fn sample(regions: &mut dyn Regions, lines: u32, passes: u32, stop: &dyn Fn() -> bool) -> Split {
    let areas: Vec<Area> = [Area::Small, Area::Dense]
        .into_iter()
        .chain((0..regions.count()).map(Area::Region))
        .collect();
    let mut costs = vec![Vec::new(); areas.len()];
    for pass in 0..passes {
        if stop() {
            break;
        }
        for (area, costs) in areas.iter().zip(&mut costs) {
            costs.extend(regions.cost(*area, lines, pass));
        }
    }
    judge(&costs[0], &costs[1], &costs[2..])
}

fn judge(small: &[f64], dense: &[f64], regions: &[Vec<f64>]) -> Split {
    let (many, one) = (floor(small), floor(dense));
    let contrast = many - one;
    let mut split = Split {
        whole: 0,
        split: 0,
        unclear: 0,
        contrast,
        noise: wobble(small).max(wobble(dense)),
    };
    for region in regions {
        let share = (floor(region) - one) / contrast;
        match share {
            _ if !split.is_clear() || !share.is_finite() => split.unclear += 1,
            share if share >= SPLIT_FROM => split.split += 1,
            share if share <= WHOLE_TO => split.whole += 1,
            _ => split.unclear += 1,
        }
    }
    split
}

fn floor(costs: &[f64]) -> f64 {
    costs.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The difference between the floors of even and odd passes: infinite with too few of them.
fn wobble(costs: &[f64]) -> f64 {
    let half = |first: usize| floor(&costs.iter().skip(first).step_by(2).copied().collect::<Vec<_>>());
    let difference = (half(0) - half(1)).abs();
    if difference.is_nan() { f64::INFINITY } else { difference }
}

impl Split {
    /// Do the two references differ clearly enough to judge anything by them?
    pub fn is_clear(self) -> bool {
        self.contrast >= LEAST_CONTRAST && self.contrast > ABOVE_NOISE * self.noise
    }

    fn judged(self) -> usize {
        self.whole + self.split
    }

    /// Share of splintered pages among those that could be judged.
    pub fn share(self) -> Option<f64> {
        (self.judged() > 0).then(|| self.split as f64 / self.judged() as f64)
    }

    /// From 0 to 1: how many pages could be judged, and how clear the references are.
    fn confidence(self) -> f64 {
        let all = self.judged() + self.unclear;
        let judged = self.judged() as f64 / all.max(1) as f64;
        // With n pages of one kind, a share of other pages below 1/(n+2) is still likely to be missed.
        let seen = 1.0 - 1.0 / (self.judged() as f64 + 2.0);
        let clear = if self.is_clear() {
            1.0 - self.noise / self.contrast
        } else {
            0.0
        };
        judged * seen * clear
    }

    fn told(self, page: &str, parts: &str) -> String {
        format!(
            "of {} pages of {page}, {} cost as much as {parts} pages, {} as one entry, {} neither (references {:.1} cycles apart, noise {:.2})",
            self.judged() + self.unclear,
            self.split,
            self.whole,
            self.unclear,
            self.contrast,
            self.noise
        )
    }
}

/// The verdict from 2 MiB pages sampled at 4 KiB, and 1 GiB pages sampled at 2 MiB if there were any.
pub fn verdict(large: Option<Split>, huge: Option<Split>, in_vm: bool) -> HostBacking {
    let mut evidence: Vec<String> = large.iter().map(|split| split.told("2M", "4K")).collect();
    evidence.extend(huge.iter().map(|split| split.told("1G", "2M")));
    let (verdict, decided) = decide(large, huge, in_vm);
    if verdict == Verdict::None && huge.is_none() {
        evidence.push("1G pages were not tried: splintering of those alone would not be seen".to_owned());
    }
    if verdict == Verdict::Unknown {
        evidence.push("too few pages could be judged; measure again on a quieter machine".to_owned());
    }
    let split = decided.and_then(Split::share);
    let confidence = decided.map_or(0.0, Split::confidence);
    HostBacking {
        verdict,
        confidence: if verdict == Verdict::Unknown { 0.0 } else { confidence },
        splintered: split.filter(|_| verdict != Verdict::Unknown),
        evidence,
    }
}

/// No verdict: an emulator translates in software, whatever pages the host has.
pub fn emulated() -> HostBacking {
    let why = "this CPU is emulated in software (QEMU TCG): its times say nothing of the host's pages";
    HostBacking {
        evidence: vec![why.to_owned()],
        ..HostBacking::default()
    }
}

fn decide(large: Option<Split>, huge: Option<Split>, in_vm: bool) -> (Verdict, Option<Split>) {
    let usable = |split: Split| split.is_clear() && split.judged() >= 8 * split.unclear.max(1);
    let Some(large) = large.filter(|&split| usable(split)) else {
        return (Verdict::Unknown, None);
    };
    // Any splintered page at all says that the host gives small pages there; the share says how much of it.
    if large.split * 20 > large.judged() {
        return (Verdict::Small, Some(large));
    }
    match huge.filter(|&split| split.is_clear() && split.judged() > split.unclear) {
        Some(huge) if huge.split > 0 => (Verdict::Large, Some(huge)),
        Some(huge) if in_vm => (Verdict::Huge, Some(huge)),
        _ => (Verdict::None, Some(large)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Area, Regions, Split, emulated, sample, verdict};
    use model::tlb::Verdict;

    #[test]
    fn an_emulated_cpu_gets_no_verdict() {
        let backing = emulated();
        assert_eq!((backing.verdict, backing.splintered), (Verdict::Unknown, None));
        assert!(backing.evidence[0].contains("emulated"), "{:?}", backing.evidence);
    }

    /// Pages that are whole or split, a first-level TLB of 72 entries and a penalty of 7 cycles, under contention.
    struct Imitation {
        split: Vec<bool>,
        noise: f64,
        random: u64,
    }

    impl Imitation {
        fn new(split: Vec<bool>, noise: f64, seed: u64) -> Self {
            Self {
                split,
                noise,
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            }
        }

        fn chance(&mut self) -> f64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    impl Regions for Imitation {
        fn count(&self) -> usize {
            self.split.len()
        }

        fn cost(&mut self, area: Area, lines: u32, _: u32) -> Option<f64> {
            let many = match area {
                Area::Small => true,
                Area::Dense => false,
                Area::Region(region) => self.split[region],
            };
            let clean = if many && lines > 72 { 12.0 } else { 5.0 };
            Some(clean * (1.0 + self.noise * self.chance()))
        }
    }

    fn judged(split: Vec<bool>, noise: f64, seed: u64) -> Split {
        sample(&mut Imitation::new(split, noise, seed), 108, 12, &|| false)
    }

    #[test]
    fn whole_split_and_mixed_backing_are_named_rightly_in_all_runs() {
        for seed in 0..20 {
            let small = verdict(Some(judged(vec![true; 32], 0.1, seed)), None, true);
            assert_eq!(small.verdict, Verdict::Small, "{small:?}");
            assert!(small.confidence > 0.8 && small.splintered == Some(1.0), "{small:?}");
            let none = verdict(Some(judged(vec![false; 32], 0.1, seed)), None, true);
            assert_eq!((none.verdict, none.splintered), (Verdict::None, Some(0.0)), "{none:?}");
            let mixed = verdict(
                Some(judged((0..32).map(|n| n % 4 == 0).collect(), 0.1, seed)),
                None,
                true,
            );
            assert_eq!(
                (mixed.verdict, mixed.splintered),
                (Verdict::Small, Some(0.25)),
                "{mixed:?}"
            );
        }
    }

    #[test]
    fn huge_pages_tell_two_mebibytes_from_a_gibibyte_and_a_host_from_none() {
        let whole = judged(vec![false; 32], 0.1, 1);
        let huge = |split: bool, in_vm| verdict(Some(whole), Some(judged(vec![split; 4], 0.1, 2)), in_vm).verdict;
        assert_eq!(huge(true, true), Verdict::Large);
        assert_eq!(huge(false, true), Verdict::Huge);
        assert_eq!(huge(false, false), Verdict::None);
    }

    #[test]
    fn heavy_noise_is_no_verdict_rather_than_a_wrong_one() {
        let mut refused = 0;
        for seed in 0..50 {
            for split in [false, true] {
                let backing = verdict(Some(judged(vec![split; 32], 40.0, seed)), None, true);
                let right = if split { Verdict::Small } else { Verdict::None };
                assert!(
                    [right, Verdict::Unknown].contains(&backing.verdict),
                    "{split} {backing:?}"
                );
                refused += usize::from(backing.verdict == Verdict::Unknown);
            }
        }
        assert!(refused > 50, "{refused}");
        assert_eq!(verdict(None, None, true).verdict, Verdict::Unknown);
    }
}
