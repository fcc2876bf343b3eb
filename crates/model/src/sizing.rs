//! How many pages does it take? A calculation with its arithmetic line by line.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A calculation with its arithmetic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizing {
    /// What was asked.
    pub about: String,
    /// The arithmetic, in order; the last steps are the answer.
    pub steps: Vec<Step>,
    /// What goes wrong with this in practice.
    pub traps: Vec<String>,
    /// Whose formula it is.
    pub source: String,
}

/// One line of arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// A stable name for scripts, such as `pages`.
    pub name: String,
    /// How it is worked out, with the numbers.
    pub how: String,
    /// What comes out.
    pub value: Quantity,
    /// Its unit: `pages`, `B`, `KiB`, `MHz`, ...; empty for plain numbers.
    pub unit: String,
}

/// A whole number where it is one, so that no byte is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// A count.
    Whole(u64),
    /// Anything else.
    Real(f64),
}

/// Why nothing can be worked out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SizeError {
    /// A page of no size, or of one that is no power of two.
    #[error("{0} is not a page size (write 2M, 1G or another power of two)")]
    NotAPage(Bytes),
    /// A number out of its range.
    #[error("{what} of {value} is out of range (write {wanted})")]
    OutOfRange {
        /// What was given.
        what: &'static str,
        /// Its value.
        value: String,
        /// What to write.
        wanted: &'static str,
    },
    /// A result beyond 64 bits.
    #[error("{0} is beyond 64 bits (ask for less)")]
    TooLarge(&'static str),
}

impl SizeError {
    /// A number out of its range.
    pub fn out_of_range(what: &'static str, value: impl fmt::Display, wanted: &'static str) -> Self {
        let value = value.to_string();
        Self::OutOfRange { what, value, wanted }
    }
}

impl Sizing {
    /// Nothing worked out yet.
    pub fn new(about: impl Into<String>, source: &str) -> Self {
        Self {
            about: about.into(),
            source: source.to_owned(),
            ..Self::default()
        }
    }

    /// With one more line.
    #[must_use]
    pub fn step(mut self, name: &str, how: impl Into<String>, value: impl Into<Quantity>, unit: &str) -> Self {
        let (name, how, value, unit) = (name.to_owned(), how.into(), value.into(), unit.to_owned());
        self.steps.push(Step { name, how, value, unit });
        self
    }

    /// With a line for the pages that so many bytes take.
    #[must_use]
    pub fn rounded_up(self, name: &str, bytes: Bytes, page: Bytes, pages: u64) -> Self {
        self.step(
            name,
            format!("{} B / {} B, rounded up", bytes.0, page.0),
            pages,
            "pages",
        )
    }

    /// With one more trap.
    #[must_use]
    pub fn trap(mut self, text: impl Into<String>) -> Self {
        self.traps.push(text.into());
        self
    }

    /// A value by its name.
    pub fn value(&self, name: &str) -> Option<Quantity> {
        self.steps.iter().find(|step| step.name == name).map(|step| step.value)
    }

    /// A count by its name.
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Quantity::Whole(value) => Some(value),
            Quantity::Real(_) => None,
        }
    }
}

impl From<u64> for Quantity {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<Bytes> for Quantity {
    fn from(value: Bytes) -> Self {
        Self::Whole(value.0)
    }
}

impl From<f64> for Quantity {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => f.pad(&value.to_string()),
            Self::Real(value) => {
                let text = format!("{value:.6}");
                f.pad(text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

/// How many pages of one size hold so many bytes: rounded up, because a page cannot be shared with the next pool.
///
/// # Errors
/// When the page is none.
pub fn pages_for(bytes: Bytes, page: Bytes) -> Result<u64, SizeError> {
    check_page(page)?;
    Ok(bytes.0.div_ceil(page.0))
}

/// The memlock limit for so many pages, in the unit of limits.conf: KiB.
///
/// # Errors
/// When the page is none, or the product is beyond 64 bits.
pub fn memlock_kib(pages: u64, page: Bytes) -> Result<u64, SizeError> {
    check_page(page)?;
    pages
        .checked_mul(page.0 >> 10)
        .ok_or(SizeError::TooLarge("the memlock limit"))
}

/// Is it a size that pages have?
///
/// # Errors
/// When it is none.
pub fn check_page(page: Bytes) -> Result<(), SizeError> {
    page.is_page().then_some(()).ok_or(SizeError::NotAPage(page))
}
