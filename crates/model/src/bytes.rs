//! Sizes in bytes, as users type them (`16K`, `2M`, `3.5g`) and as tables print them.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes. Units are binary; in text the unit is never optional, in JSON it is a plain number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const UNITS: [(char, u64); 5] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10), ('B', 1)];

impl Bytes {
    /// One KiB times `n`; of products that no machine has, the largest number stands for all.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// One MiB times `n`.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// One GiB times `n`.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// The smallest multiple of `step` that is no smaller than this size, or the largest one that there is.
    pub const fn round_up_to(self, step: Bytes) -> Self {
        match self.0.checked_next_multiple_of(step.0) {
            Some(bytes) => Self(bytes),
            None => Self(self.0 / step.0 * step.0),
        }
    }

    /// As `usize`, for address arithmetic on the machine that runs this.
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// Is it a size that pages have: a power of two, and 4 KiB at least?
    pub const fn is_page(self) -> bool {
        self.0 >= 4096 && self.0.is_power_of_two()
    }

    /// The name kernels and tools give a page of this size, exact or else in bytes: `64K`, `2M`, `1G`.
    pub fn exact(self) -> String {
        for (unit, size) in UNITS {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return format!("{}{unit}", self.0 / size);
            }
        }
        "0B".to_owned()
    }
}

/// Of sums that no machine has, the largest number stands for all.
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|bytes| bytes.0).fold(0, u64::saturating_add))
    }
}

impl fmt::Display for Bytes {
    /// Rounded for reading: `1.5G`, `24K`, `0B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS.into_iter().find(|&(_, size)| self.0 >= size).unwrap_or(('B', 1));
        let value = self.0 as f64 / size as f64;
        let text = if value >= 100.0 || self.0.is_multiple_of(size) {
            format!("{value:.0}{unit}")
        } else {
            format!("{value:.1}{unit}")
        };
        f.pad(&text)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail =
            |why| format!("`{text}` is not a size: {why} (write a number and a unit, such as 16K, 2M, 1G or 3.5G)");
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = trimmed[digits.len()..].to_ascii_uppercase();
        let is_unit = |&(letter, _): &(char, u64)| match unit.strip_prefix(letter) {
            Some(rest) => rest.is_empty() || (letter != 'B' && matches!(rest, "B" | "IB")),
            None => false,
        };
        let unknown = if unit.is_empty() {
            "the unit is missing"
        } else {
            "unknown unit"
        };
        let (_, size) = UNITS.into_iter().find(is_unit).ok_or_else(|| fail(unknown))?;
        if let Ok(whole) = digits.parse::<u64>() {
            return whole.checked_mul(size).map(Self).ok_or_else(|| fail("too large"));
        }
        let value: f64 = digits.parse().map_err(|_| fail("the number cannot be read"))?;
        let bytes = value * size as f64;
        if !(0.0..1.8e19).contains(&bytes) {
            return Err(fail("out of range"));
        }
        if bytes.fract() != 0.0 {
            return Err(fail("not a whole number of bytes"));
        }
        Ok(Self(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn reads_what_users_type() {
        for (text, bytes) in [
            ("16K", 16 << 10),
            ("2M", 2 << 20),
            ("1g", 1 << 30),
            ("3.5g", 3_758_096_384),
            ("64KiB", 64 << 10),
            ("2mb", 2 << 20),
            ("100B", 100),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_a_missing_unit_and_nonsense_and_says_what_to_write() {
        for text in [
            "",
            "16",
            "x",
            "2X",
            "1.5B",
            "-1G",
            "99999999999T",
            "G",
            "1e400G",
            "NaNG",
            "infG",
            "1.2.3M",
            "2Mx",
        ] {
            let error = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(error.contains("3.5G"), "{error}");
        }
    }

    #[test]
    fn what_no_machine_has_stays_large() {
        for bytes in [Bytes::kib(1 << 54), Bytes::mib(1 << 44), Bytes::gib(1 << 34)] {
            assert_eq!(bytes, Bytes(u64::MAX));
        }
        assert_eq!(
            Bytes(u64::MAX).round_up_to(Bytes::mib(2)),
            Bytes(u64::MAX - (2 << 20) + 1)
        );
        assert_eq!(Bytes(5).round_up_to(Bytes(4)), Bytes(8));
    }

    #[test]
    fn prints_what_it_can_read_again() {
        assert_eq!(Bytes(1536 << 20).to_string(), "1.5G");
        assert_eq!(Bytes(0).to_string(), "0B");
        assert_eq!(Bytes::kib(64).exact(), "64K");
        assert_eq!(Bytes(2 << 20).exact(), "2M");
        assert_eq!(Bytes((1 << 30) + (1 << 20)).exact(), "1025M");
    }
}
