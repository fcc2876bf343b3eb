//! The end of what a program wrote, for messages.

/// The end of a text, which is where programs sum up.
pub(crate) fn excerpt(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        return "an empty output".to_owned();
    }
    let from = text.char_indices().rev().nth(199).map_or(0, |(at, _)| at);
    format!("what ends with `{}`", &text[from..])
}

/// What it wrote to standard error, to follow how it ended.
pub(crate) fn said(errors: &str) -> String {
    if errors.trim().is_empty() {
        String::new()
    } else {
        format!(", {}", excerpt(errors))
    }
}
