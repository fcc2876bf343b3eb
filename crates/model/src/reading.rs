//! A reading of the machine: a value, or why there is none. "Could not look" is an answer, never a zero.

use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel's answer for a process that ends between two reads.
const ESRCH: i32 = 3;

/// A value read from the machine, or the reason why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reading<T> {
    /// It was read.
    Known(T),
    /// It was not, and this says why.
    Unread(Unread),
}

/// Why something was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{unread}: {place}{}", if .why.is_empty() { String::new() } else { format!(": {}", .why) })]
pub struct Unread {
    /// The kind of reason.
    pub unread: Cause,
    /// Where it was looked for: a path, with `:line` when a line was garbled, or a CPUID leaf.
    pub place: String,
    /// What is wrong there, in words; empty if the cause says it all.
    pub why: String,
}

/// The kinds of reason, by what one can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// This kernel, machine or capture has no such thing.
    Absent,
    /// It is there, but this user may not read it.
    Denied,
    /// It was read, but is not of the known form.
    Garbled,
    /// The CPU or the hypervisor answers with zeros on purpose.
    Masked,
    /// Reading it takes longer than it may.
    Timeout,
    /// Reading it failed in another way.
    Failed,
}

crate::shown_by_name!(Cause);

impl Unread {
    /// A reason, its place, and what is wrong there.
    pub fn new(unread: Cause, place: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            unread,
            place: place.into(),
            why: why.into(),
        }
    }

    /// The reason that the operating system gave: in its words where the cause does not say it all.
    pub fn of_io(place: impl Into<String>, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::new(Cause::Absent, place, ""),
            io::ErrorKind::PermissionDenied => Self::new(Cause::Denied, place, ""),
            _ if error.raw_os_error() == Some(ESRCH) => Self::new(Cause::Absent, place, "the process has ended"),
            _ => Self::new(Cause::Failed, place, error.to_string()),
        }
    }
}

impl<T> Reading<T> {
    /// Nothing there.
    pub fn absent(place: impl Into<String>) -> Self {
        Self::Unread(Unread::new(Cause::Absent, place, ""))
    }

    /// The value, if it was read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unread(_) => None,
        }
    }

    /// The value, or `none` where this kernel or machine has no such thing; any other reason stays one. This is how a count
    /// that may be missing is added up: what could not be read is no zero.
    ///
    /// # Errors
    /// The reason, if it is another than that there is no such thing.
    pub fn or_if_absent(&self, none: T) -> Result<T, Unread>
    where
        T: Clone,
    {
        self.clone().if_present().map(|value| value.unwrap_or(none))
    }

    /// The value, or `None` where this kernel or machine has no such thing; any other reason stays one.
    ///
    /// # Errors
    /// The reason, if it is another than that there is no such thing.
    pub fn if_present(self) -> Result<Option<T>, Unread> {
        match self {
            Self::Known(value) => Ok(Some(value)),
            Self::Unread(why) if why.unread == Cause::Absent => Ok(None),
            Self::Unread(why) => Err(why),
        }
    }

    /// Is there no such thing?
    pub fn is_absent(&self) -> bool {
        self.unread().is_some_and(|why| why.unread == Cause::Absent)
    }

    /// The reason, if it was not read.
    pub fn unread(&self) -> Option<&Unread> {
        match self {
            Self::Known(_) => None,
            Self::Unread(unread) => Some(unread),
        }
    }

    /// The same reading with its value turned into another.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Known(value) => Reading::Known(f(value)),
            Self::Unread(unread) => Reading::Unread(unread),
        }
    }

    /// What follows from the value, which can fail in turn.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Result<U, Unread>) -> Reading<U> {
        self.into_result().and_then(f).into()
    }

    /// The same reading, borrowed.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Self::Known(value) => Reading::Known(value),
            Self::Unread(unread) => Reading::Unread(unread.clone()),
        }
    }

    /// As a `Result`, for `?`.
    pub fn into_result(self) -> Result<T, Unread> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unread(unread) => Err(unread),
        }
    }
}

impl<T> From<Result<T, Unread>> for Reading<T> {
    fn from(result: Result<T, Unread>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(unread) => Self::Unread(unread),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unread(unread) => write!(f, "({unread})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Reading, Unread};

    #[test]
    fn a_value_is_bare_in_json_and_a_reason_is_an_object() {
        let known = Reading::Known(7);
        let denied: Reading<u64> = Reading::Unread(Unread::new(Cause::Denied, "/proc/1/smaps", ""));
        assert_eq!(serde_json::to_string(&known).expect("json"), "7");
        let text = serde_json::to_string(&denied).expect("json");
        assert_eq!(text, r#"{"unread":"denied","place":"/proc/1/smaps","why":""}"#);
        assert_eq!(serde_json::from_str::<Reading<u64>>(&text).expect("json"), denied);
        assert_eq!(denied.to_string(), "(denied: /proc/1/smaps)");
    }

    #[test]
    fn only_what_is_not_there_counts_as_nothing() {
        assert_eq!(Reading::Known(7).or_if_absent(0), Ok(7));
        assert_eq!(Reading::absent("/proc/1/smaps").or_if_absent(0), Ok(0));
        for cause in [
            Cause::Denied,
            Cause::Garbled,
            Cause::Masked,
            Cause::Timeout,
            Cause::Failed,
        ] {
            let why = Unread::new(cause, "/proc/1/smaps", "");
            assert_eq!(Reading::Unread(why.clone()).or_if_absent(0), Err(why));
        }
    }
}
