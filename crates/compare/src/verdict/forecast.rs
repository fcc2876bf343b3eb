//! Which differences comparisons of a program can show in which time, by how far its runs lie apart in a few blocks. Pure.

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
const MOST: f64 = 1e6;

/// By the runs of the first two arms, whose own difference is left out; `None` of fewer blocks than an interval takes. `times` are
/// in seconds.
pub fn of(arms: &[Arm], wanted: &Wanted, block_seconds: f64, smallest: f64, times: &[f64]) -> Option<Forecast> {
    let [reference, arm, ..] = arms else { return None };
    let triples = judge::triples(reference, arm, &|run| judge::score(run, wanted));
    let half = half(&triples)?;
    let blocks = triples.len() as f64;
    // Intervals shrink with the root of the number of blocks.
    let visible = |count: f64| (FOUND * half * (blocks / count).sqrt()).exp_m1();
    let after = |seconds: f64| {
        let count = (seconds / block_seconds.max(1e-9)).floor().clamp(0.0, MOST);
        (count >= f64::from(LEAST)).then(|| Visible {
            seconds,
            blocks: count as u32,
            effect: visible(count),
        })
    };
    let needed = blocks * (FOUND * half / smallest.max(1e-6).ln_1p()).powi(2);
    let needed = needed.ceil().clamp(f64::from(LEAST), MOST);
    Some(Forecast {
        metric: wanted.name.clone(),
        block_seconds,
        visible: times.iter().filter_map(|seconds| after(*seconds)).collect(),
        smallest: Visible {
            seconds: needed * block_seconds,
            blocks: needed as u32,
            effect: visible(needed),
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
    fn more_time_shows_less_and_what_is_forecast_is_mostly_found() {
        let mut forecast: Vec<f64> = (0..50)
            .map(|seed| {
                let pilot = compared(12, 1.0, seed);
                let forecast = super::of(&pilot.arms, &wanted(), 1.0, 0.01, &[5.0, 30.0, 120.0]).expect("enough");
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
