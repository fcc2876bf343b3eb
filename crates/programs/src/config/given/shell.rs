//! Command lines in files: as a shell takes them, or with zero bytes between the words as /proc shows them.

pub(super) use crate::config::files::file_name;
use model::Unread;

use super::garbled::{empty, garbled};

/// Words before a program that a file is looked through for it: `exec`, `env A=B`, `numactl -m 0`.
const BEFORE: usize = 8;

/// The words of a command in a file, from the program on.
pub(super) fn words(path: &str, text: &str, is_program: fn(&str) -> bool) -> Result<Vec<String>, Unread> {
    let words = all_words(path, text)?;
    let program = words.iter().position(|word| is_program(file_name(word)));
    Ok(words[program.unwrap_or(0)..].to_vec())
}

/// All of them; comment lines are left out, and a backslash at the end of a line joins it with the next.
pub(super) fn all_words(path: &str, text: &str) -> Result<Vec<String>, Unread> {
    let words: Vec<String> = if text.contains('\0') {
        text.split('\0')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    } else {
        let closed = || garbled(path, 1, text.trim(), "a command line with closed quotes");
        shlex::split(&without_comments(text).replace("\\\n", " ")).ok_or_else(closed)?
    };
    match words.is_empty() {
        true => Err(empty(path, "it holds no command line")),
        false => Ok(words),
    }
}

/// Does a command line start such a program?
pub(super) fn starts(text: &str, is_program: fn(&str) -> bool) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines
        .flat_map(|line| line.split([' ', '\t', '\0']))
        .filter(|word| !word.is_empty());
    words
        .take(BEFORE)
        .any(|word| is_program(file_name(word.trim_matches(['"', '\'']))))
}

/// The line of a word, by how many are before it.
pub(super) fn line(text: &str, before: usize) -> usize {
    let text = without_comments(text).replace("\\\n", " \n");
    let mut words = shlex::Shlex::new(&text);
    words.nth(before).map_or(1, |_| words.line_no)
}

/// Comment lines are left empty, so that the others keep their numbers.
fn without_comments(text: &str) -> String {
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let lines = text.lines().map(|line| if is_comment(line) { "" } else { line });
    lines.collect::<Vec<&str>>().join("\n")
}
