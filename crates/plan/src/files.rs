//! Texts of files with one line or word changed, everything else as it was.

/// The text with `line` in place of every line that `is_it` says yes to, or at the end if there is none.
pub(super) fn with_line(text: &str, line: &str, is_it: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let Some(last) = lines.iter().rposition(|found| is_it(found)) else {
        lines.push(line);
        return joined(&lines);
    };
    let mut nth = 0;
    lines[last] = line;
    lines.retain(|found| {
        let keep = nth >= last || !is_it(found);
        nth += 1;
        keep
    });
    joined(&lines)
}

/// The text with `line` in a section such as `[mysqld]`, which is added if it is missing.
pub(super) fn with_line_in(text: &str, section: &str, line: &str, is_it: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(start) = lines.iter().position(|found| found.trim() == section) else {
        return format!("{}{section}\n{line}\n", joined(&lines));
    };
    let length = lines[start + 1..]
        .iter()
        .position(|found| found.trim_start().starts_with('['));
    let end = length.map_or(lines.len(), |length| start + 1 + length);
    let inner = with_line(&joined(&lines[start + 1..end]), line, is_it);
    format!("{}{inner}{}", joined(&lines[..=start]), joined(&lines[end..]))
}

/// Does the line set this name (`name = value` or `name value`), comments aside?
pub(super) fn sets(line: &str, name: &str) -> bool {
    let rest = line.trim_start().strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', ' ', '\t']))
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::{sets, with_line, with_line_in};

    #[test]
    fn one_line_is_changed_and_all_others_stay() {
        let is_a = |line: &str| sets(line, "a");
        assert_eq!(
            with_line("# a = 0\na = 1\nb = 2\n", "a = 9", is_a),
            "# a = 0\na = 9\nb = 2\n"
        );
        assert_eq!(
            with_line("a = 1\nb = 2\na = 3\nc\n", "a = 9", is_a),
            "b = 2\na = 9\nc\n"
        );
        assert_eq!(with_line("ab = 1", "a = 9", is_a), "ab = 1\na = 9\n");
        assert_eq!(with_line("", "a = 9", is_a), "a = 9\n");
    }

    #[test]
    fn a_line_goes_into_its_section() {
        let is_a = |line: &str| sets(line, "large-pages");
        assert_eq!(
            with_line_in(
                "[client]\nx\n[mysqld]\ny\n[other]\nlarge-pages=0\n",
                "[mysqld]",
                "large-pages",
                is_a
            ),
            "[client]\nx\n[mysqld]\ny\nlarge-pages\n[other]\nlarge-pages=0\n"
        );
        assert_eq!(
            with_line_in("[client]\n", "[mysqld]", "large-pages", is_a),
            "[client]\n[mysqld]\nlarge-pages\n"
        );
    }
}
