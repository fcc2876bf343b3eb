//! Axes of charts: where the ticks go and how they read, for terminals and pictures alike.

use model::Bytes;

use crate::words::or_empty;

/// How values map to distance along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal factors are equally far apart.
    Log,
    /// Equal differences are equally far apart; the axis contains zero.
    Linear,
    /// Likewise, but the axis is no longer than the values need: for values that lie close together.
    Close,
}

impl Scale {
    /// Where a value lies along the axis, in the axis' own unit.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Linear | Self::Close => value,
        }
    }
}

/// One axis: its ends and its ticks, both in places along the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// First and last place.
    pub ends: [f64; 2],
    /// Places that get a label, with the label.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// The label of the tick at a place; empty between ticks.
    pub fn label(&self, place: f64) -> String {
        let near = |tick: &&(f64, String)| (tick.0 - place).abs() < 1e-6;
        or_empty(self.ticks.iter().find(near).map(|tick| &tick.1))
    }

    /// An axis of sizes: places are powers of two, at most `max` of them labelled.
    pub fn sizes(sizes: impl Iterator<Item = Bytes>, max: usize) -> Self {
        let (low, high) = ends(sizes.map(|size| (size.0.max(1) as f64).log2()));
        let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        let step = (1..)
            .find(|step| (high - low) as usize / step < max.max(2))
            .unwrap_or(1);
        let ticks = (low as u32..=high as u32).step_by(step);
        Self {
            ends: [low, high],
            ticks: ticks
                .map(|power| (f64::from(power), Bytes(1 << power.min(63)).exact()))
                .collect(),
        }
    }

    /// An axis of values on the given scale, at most `max` of them labelled.
    pub fn values(values: impl Iterator<Item = f64>, scale: Scale, max: usize) -> Self {
        let (low, high) = ends(values.filter(|value| value.is_finite()));
        match scale {
            Scale::Log => log_axis(low, high, max),
            Scale::Linear => linear_axis(low.min(0.0), high.max(0.0), max),
            Scale::Close => {
                let air = air(low, high);
                linear_axis(low - air, high + air, max)
            }
        }
    }

    /// An axis of turns from 1 to `last`, at most `max` of them labelled.
    pub fn turns(last: u64, max: usize) -> Self {
        let step = round_step(last as f64 / max.max(2) as f64).max(1.0) as u64;
        let ticks = (1..=last).filter(|turn| turn.is_multiple_of(step));
        Self {
            ends: [0.5, last as f64 + 0.5],
            ticks: ticks.map(|turn| (turn as f64, turn.to_string())).collect(),
        }
    }
}

/// A close axis is at least this share of its values long: noise below it is not worth a look.
const LEAST_LENGTH: f64 = 0.02;

/// What a close axis leaves free at both ends.
fn air(low: f64, high: f64) -> f64 {
    let (length, least) = (high - low, low.abs().max(high.abs()) * LEAST_LENGTH);
    let air = (length / 20.0).max((least - length) / 2.0);
    if air > 0.0 { air } else { 0.5 }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { (1.0, 10.0) }
}

/// From the 1, 2, 5 value at or below to the one at or above; labels thin out to 1, 3 or to 1 of each decade.
fn log_axis(low: f64, high: f64, max: usize) -> Axis {
    let low = low.max(1e-3);
    let high = high.max(low * 1.01);
    let series = |digits: &[f64]| -> Vec<f64> {
        let decades = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32;
        let of = |decade| digits.iter().map(move |digit| digit * 10f64.powi(decade));
        decades.flat_map(of).collect()
    };
    let fine = series(&[1.0, 2.0, 5.0]);
    let first = fine.iter().copied().rfind(|&value| value <= low * 1.001).unwrap_or(low);
    let last = fine
        .iter()
        .copied()
        .find(|&value| value >= high * 0.999)
        .unwrap_or(high);
    let inside = |values: Vec<f64>| -> Vec<f64> {
        let within = |value: &f64| *value >= first * 0.999 && *value <= last * 1.001;
        values.into_iter().filter(within).collect()
    };
    let choices = [fine.clone(), series(&[1.0, 3.0]), series(&[1.0])].map(inside);
    let values = choices.iter().find(|values| values.len() <= max).unwrap_or(&choices[2]);
    Axis {
        ends: [first.log10(), last.log10()],
        ticks: values.iter().map(|&value| (value.log10(), number(value))).collect(),
    }
}

