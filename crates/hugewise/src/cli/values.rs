//! What the words of an option mean, where their type does not say it by itself.

use std::time::Duration;

use clap::ValueEnum;
use model::{Bytes, PageKind};

/// A value as it is typed.
pub fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A page kind by name, or by the size of its pages: that of base pages, or of a hugetlb pool.
pub fn page_kind(text: &str) -> Result<PageKind, String> {
    let by_size = || match text.parse::<Bytes>().ok()? {
        Bytes(4096) => Some(PageKind::Base),
        size if size >= Bytes::kib(64) => format!("hugetlb-{}", size.exact()).parse().ok(),
        _ => None,
    };
    let named = text.parse::<PageKind>();
    named.or_else(|error| by_size().ok_or(error))
}

/// A page size, or a page kind that has one.
pub fn page_size(text: &str) -> Result<Bytes, String> {
    let of_kind = || text.parse::<PageKind>().ok().map(|kind| kind.x86_size());
    let size = text.parse::<Bytes>();
    let size = size.or_else(|error| of_kind().ok_or(error))?;
    match size.0.is_power_of_two() && size >= Bytes::kib(4) {
        true => Ok(size),
        false => Err(format!(
            "`{text}` is not a page size (write a power of two from 4K on, such as 4K, 2M or 1G)"
        )),
    }
}

/// A process id.
pub fn pid(text: &str) -> Result<u32, String> {
    let hint = || format!("`{text}` is no PID (by name: hugewise explain {text}, or hugewise ps --name {text})");
    text.parse().map_err(|_| hint())
}

/// A share such as `1%` or `0.5%`, as a number from 0 to 1.
pub fn percent(text: &str) -> Result<f64, String> {
    let fail = || format!("`{text}` is not a percentage (write a number and a percent sign, such as 1%)");
    let value = text.strip_suffix('%').and_then(|digits| digits.trim().parse().ok());
    let value = value.filter(|value: &f64| (0.0..=100.0).contains(value));
    value.map(|value| value / 100.0).ok_or_else(fail)
}

/// A time such as `30s`, `1.5s`, `500ms`, `2m` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time = text.parse::<jiff::SignedDuration>().ok();
    let time = time.and_then(|time| Duration::try_from(time).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| format!("`{text}` is not a time (write a number and a unit, such as 30s, 500ms or 2m)"))
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
