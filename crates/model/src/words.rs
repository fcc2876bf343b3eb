//! Words that depend on a number, and lines of a text.

/// A count with its noun, whose plural takes an `s`: `1 place`, `2 places`, `2 processes`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// The line that a place in a text is on, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}
