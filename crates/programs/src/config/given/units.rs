//! Prefixes of units, decimal and binary.

/// A number, and the letters behind it.
pub(super) fn number_and_unit(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len())
}

/// What `k`, `M` to `E`, or `Ki`, `Mi` to `Ei` stand for; 1 without a prefix.
pub(super) fn factor(prefix: &str) -> Option<u64> {
    let (letter, letters, base) = match prefix.strip_suffix('i') {
        Some(letter) => (letter, "KMGTPE", 1024_u64),
        None => (prefix, "kMGTPE", 1000),
    };
    match letter.len() {
        0 => prefix.is_empty().then_some(1),
        1 => Some(base.pow(letters.find(letter)? as u32 + 1)),
        _ => None,
    }
}
