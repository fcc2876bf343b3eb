//! Every run of a comparison in order of time, as a chart and as one line of blocks for a terminal: drift is seen, not guessed.

use model::Bytes;
use model::compare::{Arm, Compare, LeftOut, Metric, Run};

use super::amounts::value;
use draw::{Along, Dot, Figure, Scale, Series, Sheet, Tone, or, printable};

/// Columns of a strip, at most.
const STRIP: usize = 36;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chart of one metric; `None` if no run has it.
pub(super) fn chart(compare: &Compare, metric: &str) -> Option<Figure> {
    let timed = compare.in_time();
    let values = timed.iter().filter_map(|(_, run)| run.metrics.get(metric));
    let most = values.fold(0.0, |most: f64, value| most.max(value.abs()));
    let (size, label) = unit(metric, most);
    let turn = compare.design.method.turn();
    let tones = Tone::distinct(compare.arms.iter().map(|arm| arm.kind));
    let of_arm = |(index, (arm, tone)): (usize, (&Arm, Tone))| {
        let mine = (1..).zip(&timed).filter(|(_, (of, _))| *of == index);
        let dots = mine.filter_map(|(at, (_, run))| dot(arm, run, at, metric, (size, turn)));
        let dots: Vec<Dot> = dots.collect();
        let level = stats::estimate(&dots.iter().map(|dot| dot.value).collect::<Vec<_>>())?;
        let [median, low, high] = [level.median, level.low, level.high].map(|level| value(metric, level * size));
        let name = printable(&format!("{}: {median} ({low} to {high})", arm.name));
        let level = Some(level);
        Some(Series {
            level,
            ..Series::line(&name, tone, dots)
        })
    };
    let arms = compare.arms.iter().zip(tones).enumerate();
    let series: Vec<Series> = arms.filter_map(of_arm).collect();
    let id = format!("runs-{}", metric.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    let title = printable(&format!(
        "Every {turn} by {metric}, with medians and their 95 % intervals"
    ));
    let y = (&*printable(&label), Scale::Close);
    (!series.is_empty()).then(|| Figure::new(id, title, Along::Turns(turn), y, series))
}

fn dot(arm: &Arm, run: &Run, at: u64, metric: &str, (size, turn): (f64, &str)) -> Option<Dot> {
    let measured = *run.metrics.get(metric)?;
    let place = if run.again { ", the reference's second" } else { "" };
    let tip = format!(
        "{}, {turn} {at}: {}; block {}{place}; {}",
        arm.name,
        value(metric, measured),
        run.block + 1,
        covered(arm, run)
    );
    Some(Dot::new(at, [measured / size; 3], printable(&tip)))
}

/// The proof of a run's pages, in words.
fn covered(arm: &Arm, run: &Run) -> String {
    let of = if run.text.is_some() { "code" } else { "memory" };
    let pages = or(arm.kind, "large");
    let covered = match run.coverage(arm.kind) {
        Ok(share) => format!("{:.1} % of the {of} on {pages} pages", share * 100.0),
        Err(why) => format!("page kinds not known: {why}"),
    };
    match run.left_out {
        None => covered,
        Some(why) => format!("{covered}; does not count: {}", left_out(why)),
    }
}

/// Why a run does not count, as a clause.
fn left_out(why: LeftOut) -> &'static str {
    match why {
        LeftOut::WrongPages => "it was on other pages",
        LeftOut::OtherFaults => "its page faults are unlike those of the proved runs",
        LeftOut::Unproved => "its pages are not proved",
    }
}

