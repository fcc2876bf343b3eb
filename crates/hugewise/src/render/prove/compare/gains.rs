//! The gain of each arm in each metric with its interval, as a chart.

use model::compare::{Compare, Judged};

use super::amounts::{gain, reference};
use draw::{Along, Dot, Figure, Scale, Series, TONES, Tone, printable};

/// No gain is below -100 %; one beyond this, or an interval that ends there, would flatten all others.
const MOST: f64 = 300.0;

/// A row for each verdict; below those of a metric the reference against itself, which shows the noise.
pub(crate) fn chart(compare: &Compare) -> Option<Figure> {
    let tones: Vec<Tone> = Tone::distinct(compare.arms.iter().map(|arm| arm.kind));
    let rows = compare.controls.iter().flat_map(|control| {
        let judged = compare.verdicts.iter().filter(|judged| judged.metric == control.metric);
        let judged = judged.filter_map(|judged| judged_row(compare, judged, &tones));
        let name = format!("{} against itself, {}", reference(compare), control.metric);
        let itself = row(&name, TONES[7], [control.ratio, control.low, control.high]);
        judged.chain(itself).collect::<Vec<_>>()
    });
    let series: Vec<Series> = rows.collect();
    let title = printable(&format!("Gain over {}, with 95 % intervals", reference(compare)));
    let y = ("gain, %", Scale::Linear);
    (!series.is_empty()).then(|| Figure::new("gains", title, Along::Gain, y, series))
}

fn judged_row(compare: &Compare, judged: &Judged, tones: &[Tone]) -> Option<Series> {
    let arm = compare.arms.iter().position(|arm| arm.name == judged.arm)?;
    let name = format!("{}, {}", judged.arm, judged.metric);
    let mut row = row(&name, *tones.get(arm)?, [judged.ratio, judged.low, judged.high])?;
    row.name = format!("{}; {}", row.name, judged.verdict.name());
    Some(row)
}

/// Named with its numbers; without an interval there is nothing to hold against no gain.
fn row(name: &str, tone: Tone, [ratio, low, high]: [Option<f64>; 3]) -> Option<Series> {
    let percent = |ratio: f64| ((ratio - 1.0) * 100.0).min(MOST);
    let name = printable(&format!("{name}: {}", gain(ratio, low, high)));
    let dot = Dot::new(1, [ratio?, low?, high?].map(percent), name.clone());
    Some(Series::line(&name, tone, vec![dot]))
}
