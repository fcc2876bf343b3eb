//! Why a goal is none.

/// Why a goal is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}expected {wanted}{}", if .key.is_empty() { String::new() } else { format!("{}: ", .key) },
    if .text.is_empty() { String::new() } else { format!(", got `{}`", .text) })]
pub struct GoalError {
    place: String,
    key: String,
    text: String,
    wanted: String,
}

impl GoalError {
    pub(super) fn new(place: &str, key: &str, text: &str, wanted: &str) -> Self {
        let printable = |text: &str| text.escape_debug().take(200).collect();
        Self {
            place: place.to_owned(),
            key: printable(key),
            text: printable(text),
            wanted: wanted.to_owned(),
        }
    }

    /// The same one in a text that stands at this place.
    pub(super) fn at(self, place: &str) -> Self {
        Self {
            place: format!("{place}: {}", self.place),
            ..self
        }
    }
}