/// What values are divided by on an axis, so that its labels are short, and the name of the axis.
fn unit(metric: &str, most: f64) -> (f64, String) {
    let units = match Metric::named(metric) {
        Some(Metric::Wall | Metric::Cpu | Metric::User | Metric::System) => [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
        Some(Metric::Memory) => [
            (Bytes::gib(1).0 as f64, "GiB"),
            (Bytes::mib(1).0 as f64, "MiB"),
            (Bytes::kib(1).0 as f64, "KiB"),
        ],
        _ => [(1e6, "millions"), (1e3, "thousands"), (1.0, "")],
    };
    let (size, name) = units.into_iter().find(|(size, _)| most >= *size).unwrap_or(units[2]);
    let label = [metric, name].join(if name.is_empty() { "" } else { ", " });
    (size, label)
}

/// One line of blocks for each arm: higher ones for higher values, from the first block of runs to the last.
pub(super) fn strips(compare: &Compare, metric: &str) -> Sheet {
    let turn = compare.design.method.turn();
    let all: Vec<f64> = compare.arms.iter().flat_map(|arm| arm.values(metric)).collect();
    let [low, high] = ends(&all);
    let heads = ["arm", "#lowest", "in order of time", "#highest"];
    let mut sheet = Sheet::new(&format!("Every {turn} by {metric}"), heads);
    for arm in &compare.arms {
        let values = arm.values(metric);
        if values.is_empty() {
            continue;
        }
        let [least, most] = ends(&values).map(|end| value(metric, end));
        let strip = strip(&by_block(arm, metric), low, high);
        sheet.row([&arm.name, &least, &strip, &most]);
    }
    if high > low {
        let [bottom, top] = [HEIGHTS[0], HEIGHTS[HEIGHTS.len() - 1]];
        let [low, high] = [low, high].map(|end| value(metric, end));
        sheet.note(format!(
            "{bottom} is {low}, {top} is {high}; columns of all arms are of the same time"
        ));
    }
    sheet
}

pub(super) fn ends(values: &[f64]) -> [f64; 2] {
    let nothing = [f64::INFINITY, f64::NEG_INFINITY];
    let wider = |[low, high]: [f64; 2], &value: &f64| [low.min(value), high.max(value)];
    values.iter().fold(nothing, wider)
}

/// An arm's median of each block, so that the arms' columns stand for the same time.
fn by_block(arm: &Arm, metric: &str) -> Vec<f64> {
    let last = arm.runs.iter().map(|run| run.block).max().unwrap_or(0);
    let of_block = |block: u32| {
        let runs = arm.counted().filter(|run| run.block == block);
        let values: Vec<f64> = runs.filter_map(|run| run.metrics.get(metric).copied()).collect();
        stats::median(&values).unwrap_or(f64::NAN)
    };
    (0..=last).map(of_block).collect()
}

/// A column for each value, or for the median of adjacent ones where there are too many; a blank where there is none.
fn strip(values: &[f64], low: f64, high: f64) -> String {
    let height = |values: &[f64]| {
        let there: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let Some(median) = stats::median(&there) else {
            return ' ';
        };
        let share = if high > low { (median - low) / (high - low) } else { 0.5 };
        HEIGHTS[(share * (HEIGHTS.len() - 1) as f64).round() as usize]
    };
    values.chunks(values.len().div_ceil(STRIP).max(1)).map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::{STRIP, strip, unit};

    #[test]
    fn a_strip_rises_with_its_values_and_never_gets_too_long() {
        assert_eq!(strip(&[1.0, 1.5, 2.0, f64::NAN, 1.0], 1.0, 2.0), "▁▅█ ▁");
        assert_eq!(strip(&[1.0, 1.0], 1.0, 1.0), "▅▅");
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        let strip = strip(&many, 0.0, 999.0);
        assert!(
            strip.chars().count() <= STRIP && strip.starts_with('▁') && strip.ends_with('█'),
            "{strip}"
        );
    }

    #[test]
    fn units_keep_labels_short() {
        let label = |metric, most| unit(metric, most).1;
        assert_eq!(label("wall", 0.5), "wall, ms");
        assert_eq!(label("memory", 3e9), "memory, GiB");
        assert_eq!(label("faults", 262_144.0), "faults, thousands");
        assert_eq!([label("rate", 12.0), label("rate", 0.0)], ["rate", "rate"]);
    }
}
