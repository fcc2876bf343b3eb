//! Words that depend on a number.

/// A count with its noun, whose plural takes an `s`: `1 place`, `2 places`.
pub fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
