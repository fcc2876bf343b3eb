//! Path patterns: `*` stands for anything inside one name, `{a,b}` for either word.

use crate::Source;

/// Every path that exists (as far as its directories can be listed) and fits, in order.
pub(super) fn expand(source: &Source, pattern: &str) -> Vec<String> {
    let alternatives = braces(pattern);
    alternatives.iter().flat_map(|pattern| stars(source, pattern)).collect()
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

fn stars(source: &Source, pattern: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        paths = paths
            .iter()
            .flat_map(|path| {
                let names = match part.contains('*') {
                    true => matching(source, path, part),
                    false => vec![part.to_owned()],
                };
                names.into_iter().map(move |name| format!("{path}/{name}"))
            })
            .collect();
    }
    paths
}

fn matching(source: &Source, directory: &str, pattern: &str) -> Vec<String> {
    let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
    let fits = |name: &String| name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end);
    let names = source.list(directory).into_result().unwrap_or_default();
    names.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::expand;
    use crate::{Source, Tree};

    #[test]
    fn patterns_find_what_is_there() {
        let tree = Tree::new()
            .line("/sys/cpu0/a", 1)
            .line("/sys/cpu1/a", 1)
            .line("/sys/node0/a", 1);
        let source = Source::from_tree("test", tree);
        let expected = ["/sys/cpu0/a", "/sys/cpu1/a", "/sys/cpu0/b", "/sys/cpu1/b"];
        assert_eq!(expand(&source, "/sys/cpu*/{a,b}"), expected);
        assert_eq!(expand(&source, "/proc/x"), ["/proc/x"]);
        assert!(expand(&source, "/none/*/x").is_empty());
    }
}
