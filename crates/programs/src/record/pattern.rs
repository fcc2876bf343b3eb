//! Path patterns: `*` stands for anything inside one name, `{a,b}` for either word.

use model::{Cause, Reading, Unread};

use host::Source;
use host::glob::fits;

/// What a pattern stands for on a machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Every path that exists (as far as its directories can be listed) and fits, in order.
    pub(super) paths: Vec<String>,
    /// Directories on the way that could not be listed, and why.
    pub(super) refused: Vec<(String, Unread)>,
}

/// Looks for everything that fits.
pub(super) fn expand(source: &Source, pattern: &str) -> Found {
    let mut found = Found::default();
    for pattern in braces(pattern) {
        let paths = stars(source, &pattern, &mut found.refused);
        found.paths.extend(paths);
    }
    found
}

fn braces(pattern: &str) -> Vec<String> {
    let group = pattern
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match group {
        None => vec![pattern.to_owned()],
        Some((before, (words, after))) => words
            .split(',')
            .flat_map(|word| braces(&format!("{before}{word}{after}")))
            .collect(),
    }
}

fn stars(source: &Source, pattern: &str, refused: &mut Vec<(String, Unread)>) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        let mut longer = Vec::new();
        for path in &paths {
            let names = match part.contains('*') {
                true => matching(source, path, part, refused),
                false => vec![part.to_owned()],
            };
            longer.extend(names.into_iter().map(|name| format!("{path}/{name}")));
        }
        paths = longer;
    }
    paths
}

fn matching(source: &Source, directory: &str, pattern: &str, refused: &mut Vec<(String, Unread)>) -> Vec<String> {
    match source.list(directory) {
        Reading::Known(names) => names.into_iter().filter(|name| fits(pattern, name)).collect(),
        Reading::Unread(why) => {
            if why.unread != Cause::Absent && refused.iter().all(|(known, _)| known != directory) {
                refused.push((directory.to_owned(), why));
            }
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, expand};
    use host::{Source, Tree};

    #[test]
    fn patterns_find_what_is_there() {
        let tree = Tree::new()
            .line("/sys/cpu0/a", 1)
            .line("/sys/cpu1/a", 1)
            .line("/sys/node0/a", 1)
            .denied("/dark");
        let source = Source::from_tree("test", tree);
        let expected = ["/sys/cpu0/a", "/sys/cpu1/a", "/sys/cpu0/b", "/sys/cpu1/b"];
        assert_eq!(expand(&source, "/sys/cpu*/{a,b}").paths, expected);
        assert_eq!(expand(&source, "/proc/x").paths, ["/proc/x"]);
        assert_eq!(expand(&source, "/none/*/x"), Found::default());
        let found = expand(&source, "/dark/*/{a,b}");
        let refused: Vec<&str> = found.refused.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!((found.paths.len(), refused), (0, vec!["/dark"]));
    }
}
