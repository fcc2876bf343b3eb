//! Which differences comparisons of a program can show in which time, by how far its runs lie apart in a few blocks. Pure.

use std::collections::BTreeSet;

use model::compare::{Arm, Forecast, Visible};

use crate::interim::LEAST;
use crate::judge;
use crate::metric::Wanted;
use crate::paired::{self, Block};

/// What the last look of a plan may spend, about.
const LEVEL: f64 = 0.04;
/// A difference that four of five comparisons find lies this many half intervals from none: (2.05 + 0.84) / 2.05, the normal
/// quantiles of 2 % and of a fifth.
const FOUND: f64 = 1.41;
/// No forecast goes beyond so many blocks.
const FARTHEST: f64 = 1e6;

/// By the runs of the first two arms, whose own difference is left out; `None` of fewer blocks than an interval takes. `times` are
/// in seconds; comparisons that have made `most` blocks end before.
pub fn of(
    arms: &[Arm],
    wanted: &Wanted,
    (block_seconds, most): (f64, u32),
    smallest: f64,
    times: &[f64],
) -> Option<Forecast> {
    let [reference, arm, ..] = arms else { return None };
    let triples = judge::triples(reference, arm, &|run| judge::score(run, wanted));
    let half = half(&triples)?;
    let blocks = triples.len() as f64;
    // Intervals shrink with the root of the number of blocks.
    let effect = |count: f64| (FOUND * half * (blocks / count).sqrt()).exp_m1();
    let after = |seconds: f64| {
        let count = (seconds / block_seconds.max(1e-9) + 1e-6).floor().min(f64::from(most));
        let is_most = count >= f64::from(most);
        (count >= f64::from(LEAST)).then(|| Visible {
            seconds: if is_most { count * block_seconds } else { seconds },
            blocks: count as u32,
            effect: effect(count),
        })
    };
    let needed = blocks * (FOUND * half / smallest.max(1e-6).ln_1p()).powi(2);
    let needed = needed.ceil().clamp(f64::from(LEAST), FARTHEST);
    let mut visible: Vec<Visible> = times.iter().filter_map(|seconds| after(*seconds)).collect();
    // More time than that for all blocks shows no more.
    let mut known = BTreeSet::new();
    visible.retain(|visible| known.insert(visible.blocks));
    Some(Forecast {
        metric: wanted.name.clone(),
        block_seconds,
        most: Some(most),
        visible,
        smallest: Visible {
            seconds: needed * block_seconds,
            blocks: needed as u32,
            effect: effect(needed),
        },
    })
}

/// Half of the interval that the test of verdicts gives, on average over which run of a block is asked about.
fn half(triples: &[(u32, [f64; 3])]) -> Option<f64> {
    let blocks = |own: usize, shift: f64| -> Vec<Block> {
        let block = |(_, scores): &(u32, [f64; 3])| {
            let mut peers = [scores[0] - shift, scores[1], scores[2]].to_vec();
            let own = peers.remove(own);
            Block { own, peers }
        };
        triples.iter().map(block).collect()
    };
    let shift = paired::interval(&blocks(0, 0.0), LEVEL)?.center;
    let halves = (0..3).filter_map(|own| {
        let (low, high) = paired::interval(&blocks(own, shift), LEVEL)?.ends?;
        Some((high - low) / 2.0)
    });
    let halves: Vec<f64> = halves.collect();
    (!halves.is_empty()).then(|| halves.iter().sum::<f64>() / halves.len() as f64)
}

#[cfg(test)]
mod tests {
    use model::PageKind;
    use model::compare::{Method, Metric};

    use crate::simulated::{self, Simulated};
    use crate::{Spec, Wanted, run};

    fn wanted() -> Wanted {
        Wanted {
            name: Metric::Cpu.name().to_owned(),
            higher: false,
        }
    }

    fn compared(most: u32, effect: f64, seed: u64) -> model::compare::Compare {
        let kinds = [PageKind::Base, PageKind::Base];
        let spec = Spec {
            most,
            smallest_effect: 0.0,
            seed,
            ..simulated::spec(Method::Runs, &kinds, wanted())
        };
        let mut executor = Simulated::new(&[1.0, effect], &kinds, seed);
        run(&spec, Vec::new(), &mut executor, &mut (), &())
            .expect("simulated")
            .0
    }

    #[test]
    fn a_comparison_that_ends_by_its_number_of_runs_shows_no_more_in_more_time() {
        let pilot = compared(12, 1.0, 7);
        let of = |most: u32| super::of(&pilot.arms, &wanted(), (1.0, most), 0.0001, &[600.0, 150.0, 2400.0]);
        let (forecast, free) = (of(30).expect("enough"), of(10_000).expect("enough"));
        let [visible] = forecast.visible[..] else {
            panic!("{forecast:?}")
        };
        assert_eq!((visible.blocks, visible.seconds), (30, 30.0));
        assert!(
            free.visible.len() == 3 && free.visible[1].effect < visible.effect,
            "{free:?}"
        );
        // What the smallest effect takes is beyond them, and is no less for that.
        assert_eq!(forecast.smallest, free.smallest);
        assert!(forecast.smallest.blocks > 30, "{forecast:?}");
    }

    #[test]
    fn more_time_shows_less_and_what_is_forecast_is_mostly_found() {
        let mut forecast: Vec<f64> = (0..50)
            .map(|seed| {
                let pilot = compared(12, 1.0, seed);
                let forecast =
                    super::of(&pilot.arms, &wanted(), (1.0, 120), 0.01, &[5.0, 30.0, 120.0]).expect("enough");
                let effects: Vec<f64> = forecast.visible.iter().map(|visible| visible.effect).collect();
                assert!(effects.len() == 2 && effects[1] < effects[0], "{forecast:?}");
                assert!(forecast.smallest.effect <= 0.0101, "{forecast:?}");
                effects[0]
            })
            .collect();
        forecast.sort_by(f64::total_cmp);
        let middle = forecast[25];
        let found = |effect: f64| {
            (1000..1100_u64)
                .filter(|seed| compared(30, 1.0 + effect, *seed).verdicts[0].high < Some(1.0))
                .count()
        };
        let (less, as_said, more) = (found(middle / 2.0), found(middle), found(middle * 1.5));
        assert!(
            less < 75 && as_said >= 60 && more >= 85,
            "{middle}: {less}, {as_said}, {more} of 100"
        );
    }
}
