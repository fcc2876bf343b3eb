//! Shells within a script or a unit, and the program that a script becomes.

use std::mem;

use super::commands::Command;
use super::flow::Flow;
use super::words::Word;
use super::{Reader, is_of_another_user, no_shell};
use crate::config::Setting;
use crate::config::given::starts::Start;

/// Scripts within scripts may call themselves.
const MOST_INNER: usize = 4096;
const DEEPEST: usize = 32;

/// Known programs that the shell of a service's command starts, with these variables; none where it is no shell.
pub(in crate::config::given) fn of_shell(words: &[String], environment: &[Setting]) -> Vec<Start> {
    if words.is_empty() || no_shell(words).is_some() {
        return Vec::new();
    }
    let mut reader = Reader::with("", environment);
    let words: Vec<Word> = words.iter().map(|word| Word::plain(&word.replace("$$", "$"))).collect();
    let command = Command {
        line: 1,
        ..Command::default()
    };
    reader.execute(&command, &words, &[], Vec::new());
    let with_all = |start: Start| {
        let is_alike = |set: &Setting, own: &Setting| (&set.name, &set.value) == (&own.name, &own.value);
        let own = start.environment.into_iter();
        let own = own.filter(|own| !environment.iter().any(|set| is_alike(set, own)));
        let environment = environment.iter().cloned().chain(own).collect();
        Start { environment, ..start }
    };
    reader.script.starts.into_iter().map(with_all).collect()
}

impl Reader<'_> {
    /// What a shell runs: the text behind `-c`, or what it reads where it has no file of commands. The line of its first command is in front.
    pub(super) fn commands_of_shell(
        &self,
        command: &Command,
        program: &str,
        arguments: &[Word],
        piped: Vec<(usize, Word)>,
    ) -> Option<(usize, String)> {
        // `-lc`, `-euxc`
        let has_text = |word: &Word| {
            let letters = word.text.strip_prefix('-').unwrap_or_default();
            letters.contains('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
        };
        if let Some(at) = arguments.iter().position(has_text) {
            return Some((command.line, arguments.get(at + 1)?.text.clone()));
        }
        let is_option = |word: &Word| word.text.starts_with('-');
        let has_file = !arguments.iter().all(is_option) && arguments.iter().all(|word| word.text != "-s");
        let reads = is_of_another_user(program) || !has_file;
        let lines = self.input(command, piped);
        let first = lines.first().filter(|_| reads)?.0;
        let texts: Vec<&str> = lines.iter().map(|(_, word)| word.text.as_str()).collect();
        Some((first, texts.join("\n")))
    }

    /// The commands of another shell, of a text that begins at a line.
    pub(super) fn inner(&mut self, text: Option<(usize, String)>, is_sure: bool) {
        let Some((line, text)) = text else { return };
        if self.inner >= MOST_INNER || self.depth >= DEEPEST {
            let why = format!(
                "nothing of the script within it is judged: {MOST_INNER} such scripts are read, and {DEEPEST} within each other"
            );
            return self.not_judged(line, &text, &why);
        }
        self.inner += 1;
        self.depth += 1;
        let before = self.before + line - 1;
        let (outer, directory) = (
            mem::replace(&mut self.flow, Flow::within(is_sure)),
            self.directory.clone(),
        );
        self.run(&text, before);
        (self.flow, self.directory) = (outer, directory);
        self.depth -= 1;
    }

    /// `exec PROGRAM`: from here on the script is that program. Without one, `exec` opens files (`exec 3>FILE`).
    pub(super) fn replaced(&mut self, command: &Command, words: &[Word]) {
        let is_file = |word: &Word| word.text.starts_with('{') || word.text.chars().all(|c| c.is_ascii_digit());
        let is_program = |word: &Word| !word.is_open() && !word.text.starts_with('-') && !is_file(word);
        if words.first().is_some_and(|first| first.text == "exec") && words[1..].iter().any(is_program) {
            self.flow.ends(command, "exec", !self.writes.is_empty());
        }
    }
}
