//! What stands in a sweep's file, with its line, and why that is no sweep.

use std::fmt::Display;

use toml::Spanned;

use crate::typed_file::{FileError, TypedFile};

/// A value with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed<T> {
    /// From 1.
    pub line: usize,
    /// The value.
    pub value: T,
}

/// Why a file is no sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// It is not TOML of that shape.
    #[error(transparent)]
    Toml(#[from] FileError),
    /// A value is wrong.
    #[error("{file}: line {line}: {why}")]
    Value {
        /// Its name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what is expected.
        why: String,
    },
    /// An axis is missing.
    #[error("{file}: {why}")]
    Missing {
        /// Its name.
        file: String,
        /// Which, and an example.
        why: String,
    },
}

/// Values of one axis.
const MOST_VALUES: usize = 1000;

impl TypedFile<'_> {
    /// An axis that is written down has at least one value.
    pub(super) fn items<T>(self, name: &str, typed: Option<Spanned<Vec<T>>>) -> Result<Vec<T>, SweepError> {
        match typed {
            Some(list) if list.get_ref().is_empty() => {
                let why = format!("{name} is empty: expected at least one value, or no line `{name}`");
                Err(self.wrong(list.span().start, why))
            }
            Some(list) if list.get_ref().len() > MOST_VALUES => {
                let why = format!("{name} has more than {MOST_VALUES} values: write several files");
                Err(self.wrong(list.span().start, why))
            }
            list => Ok(list.map(Spanned::into_inner).unwrap_or_default()),
        }
    }

    pub(super) fn wrong(self, at: usize, why: impl Display) -> SweepError {
        SweepError::Value {
            file: self.name.to_owned(),
            line: self.line(at),
            why: why.to_string(),
        }
    }

    pub(super) fn missing(self, why: &str) -> SweepError {
        SweepError::Missing {
            file: self.name.to_owned(),
            why: why.to_owned(),
        }
    }
}
