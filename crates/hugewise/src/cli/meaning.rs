//! Validated options: arguments checked, combined and completed with what the machine has. Nothing is done yet.

use std::path::Path;
use std::time::Duration;

use model::latency::Access;
use model::{Bytes, PageKind};

use super::typed::{self, Format, Global};

/// Smallest working set of a curve: half of the smallest L1 data cache in use.
pub const FROM: Bytes = Bytes::kib(16);
/// Largest working set of a curve, beyond every cache and TLB reach of base pages.
pub const TO: Bytes = Bytes::gib(2);

/// Why a command line is not valid.
#[derive(Debug, thiserror::Error)]
pub enum MeaningError {
    /// The smallest working set is above the largest.
    #[error("--from {from} is larger than --to {to} (write the smaller size after --from)")]
    FromAboveTo {
        /// The smallest.
        from: Bytes,
        /// The largest.
        to: Bytes,
    },
    /// A working set without room for a chase.
    #[error("a working set of {0} is too small (write 4K or more after --sizes or --from)")]
    TooSmall(Bytes),
    /// A format that this result does not have.
    #[error("--format {format}: this result has no such format (write {known})", known = .known.join(", "))]
    NoSuchForm {
        /// The name as typed.
        format: String,
        /// The formats that it has.
        known: Vec<String>,
    },
}

impl Format {
    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Html => "html",
            Self::Sarif => "sarif",
            Self::Prometheus => "prometheus",
            Self::Shell => "shell",
            Self::Ansible => "ansible",
        }
    }

    /// The format that belongs to a file name extension.
    fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "md" => Some(Self::Markdown),
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            "html" | "htm" => Some(Self::Html),
            "sarif" => Some(Self::Sarif),
            "prom" => Some(Self::Prometheus),
            "sh" => Some(Self::Shell),
            "yml" | "yaml" => Some(Self::Ansible),
            _ => None,
        }
    }
}

impl Global {
    /// The format of the result, one of those it has.
    pub fn form(&self, usual: Format, known: &[Format]) -> Result<Format, MeaningError> {
        let typed = if self.json { Some(Format::Json) } else { self.format };
        let format = typed
            .or_else(|| self.output.as_deref().and_then(Format::of_file))
            .unwrap_or(usual);
        if known.contains(&format) {
            return Ok(format);
        }
        Err(MeaningError::NoSuchForm {
            format: format.name().to_owned(),
            known: known.iter().map(|format| format.name().to_owned()).collect(),
        })
    }

    /// The seed typed, or a new one. 32 bits: every JSON reader keeps them exactly.
    pub fn seed(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let drawn = RandomState::new().build_hasher().finish() >> 32;
        self.seed.map_or(drawn, u64::from)
    }
}

impl typed::Latency {
    /// The working sets: the ones typed, or two per doubling between the ends; `room` is the memory to stay within
    /// where the largest was not typed.
    pub fn working_sets(
        &self,
        room: Bytes,
        between: impl Fn(Bytes, Bytes) -> Vec<Bytes>,
    ) -> Result<Vec<Bytes>, MeaningError> {
        let from = self.from.unwrap_or(FROM);
        let to = self.to.unwrap_or(TO.min(room).max(from));
        if from > to {
            return Err(MeaningError::FromAboveTo { from, to });
        }
        let sizes = if self.sizes.is_empty() {
            between(from, to)
        } else {
            self.sizes.clone()
        };
        match sizes.iter().copied().min() {
            Some(small) if small < Bytes::kib(4) => Err(MeaningError::TooSmall(small)),
            _ => Ok(sizes),
        }
    }
}

/// Working sets of a guest, if none are typed: beyond the second-level cache, and beyond every TLB reach of base pages.
const GUEST_FROM: Bytes = Bytes::mib(1);
const GUEST_TO: Bytes = Bytes::gib(1);

