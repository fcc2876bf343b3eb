//! Why a plan is refused: the error, and what is wrong with a part of a change.

use super::SCHEMA;

/// Why a plan is not one that can be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not JSON, or not of the shape.
    #[error("this is no plan: {0} (make one with `hugewise plan --for GOAL --json`)")]
    Garbled(String),
    /// Another result.
    #[error("this is a result of schema `{0}`, not `{SCHEMA}` (make a plan with `hugewise plan --for GOAL --json`)")]
    Schema(String),
    /// A change that no plan may hold.
    #[error("change `{id}` of the plan (number {nth}): {what} `{text}`: {why}")]
    Refused {
        /// The change.
        id: String,
        /// Its number in the plan, from 1.
        nth: usize,
        /// Which part of it: `path`, `value`, `line 2 of /etc/sysctl.d/60-hugewise.conf`, ...
        what: String,
        /// The offending text, with control characters escaped.
        text: String,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
}

impl PlanError {
    pub(super) fn refused(nth: usize, id: &str, flaw: &Flaw) -> Self {
        let printable = |text: &str| text.escape_debug().take(200).collect();
        let [id, what, text] = [id, &flaw.what, &flaw.text].map(printable);
        let why = flaw.why.clone();
        Self::Refused {
            id,
            nth,
            what,
            text,
            why,
        }
    }
}

/// What is wrong with a part of a change; the change is named by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) what: String,
    pub(super) text: String,
    pub(super) why: String,
}

impl Flaw {
    pub(super) fn new(what: &str, text: &str, why: &str) -> Self {
        let [what, text, why] = [what, text, why].map(str::to_owned);
        Self { what, text, why }
    }

    /// That of a line, by its number in the file from 0.
    pub(super) fn of_line(path: &str, nth: usize, text: &str, why: &str) -> Self {
        Self::new(&format!("line {} of {path}", nth + 1), text, why)
    }
}
