//! A line of a file of settings, and what it is: one that hugewise knows, a comment, or another.

use super::super::error::Flaw;

/// A line with what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parsed<'a> {
    /// Its number in the file, from 0.
    pub(super) nth: usize,
    /// The section that it stands in, such as `[Service]`.
    pub(super) section: &'a str,
    pub(super) text: &'a str,
    pub(super) what: Line,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Blank, or a comment.
    Comment,
    /// The head of a section that hugewise writes into.
    Section,
    /// It sets something that hugewise knows.
    Known {
        /// What it sets.
        key: String,
        /// What is wrong with it, if something is.
        wrong: Option<String>,
    },
    /// Anything else.
    Other,
}

impl Parsed<'_> {
    /// Must it stay as it is?
    pub(super) fn is_other(&self) -> bool {
        matches!(self.what, Line::Comment | Line::Other)
    }

    /// What is wrong with it in the file at this path.
    pub(super) fn flaw(&self, path: &str, why: &str) -> Flaw {
        Flaw::of_line(path, self.nth, self.text, why)
    }

    /// What it sets, and in which section.
    pub(super) fn key(&self) -> Option<(&str, &str)> {
        match &self.what {
            Line::Known { key, .. } => Some((self.section, key)),
            _ => None,
        }
    }
}

/// A known line; `Err` says what is wrong with it.
pub(super) fn known(key: impl Into<String>, right: Result<(), String>) -> Line {
    Line::Known {
        key: key.into(),
        wrong: right.err(),
    }
}

/// A known line whose value must meet a condition; else that is wrong with it.
pub(super) fn set(key: impl Into<String>, is_right: bool, why: &str) -> Line {
    known(key, is_right.then_some(()).ok_or_else(|| why.to_owned()))
}

/// A known line that takes one value only.
pub(super) fn only(key: &str, value: &str, one: &str) -> Line {
    set(key, value == one, &format!("write {one}"))
}
