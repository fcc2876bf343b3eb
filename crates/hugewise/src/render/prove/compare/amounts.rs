//! Values of metrics, gains and the name of the reference, as text.

use model::Bytes;
use model::compare::{Compare, Metric};

use crate::render::measure::kernelops::time;
use draw::without_zeros;

/// A value of a metric with its unit.
pub(super) fn value(metric: &str, value: f64) -> String {
    match Metric::named(metric) {
        Some(Metric::Wall | Metric::Cpu | Metric::User | Metric::System) if value >= 1.0 => format!("{value:.3} s"),
        Some(Metric::Wall | Metric::Cpu | Metric::User | Metric::System) => time(value * 1e9),
        Some(Metric::Memory) => Bytes(value as u64).to_string(),
        Some(Metric::DtlbMpki) => format!("{value:.2}"),
        Some(_) if value >= 1e7 => format!("{:.1} M", value / 1e6),
        Some(_) => format!("{value:.0}"),
        None => own(value),
    }
}

/// A number that the program printed, with six digits at most.
fn own(value: f64) -> String {
    let (size, unit) = if value.abs() >= 1e6 { (1e6, " M") } else { (1.0, "") };
    let scaled = value / size;
    let whole = scaled.abs().max(1.0).log10() as usize + 1;
    let text = format!("{scaled:.decimals$}", decimals = 6_usize.saturating_sub(whole).min(4));
    format!("{}{unit}", without_zeros(&text))
}

fn percent(ratio: f64) -> String {
    let text = format!("{:+.1} %", (ratio - 1.0) * 100.0);
    match text.as_str() {
        "+0.0 %" | "-0.0 %" => "0.0 %".to_owned(),
        _ => text,
    }
}

/// A gain and its interval: `+31.2 % (+29.9 % to +32.6 %)`; a few pairs have none.
pub(crate) fn gain(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => format!("{} ({} to {})", percent(ratio), percent(low), percent(high)),
        (Some(ratio), ..) => format!("{} (too few pairs)", percent(ratio)),
        _ => "?".to_owned(),
    }
}

/// The arm that all others are compared with.
pub(super) fn reference(compare: &Compare) -> &str {
    compare.arms.first().map_or("", |arm| arm.name.as_str())
}
