//! Values out of TOML files; a mistake is named with its line and with what is expected.

use std::str::FromStr;

use model::line_of;
use serde::de::DeserializeOwned;
use toml::Spanned;

/// Why a file is not what it was named for.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {what}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct FileError {
    file: String,
    /// The line, where it is known.
    line: Option<usize>,
    /// What is wrong, and what is expected.
    what: String,
}

/// The least and the most that a file may have, and how many of our unit are one of its own.
pub type Scale = ([f64; 2], f64);

/// The names of so many that are alike: one alone has no number.
pub fn numbered(name: &str, count: u32) -> impl Iterator<Item = String> {
    (1..=count).map(move |number| match count {
        1 => name.to_owned(),
        _ => format!("{name}-{number}"),
    })
}

/// The text of a file, and what errors call it.
#[derive(Clone, Copy, Debug)]
pub struct TomlFile<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl TomlFile<'_> {
    /// Its values.
    ///
    /// # Errors
    /// With the line, if it is not of that shape.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|error: toml::de::Error| FileError {
            file: self.name.to_owned(),
            line: error.span().map(|span| line_of(self.text, span.start)),
            what: error.message().replace('\n', ", "),
        })
    }

    /// An error about a value, with its line.
    ///
    /// # Errors
    /// Always.
    pub fn fail<T, V>(self, at: &Spanned<V>, what: String) -> Result<T, FileError> {
        Err(FileError {
            file: self.name.to_owned(),
            line: Some(line_of(self.text, at.span().start)),
            what,
        })
    }

    pub fn whole(self, name: &str, typed: &Spanned<i64>, least: u32, most: u32) -> Result<u32, FileError> {
        let value = *typed.get_ref();
        match u32::try_from(value) {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => self.fail(
                typed,
                format!("{name} is {value}: expected a whole number from {least} to {most}"),
            ),
        }
    }

    pub fn number(self, name: &str, typed: &Spanned<f64>, [least, most]: [f64; 2]) -> Result<f64, FileError> {
        let value = *typed.get_ref();
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => self.fail(typed, format!("{name} is {value}: expected {least} to {most}")),
        }
    }

    pub fn word<T: FromStr<Err = String>>(self, typed: &Spanned<String>) -> Result<T, FileError> {
        typed.get_ref().parse().or_else(|error| self.fail(typed, error))
    }

    /// Sets a whole number, if the file has it.
    pub fn set_whole<T: From<u32>>(
        self,
        name: &str,
        typed: &Option<Spanned<i64>>,
        [least, most]: [u32; 2],
        to: &mut T,
    ) -> Result<(), FileError> {
        if let Some(typed) = typed {
            *to = self.whole(name, typed, least, most)?.into();
        }
        Ok(())
    }

    /// Sets what is a part from 0 to 1 in the file, in 65,536ths.
    pub fn set_part(self, name: &str, typed: &Option<Spanned<f64>>, to: &mut u32) -> Result<(), FileError> {
        if let Some(typed) = typed {
            *to = (self.number(name, typed, [0.0, 1.0])? * 65_536.0).round() as u32;
        }
        Ok(())
    }

    /// Sets what has another unit in the file.
    pub fn set_scaled(
        self,
        name: &str,
        typed: &Option<Spanned<f64>>,
        (ends, unit): Scale,
        to: &mut u64,
    ) -> Result<(), FileError> {
        if let Some(typed) = typed {
            *to = (self.number(name, typed, ends)? * unit).round() as u64;
        }
        Ok(())
    }
}
