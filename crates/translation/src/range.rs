//! A number that is not known exactly, with the ends of what it may be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number with the ends that what is not known leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The smallest value of the sweep.
    pub low: f64,
    /// The value with everything swept in the middle.
    pub middle: f64,
    /// The largest value of the sweep.
    pub high: f64,
}

impl Range {
    pub(crate) fn is_zero(&self) -> bool {
        (self.low, self.high) == (0.0, 0.0)
    }

    /// Is it one value?
    pub fn is_exact(self) -> bool {
        self.high - self.low <= 1e-9 * self.high.abs()
    }

    /// From the smallest value to the largest.
    pub const fn new(low: f64, middle: f64, high: f64) -> Self {
        Self { low, middle, high }
    }

    /// One value.
    pub const fn exactly(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// Each of its values as another one; their order stays.
    #[inline]
    pub fn map(self, each: impl Fn(f64) -> f64) -> Self {
        Self::new(each(self.low), each(self.middle), each(self.high))
    }

    /// The sum of both, end by end.
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            middle: self.middle + other.middle,
            high: self.high + other.high,
        }
    }

    /// Its end or middle: 0 is the low end, 1 the middle.
    pub fn at(self, position: u8) -> f64 {
        match position {
            0 => self.low,
            1 => self.middle,
            _ => self.high,
        }
    }

    /// The range that holds all values, with a given one in the middle.
    pub fn of(middle: f64, values: impl Iterator<Item = f64>) -> Self {
        let start = Self::exactly(middle);
        values.fold(start, |range, value| Self {
            low: range.low.min(value),
            high: range.high.max(value),
            ..range
        })
    }
}
