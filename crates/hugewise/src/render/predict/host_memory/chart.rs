//! Charts over time: memory on huge pages, what sharing saves, what is swapped, and time lost to translation.

use studies::host_memory::{HostMemory, Outcome, Sample};

use draw::{Along, Dot, Figure, Scale, Series, TONES, number};

/// What a chart shows: its name, its title, its unit, and the value of a sample.
type Shown = (&'static str, &'static str, &'static str, fn(&Sample) -> f64);

const GIB: f64 = (1_u64 << 30) as f64;

const SHOWN: [Shown; 5] = [
    ("large", "Guest memory backed by huge pages", "GiB", |sample| {
        (sample.amounts.large.0 + sample.amounts.giant.0) as f64 / GIB
    }),
    ("saved", "Memory that sharing saves", "GiB", |sample| {
        sample.saved.0 as f64 / GIB
    }),
    ("swapped", "Swapped out and in so far", "GiB", |sample| {
        (sample.swapped[0].0 + sample.swapped[1].0) as f64 / GIB
    }),
    ("free", "Free memory", "GiB", |sample| sample.free.0 as f64 / GIB),
    ("lost", "CPU time that translation takes", "%", |sample| {
        sample.lost.middle * 100.0
    }),
];

/// One chart for each, with a line for each policy; those without any value are left out.
pub(super) fn all(result: &HostMemory) -> Vec<Figure> {
    let shown = SHOWN.into_iter().filter(|(.., value)| {
        let mut samples = result.outcomes.iter().flat_map(|outcome| &outcome.samples);
        samples.any(|sample| value(sample) > 0.0)
    });
    shown.map(|shown| figure(result, shown)).collect()
}

fn figure(result: &HostMemory, (id, title, unit, value): Shown) -> Figure {
    let samples = result
        .outcomes
        .first()
        .map_or(1, |outcome| outcome.samples.len().max(1));
    let each = result.seconds / samples as f64;
    let series = result
        .outcomes
        .iter()
        .zip(TONES.iter().cycle())
        .map(|(outcome, tone)| Series::line(outcome.policy.name(), *tone, dots(outcome, unit, value)));
    let title = format!("{title}, each point after another {} s", number(each));
    let id = format!("host-memory-{id}");
    Figure::new(id, title, Along::Turns("sample"), (unit, Scale::Linear), series)
}

fn dots(outcome: &Outcome, unit: &str, value: fn(&Sample) -> f64) -> Vec<Dot> {
    let each = outcome.samples.iter().zip(1..);
    each.map(|(sample, at)| {
        let value = value(sample);
        let tip = format!(
            "{}, {} s: {} {unit}, state {}",
            outcome.policy.name(),
            number(sample.at_s),
            number(value),
            sample.level.name()
        );
        Dot::new(at, [value; 3], tip)
    })
    .collect()
}