impl typed::Guest {
    /// The working sets: the ones typed, or at most `most` powers of two between the ends, evenly apart, with both ends.
    pub fn working_sets(&self, room: Bytes, most: usize) -> Result<Vec<Bytes>, MeaningError> {
        if !self.sizes.is_empty() {
            return Ok(self.sizes.clone());
        }
        let to = self.to.unwrap_or(GUEST_TO.min(room));
        let from = self.from.unwrap_or(GUEST_FROM.min(to));
        let to = if self.to.is_some() { to } else { to.max(from) };
        if from > to {
            return Err(MeaningError::FromAboveTo { from, to });
        }
        let octaves = (to.0 / from.0.max(1)).max(1).ilog2();
        let step = octaves.div_ceil(most.saturating_sub(1).max(1) as u32).max(1);
        let inner = (0..octaves)
            .step_by(step as usize)
            .map(|octave| Bytes(from.0 << octave));
        Ok(inner.chain([to]).collect())
    }
}

/// A page kind by name, or by the size of its pages: that of base pages, or of a hugetlb pool.
pub fn page_kind(text: &str) -> Result<PageKind, String> {
    let by_size = || match text.parse::<Bytes>().ok()? {
        Bytes(4096) => Some(PageKind::Base),
        size if size >= Bytes::kib(64) => format!("hugetlb-{}", size.exact()).parse().ok(),
        _ => None,
    };
    let named = text.parse::<PageKind>();
    named.or_else(|error| by_size().ok_or_else(|| error.to_string()))
}

/// A page kind that comes without a pool and is measured by `measure migration`.
pub fn movable_page(text: &str) -> Result<PageKind, String> {
    match page_kind(text)? {
        kind @ (PageKind::Base | PageKind::Thp) => Ok(kind),
        other => Err(format!("{other} is not measured here: write base or thp")),
    }
}

/// A page size, or a page kind that has one.
pub fn page_size(text: &str) -> Result<Bytes, String> {
    let of_kind = || {
        text.parse::<PageKind>()
            .ok()
            .map(|kind| kind.page_size(Bytes::kib(4), Bytes::mib(2)))
    };
    let size = text.parse::<Bytes>();
    size.or_else(|error| of_kind().ok_or_else(|| error.to_string()))
}

/// A process id.
pub fn pid(text: &str) -> Result<u32, String> {
    let hint = || format!("`{text}` is no PID (by name: hugewise explain {text}, or hugewise ps --name {text})");
    text.parse().map_err(|_| hint())
}

/// Parses an access that is one of two.
pub fn access(text: &str) -> Result<Access, String> {
    match text {
        "read" => Ok(Access::Read),
        "write" => Ok(Access::Write),
        _ => Err(format!("`{text}` is neither read nor write")),
    }
}

impl typed::Access {
    /// As separate measurements.
    pub fn each(self) -> Vec<Access> {
        match self {
            Self::Read => vec![Access::Read],
            Self::Write => vec![Access::Write],
            Self::Both => vec![Access::Read, Access::Write],
        }
    }
}

/// A share such as `1%` or `0.5%`, as a number from 0 to 1.
pub fn percent(text: &str) -> Result<f64, String> {
    let fail = || format!("`{text}` is not a percentage (write a number and a percent sign, such as 1%)");
    let value: f64 = text
        .strip_suffix('%')
        .and_then(|digits| digits.trim().parse().ok())
        .ok_or_else(fail)?;
    if (0.0..=100.0).contains(&value) {
        Ok(value / 100.0)
    } else {
        Err(fail())
    }
}

/// A time such as `30s`, `1.5s`, `500ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let fail = || format!("`{text}` is not a time (write a number and a unit, such as 30s, 500ms or 2m)");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err(fail()),
    };
    let value: f64 = digits.parse().map_err(|_| fail())?;
    let time = Duration::try_from_secs_f64(value * unit).map_err(|_| fail())?;
    if time.is_zero() { Err(fail()) } else { Ok(time) }
}

#[cfg(test)]
#[path = "meaning_tests.rs"]
mod tests;
