//! Patterns of names, in which `*` stands for any text.

/// Does the whole of `name` fit?
///
/// ```
/// assert!(host::glob::fits("*thp*.service", "disable-thp.service"));
/// assert!(!host::glob::fits("java", "java2"));
/// ```
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| fits(rest, &name[at..]))
}
