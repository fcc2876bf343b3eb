//! Values out of TOML files; a mistake is named with its line and with what is expected.

use serde::de::DeserializeOwned;
use toml::Spanned;

/// Why a file is not what it was named for.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not of that shape.
    #[error("{file}: {source}")]
    Toml {
        /// Its name.
        file: String,
        /// With line and column.
        source: Box<toml::de::Error>,
    },
    /// A value that cannot be.
    #[error("{file}, line {line}: {what}")]
    Value {
        /// Its name.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong, and what is expected.
        what: String,
    },
}

/// The text of a file, and what errors call it.
#[derive(Clone, Copy, Debug)]
pub struct TypedFile<'a> {
    /// Its name.
    pub name: &'a str,
    /// All of it.
    pub text: &'a str,
}

impl TypedFile<'_> {
    /// Its values.
    ///
    /// # Errors
    /// With the line, if it is not of that shape.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|source| FileError::Toml {
            file: self.name.to_owned(),
            source: Box::new(source),
        })
    }

    /// An error about a value, with its line.
    ///
    /// # Errors
    /// Always.
    pub fn fail<T, V>(self, at: &Spanned<V>, what: String) -> Result<T, FileError> {
        let before = self.text.get(..at.span().start).unwrap_or_default();
        Err(FileError::Value {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            what,
        })
    }

    pub(crate) fn whole(self, name: &str, typed: &Spanned<i64>, least: u32, most: u32) -> Result<u32, FileError> {
        let value = *typed.get_ref();
        match u32::try_from(value) {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => self.fail(
                typed,
                format!("{name} is {value}: expected a whole number from {least} to {most}"),
            ),
        }
    }

    pub(crate) fn number(self, name: &str, typed: &Spanned<f64>, [least, most]: [f64; 2]) -> Result<f64, FileError> {
        let value = *typed.get_ref();
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => self.fail(typed, format!("{name} is {value}: expected {least} to {most}")),
        }
    }
}
