//! Commands of a script, each with where its output goes.

use std::collections::VecDeque;
use std::mem;

use crate::config::given::shell_tokens::{Part, Token, What, is_variable};

/// A command, with what encloses it among its words.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) words: Vec<Vec<Part>>,
    /// Files that its output goes to.
    pub(super) into: Vec<Vec<Part>>,
    /// `<<< WORD`
    pub(super) given: Option<Vec<Part>>,
    /// The lines behind `<<END`.
    pub(super) text: Vec<(usize, String)>,
    /// The sign in front of it: `;`, `|`, `||`.
    pub(super) before: &'static str,
    /// The one behind it.
    pub(super) after: &'static str,
    /// Has a shell of its own it, or a block around it, as in a pipe or in the background?
    pub(super) is_apart: bool,
}

impl Command {
    pub(super) fn is_negated(&self) -> bool {
        self.words.first().and_then(|word| plain(word)) == Some("!")
    }
}

/// What the word behind a sign is.
enum Behind {
    Target,
    Given,
    Nothing,
}

pub(super) fn commands(tokens: Vec<Token>) -> Vec<Command> {
    let (mut all, mut own, mut behind) = (Vec::<Command>::new(), Command::default(), None);
    // Commands whose here-documents follow at the end of the line.
    let mut waiting = VecDeque::new();
    for Token { line, what } in tokens {
        match what {
            What::Word(word) => match behind.take() {
                Some(Behind::Target) => own.into.push(word),
                Some(Behind::Given) => own.given = Some(word),
                Some(Behind::Nothing) => {}
                None => {
                    if own.words.is_empty() {
                        own.line = line;
                    }
                    own.words.push(word);
                }
            },
            What::Sign("<<") => waiting.push_back(all.len()),
            What::Text(lines) => {
                let at = waiting.pop_front().unwrap_or(all.len());
                all.get_mut(at).unwrap_or(&mut own).text.extend(lines);
            }
            What::Sign(">" | ">>" | ">|" | "1>" | "1>>" | "&>" | "&>>") => behind = Some(Behind::Target),
            What::Sign("<<<") => behind = Some(Behind::Given),
            What::Sign("<" | "<&" | ">&" | "2>" | "2>>") => behind = Some(Behind::Nothing),
            What::Sign("2>&1" | "1>&2") => {}
            // A command goes on behind `|` at the end of a line.
            What::Sign("\n") if own.words.is_empty() => {}
            What::Sign(before) => {
                behind = None;
                own.after = before;
                let next = Command {
                    before,
                    ..Command::default()
                };
                all.push(mem::replace(&mut own, next));
            }
        }
    }
    all.push(own);
    set_apart(&mut all);
    all
}

fn set_apart(all: &mut [Command]) {
    let mut open = Vec::new();
    for at in 0..all.len() {
        let mut from = at;
        for word in all[at].words.iter().map_while(|word| plain(word)) {
            match word {
                "{" | "if" | "while" | "until" | "for" | "select" | "case" => open.push(at),
                "}" | "fi" | "done" | "esac" => from = open.pop().unwrap_or(at),
                "then" | "do" | "else" | "elif" | "!" | "time" => {}
                _ => break,
            }
        }
        if all[from].before == "|" || matches!(all[at].after, "|" | "&") {
            all[from..=at].iter_mut().for_each(|command| command.is_apart = true);
        }
    }
}

/// A word without variables.
pub(super) fn plain(word: &[Part]) -> Option<&str> {
    match word {
        [Part::Plain(text)] => Some(text),
        _ => None,
    }
}

/// `NAME=VALUE`, `NAME+=VALUE`: the name, whether it is added to, and the value.
pub(super) fn assignment(word: &[Part]) -> Option<(String, bool, Vec<Part>)> {
    let Some((Part::Plain(first), rest)) = word.split_first() else {
        return None;
    };
    let (name, value) = first.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let value = [Part::Plain(value.to_owned())].into_iter().chain(rest.iter().cloned());
    is_variable(name).then(|| (name.to_owned(), adds, value.collect()))
}

/// A word about as it is written.
pub(super) fn written(word: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Plain(text) | Part::Run(text) => text.clone(),
        Part::Variable { name, .. } => format!("${name}"),
    };
    word.iter().map(part).collect()
}