fn linear_axis(low: f64, high: f64, max: usize) -> Axis {
    let span = (high - low).max(1e-9);
    let step = round_step(span / max.max(2) as f64);
    // As many decimals as adjacent labels need to differ.
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    let ticks = (first..=last).map(|n| n as f64 * step);
    Axis {
        ends: [first as f64 * step, last as f64 * step],
        ticks: ticks.map(|value| (value, format!("{value:.decimals$}"))).collect(),
    }
}

/// 1, 2 or 5 times a power of ten, not below `rough`.
fn round_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * decade)
        .into_iter()
        .find(|&step| step >= rough)
        .unwrap_or(rough)
}

/// Three significant digits without trailing zeros: `0.5`, `1.25`, `98.2`, `142`.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    match without_zeros(&format!("{value:.decimals$}")) {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A number without zeros behind its decimal point, and without a point that has nothing behind it.
pub fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Scale, number};
    use model::Bytes;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn sizes_are_powers_of_two_and_thin_out() {
        let axis = Axis::sizes([Bytes::kib(16), Bytes::kib(24), Bytes::gib(2)].into_iter(), 9);
        assert_eq!(axis.ends, [14.0, 31.0]);
        assert_eq!(
            labels(&axis),
            ["16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G"]
        );
        assert_eq!(axis.label(20.0), "1M");
        assert_eq!(axis.label(21.0), "");
        let one = Axis::sizes([Bytes::mib(1)].into_iter(), 9);
        assert_eq!(labels(&one), ["1M", "2M"]);
    }

    #[test]
    fn log_axes_end_on_round_values() {
        let axis = Axis::values([1.1, 260.0].into_iter(), Scale::Log, 9);
        assert_eq!(labels(&axis), ["1", "2", "5", "10", "20", "50", "100", "200", "500"]);
        let thin = Axis::values([1.1, 260.0].into_iter(), Scale::Log, 4);
        assert_eq!(labels(&thin), ["1", "10", "100"]);
        assert_eq!(thin.ends, axis.ends);
    }

    #[test]
    fn linear_axes_contain_zero_and_nothing_is_drawable_too() {
        let axis = Axis::values([12.0, 44.0].into_iter(), Scale::Linear, 6);
        assert_eq!(labels(&axis), ["0", "10", "20", "30", "40", "50"]);
        let negative = Axis::values([-3.0, 8.0].into_iter(), Scale::Linear, 6);
        assert_eq!(labels(&negative), ["-4", "-2", "0", "2", "4", "6", "8"]);
        for scale in [Scale::Log, Scale::Linear, Scale::Close] {
            assert!(Axis::values([f64::NAN].into_iter(), scale, 5).ticks.len() > 1);
        }
    }

    #[test]
    fn close_axes_are_as_long_as_their_values_and_labels_differ() {
        let axis = Axis::values([1.012, 1.043].into_iter(), Scale::Close, 6);
        assert_eq!(labels(&axis), ["1.01", "1.02", "1.03", "1.04", "1.05"]);
        assert!(axis.ends[0] <= 1.012 && axis.ends[1] >= 1.043);
        let equal = Axis::values([5.0, 5.0].into_iter(), Scale::Close, 6);
        assert!(
            equal.ends[0] < 5.0 && equal.ends[1] > 5.0 && equal.ends[1] < 5.2,
            "{equal:?}"
        );
        let zero = Axis::values([0.0].into_iter(), Scale::Close, 6);
        assert!(
            zero.ends[0] < 0.0 && zero.ends[1] > 0.0 && zero.ticks.len() > 2,
            "{zero:?}"
        );
    }

    #[test]
    fn turns_are_whole_and_thin_out() {
        assert_eq!(labels(&Axis::turns(4, 8)), ["1", "2", "3", "4"]);
        let many = Axis::turns(93, 10);
        assert_eq!(labels(&many), ["10", "20", "30", "40", "50", "60", "70", "80", "90"]);
        assert_eq!(many.ends, [0.5, 93.5]);
        assert_eq!(labels(&Axis::turns(1, 8)), ["1"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.5, 1.254, 10.0, 98.23, 141.6, -0.001].map(number);
        assert_eq!(texts, ["0.5", "1.25", "10", "98.2", "142", "0"]);
    }
}
