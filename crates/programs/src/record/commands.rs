//! Lines of scripts and units that a capture keeps for those that write settings of pages: without them these cannot be judged.

/// Of each line: is it a part of a command that goes on over lines, and writes to a file of pages?
pub(super) fn in_commands(text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let groups = lines.chunk_by(|before, _| before.ends_with('\\') && !is_comment(before));
    groups.flat_map(|group| vec![writes(group); group.len()]).collect()
}

fn writes(group: &[&str]) -> bool {
    let names = |line: &&str| line.contains("/sys/kernel/mm/") || line.contains("nr_hugepages");
    group.iter().any(names) && !is_comment(group[0])
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', ';'])
}

/// Does it decide whether others run, or close what they open? (sh(1))
pub(super) fn encloses(line: &str) -> bool {
    const WORDS: [&str; 17] = [
        "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "{",
        "}", "exit", "return",
    ];
    let line = line.trim();
    let first = line.split([' ', '\t', ';']).next().unwrap_or_default();
    let is_function = line.ends_with("()") || line.ends_with("() {");
    let is_case = line == ";;" || (line.ends_with(')') && !line.contains([' ', '(', '"', '\'', '=']));
    // `EOF`
    let is_end = !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    WORDS.contains(&first) || is_function || is_case || is_end
}

#[cfg(test)]
mod tests {
    use super::{encloses, in_commands};

    #[test]
    fn commands_over_several_lines_are_whole_where_they_write_to_a_pool() {
        let unit = "ExecStart=/bin/sh -c \\\n  'echo 8 > /sys/kernel/mm/x; \\\n true'\nExecStart=/bin/db \\\n --password x\n# nr_hugepages\n";
        assert_eq!(in_commands(unit), [true, true, true, false, false, false]);
    }

    #[test]
    fn words_that_open_and_close_are_kept_and_commands_are_not() {
        let script = "if grep -q huge /proc/cmdline; then\nmount /dev/x /srv\nfi\nstart)\n;;\nEOF\nset_up() {\nlogin --password=x\n}\n";
        let kept: Vec<&str> = script.lines().filter(|line| encloses(line)).collect();
        let words = [
            "if grep -q huge /proc/cmdline; then",
            "fi",
            "start)",
            ";;",
            "EOF",
            "set_up() {",
            "}",
        ];
        assert_eq!(kept, words);
    }
}
