//! Words of commands: which say nothing that may be a secret, and what is kept in place of the others.

use super::secrets::{self, REDACTED};
use crate::config::files::open_quote;

/// In place of a command.
pub(super) const LEFT_OUT: &str = "left_out";
/// In place of a value: only a run shows it.
const UNKNOWN: &str = "$(left_out)";

/// Programs that pass no secret on if their words are harmless.
const PROGRAMS: [&str; 20] = [
    ":", "[", "[[", "break", "cat", "cd", "continue", "echo", "env", "export", "false", "local", "printf", "seq",
    "sleep", "sync", "tee", "test", "true", "ulimit",
];
pub(super) const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "su", "runuser"];
const DECLARES: [&str; 5] = ["export", "local", "readonly", "declare", "typeset"];
/// Of tests, policies and limits.
const WORDS: &str = "! != * = == [ [[ ] ]] advise always defer defer+madvise deny false force in infinity inherit madvise never nproc off on seq true unlimited within_size";

/// Does it name a setting of memory?
pub(super) fn names_memory(line: &str) -> bool {
    let words = ["huge", "/sys/kernel/mm", "transparent", "thp", "maxmemory"];
    let line = line.trim_start();
    !line.starts_with(['#', ';']) && words.iter().any(|word| line.to_ascii_lowercase().contains(word))
}

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Without secrets, and without variables that others may take for one; the sign for both is none of a shell's.
pub(super) fn clean(text: &str) -> String {
    let kept = |word: &str| match word.trim_start_matches(['"', '\'']).split_once('=') {
        Some((name, _))
            if name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') =>
        {
            let is_option = word.contains("=-") || word.contains("=\"-") || word.contains("='-");
            if is_option || names_memory(word) {
                word.to_owned()
            } else {
                assigned(word)
            }
        }
        _ => word.to_owned(),
    };
    let text = secrets::line(text).replace(REDACTED, LEFT_OUT);
    each_word(&text, kept)
}

/// `for NAME in VALUES`, `exit 0`
pub(super) fn with_values(text: &str, first: &str) -> String {
    let mut names = usize::from(matches!(first, "for" | "select" | "function"));
    let kept = |word: &str| {
        let is_named = names > 0 && is_name(word);
        names = 0;
        if is_named { word.to_owned() } else { value(word) }
    };
    first.to_owned() + &each_word(&text[first.len()..], kept)
}

pub(super) fn each_word(text: &str, mut kept: impl FnMut(&str) -> String) -> String {
    let pieces = text.split_inclusive([' ', '\t']);
    let pieces = pieces.map(|piece| {
        let word = piece.trim_end();
        let own = if word.is_empty() { String::new() } else { kept(word) };
        own + &piece[word.len()..]
    });
    pieces.collect()
}

/// `NAME=VALUE`, with quotes in front of it where it is a word in them.
fn pair(word: &str) -> Option<(&str, &str)> {
    let (name, _) = word.split_once('=')?;
    is_name(name.trim_start_matches(['"', '\''])).then(|| word.split_at(name.len() + 1))
}

pub(super) fn assigns(text: &str) -> bool {
    let mut words = text
        .split_whitespace()
        .skip_while(|word| DECLARES.contains(word))
        .peekable();
    words.peek().is_some_and(|word| pair(word).is_some()) && words.all(|word| pair(word).is_some() || is_harmless(word))
}

pub(super) fn assigned(word: &str) -> String {
    match pair(word) {
        Some((name, own)) => format!("{name}{}", value(own)),
        None => word.to_owned(),
    }
}

/// A value, or what is in its place. What it opens or closes stays open or closed.
fn value(word: &str) -> String {
    if is_harmless(word) {
        return word.to_owned();
    }
    let count = |sign: char| word.matches(sign).count();
    let is_whole = open_quote(None, word).is_none() && count('(') == count(')') && count('{') == count('}');
    match is_whole {
        true => UNKNOWN.to_owned(),
        false => word.replacen(core(word), UNKNOWN, 1),
    }
}

fn core(word: &str) -> &str {
    word.trim_matches(|c: char| "\"'`(){}[]$".contains(c))
}

/// Numbers, variables, policies, options of one letter, files of the kernel.
pub(super) fn is_harmless(word: &str) -> bool {
    let own = core(word);
    let is_variable = word.trim_start_matches(['"', '\'']).starts_with('$') && is_name(own) && !word.contains('(');
    let is_number = own.matches(|c: char| c.is_ascii_digit()).count() <= 8
        && own
            .trim_end_matches(['k', 'K', 'M', 'G', 'B'])
            .chars()
            .all(|c| c.is_ascii_digit() || "+-*/%.,<>=&;".contains(c));
    let file = own.trim_start_matches(|c: char| c.is_ascii_digit() || "<>&".contains(c));
    let is_file = ["/sys/", "/proc/", "/dev/null"]
        .iter()
        .any(|below| file.starts_with(below));
    let is_option = own
        .strip_prefix('-')
        .is_some_and(|rest| rest.len() <= 2 && rest.chars().all(|c| c.is_ascii_alphabetic()));
    let is_node = own
        .strip_prefix("node")
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '*'));
    let is_format = matches!(own, "%s" | "%d" | "%s\\n" | "%d\\n" | "%%s" | "%%d");
    WORDS.split(' ').any(|known| known == word || known == own)
        || is_variable
        || is_number
        || is_file
        || is_option
        || is_node
        || is_format
        || names_memory(own)
}

pub(super) fn is_harmless_command(text: &str) -> bool {
    let program = program(text);
    let mut words = text.split_whitespace().skip(1);
    let is_harmless = |word: &str| is_harmless(word) || SHELLS.contains(&word);
    (PROGRAMS.contains(&program) || SHELLS[..6].contains(&program)) && words.all(is_harmless)
}

fn program(text: &str) -> &str {
    let first = text.split_whitespace().next().unwrap_or_default();
    let first = first.trim_matches(['"', '\'']);
    first.rsplit('/').next().unwrap_or_default()
}

/// What it prints is written to a setting of memory.
pub(super) fn prints(text: &str) -> bool {
    matches!(program(text), "echo" | "printf" | "seq" | "nproc" | "tee")
}
