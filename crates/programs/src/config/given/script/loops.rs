//! `for NAME in VALUES` with values that are written out, and commands that only write: the commands that it comes to.

use std::mem;

use super::commands::{Command, assignment, plain};
use crate::config::given::shell::file_name;
use crate::config::given::shell_tokens::Part;

/// A longer loop stays one.
const MOST_VALUES: usize = 32;
const MOST_COMMANDS: usize = 32;

/// Programs of such commands.
const WRITES: [&str; 12] = [
    ":", "[", "[[", "cat", "echo", "printf", "sleep", "sync", "sysctl", "tee", "test", "true",
];
/// What is in front of them.
const BEFORE: [&str; 7] = ["if", "then", "elif", "else", "fi", "!", "sudo"];
/// What is in front of `for`.
const BEFORE_LOOP: [&str; 4] = ["do", "else", "then", "{"];

pub(super) fn unrolled(mut commands: Vec<Command>) -> Vec<Command> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < commands.len() {
        match turns(&commands[at..]) {
            Some((length, turns)) => {
                all.extend(turns);
                at += length;
            }
            None => {
                all.push(mem::take(&mut commands[at]));
                at += 1;
            }
        }
    }
    all
}

/// The commands of all turns of the loop that begins here, and how many commands it is long.
fn turns(commands: &[Command]) -> Option<(usize, Vec<Command>)> {
    let (head, rest) = commands.split_first()?;
    let (before, name, values) = values(head)?;
    let end = rest.iter().take(MOST_COMMANDS).position(is_end)?;
    let is_piped = rest.get(end + 1).is_some_and(|next| next.before == "|");
    let body = body(&rest[..end]).filter(|_| !is_piped)?;
    let mut all = Vec::new();
    for (nth, value) in values.iter().enumerate() {
        let is_first = nth == 0;
        let mut words = if is_first { before.to_vec() } else { Vec::new() };
        words.push(vec![Part::Plain(format!("{name}={value}"))]);
        all.push(Command {
            line: head.line,
            words,
            before: if is_first { head.before } else { ";" },
            ..Command::default()
        });
        all.extend(body.iter().cloned());
    }
    Some((end + 2, all))
}

/// A loop's words in front of `for`, its variable, and its values.
type Values<'c> = (&'c [Vec<Part>], &'c str, Vec<&'c str>);

fn values(head: &Command) -> Option<Values<'_>> {
    let at = head.words.iter().position(|word| plain(word) == Some("for"))?;
    let (before, own) = head.words.split_at(at);
    let [_, name, of, values @ ..] = own else { return None };
    let is_loop = plain(of) == Some("in") && (1..=MOST_VALUES).contains(&values.len());
    let is_start = before
        .iter()
        .all(|word| plain(word).is_some_and(|word| BEFORE_LOOP.contains(&word)));
    let runs = matches!(head.before, "" | ";" | "\n");
    let values: Vec<&str> = values.iter().map(|word| plain(word)).collect::<Option<_>>()?;
    // Patterns stand for names that only a run shows.
    let is_written_out = values.iter().all(|value| !value.contains(['*', '?', '[', '{', '~']));
    (is_loop && is_start && runs && is_written_out).then_some((before, plain(name)?, values))
}

fn is_end(command: &Command) -> bool {
    let is_plain = command.into.is_empty() && command.given.is_none() && command.text.is_empty();
    is_plain && matches!(&command.words[..], [word] if plain(word) == Some("done"))
}

/// The commands between `do` and `done`, if they only write.
fn body(commands: &[Command]) -> Option<Vec<Command>> {
    let mut all = commands.to_vec();
    let first = all.first_mut()?;
    if plain(first.words.first()?) != Some("do") {
        return None;
    }
    first.words.remove(0);
    if first.words.is_empty() {
        all.remove(0);
    }
    all.iter().all(only_writes).then_some(all)
}

fn only_writes(command: &Command) -> bool {
    let is_before = |word: &&Vec<Part>| plain(word).is_some_and(|word| BEFORE.contains(&word));
    let before = command.words.iter().take_while(is_before).count();
    let words = &command.words[before..];
    let program = words.first().and_then(|word| plain(word)).map(file_name);
    words.iter().all(|word| assignment(word).is_some()) || program.is_some_and(|program| WRITES.contains(&program))
}
