//! A measured number with its spread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A median with the 95 % interval of that median. The unit is in the name of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median of the kept samples.
    pub median: f64,
    /// Lower end of the median's 95 % interval.
    pub low: f64,
    /// Upper end of the median's 95 % interval.
    pub high: f64,
    /// How many samples were kept.
    pub samples: u64,
}

impl Estimate {
    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            median: self.median * by,
            low: self.low * by,
            high: self.high * by,
            samples: self.samples,
        }
    }

    /// Half the interval's width as a share of the median: 0.01 is "within 1 %". Infinite for a single
    /// sample, which has no interval.
    pub fn relative_error(&self) -> f64 {
        if self.median == 0.0 || self.samples < 2 {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.median.abs()
        }
    }
}
