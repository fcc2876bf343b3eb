//! Shell scripts: the settings that they write, and the known programs that they start. What only a run shows is said, and not guessed.

mod commands;
mod files;
mod flow;
mod known;
mod mounts;
mod printed;
mod shells;
mod tools;
mod words;
mod writes;
mod written;

use std::mem;

use super::FileKind;
use super::kind::is_java;
use super::shell::file_name;
use super::shell_tokens::{Part, tokens};
use super::starts::{READ_BY_JAVA, Start};
use crate::config::{PoolWrite, Setting};
use commands::{Command, assignment, commands, plain, written as written_as};
use flow::Flow;
use known::{is_known, launched, lost};
pub use mounts::HugeMount;
use mounts::{mount, unmount};
use printed::{of_text, printed};
pub(super) use shells::of_shell;
use words::{MOST, Variables, Word};
use writes::{Write, settle};
pub(in crate::config) use written::{Unresolved, Written, written};

/// What of a script is about pages.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The last one of each name.
    pub(super) sysctl: Vec<Setting>,
    /// Files below /sys, each as it is written last.
    pub(super) sysfs: Vec<Setting>,
    /// Every write of a pool's count, in order.
    pub(super) pools: Vec<PoolWrite>,
    /// Lines that are appended to the defaults of GRUB: place and words.
    pub(super) grub: Vec<(String, String)>,
    /// Parameters that `grubby` puts on the boot line: place and words.
    pub(super) boot: Vec<(String, String)>,
    /// Where it mounts hugetlbfs.
    pub(super) mounts: Vec<HugeMount>,
    /// Known programs.
    pub(super) starts: Vec<Start>,
    /// What only a run shows, with its place.
    pub(super) unresolved: Vec<Unresolved>,
}

impl Script {
    pub(super) fn is_empty(&self) -> bool {
        !self.writes() && self.starts.is_empty() && self.unresolved.is_empty()
    }

    fn writes(&self) -> bool {
        let is_empty = self.sysctl.is_empty() && self.sysfs.is_empty();
        !is_empty || !self.grub.is_empty() || !self.boot.is_empty() || !self.mounts.is_empty()
    }

    /// Is there more in it than in a file of one of these kinds? Their readers know no variables.
    pub(super) fn is_more_than(&self, kinds: &[FileKind], text: &str) -> bool {
        let starts_any = !self.starts.is_empty();
        match kinds {
            [] | [FileKind::Qemu] => !self.is_empty(),
            [FileKind::Dpdk] => self.writes() || starts_any,
            [FileKind::Java | FileKind::Compose] => {
                self.writes() || !self.unresolved.is_empty() || (starts_any && text.contains('$'))
            }
            _ => self.writes(),
        }
    }
}

/// Is it a shell's, by its first line or its name?
pub(super) fn is_script(path: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let shell = first.strip_prefix("#!").and_then(|line| {
        let mut words = line.split_whitespace().map(file_name);
        words.find(|word| *word != "env" && !word.starts_with('-'))
    });
    let by_name = [".sh", ".bash"].iter().any(|end| path.ends_with(end));
    shell.map_or(by_name, |shell| SHELLS.contains(&shell))
}

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

pub(super) fn read(path: &str, text: &str) -> Script {
    read_behind(path, text, 0)
}

/// A text that follows so many lines of a file.
pub(super) fn read_behind(path: &str, text: &str, before: usize) -> Script {
    let mut reader = Reader::with(path, &[]);
    reader.run(text, before);
    settle(&reader.writes, reader.script)
}

/// The program behind launchers that a command starts for which there is no shell, if it is none itself.
pub(in crate::config) fn no_shell(words: &[String]) -> Option<&str> {
    let plain: Vec<Word> = words.iter().map(|word| Word::plain(word)).collect();
    let program = file_name(words.get(launched(&plain))?);
    (!SHELLS.contains(&program) && !is_of_another_user(program)).then_some(program)
}

#[derive(Default)]
struct Reader<'a> {
    path: &'a str,
    /// Lines before the text, where it is a part of the file.
    before: usize,
    variables: Variables,
    flow: Flow,
    /// Where `cd` went, if that is known.
    directory: Option<String>,
    /// What the command before writes into a pipe.
    piped: Vec<(usize, Word)>,
    programs: usize,
    /// The function that has the start before.
    body: Option<usize>,
    /// Scripts within the script, and how deep the one is that is read.
    inner: usize,
    depth: usize,
    writes: Vec<Write>,
    script: Script,
}

impl<'a> Reader<'a> {
    fn with(path: &'a str, environment: &[Setting]) -> Self {
        let mut variables = Variables::default();
        for set in environment {
            variables.set(set.name.clone(), Word::plain(&set.value));
        }
        Self {
            path,
            variables,
            ..Self::default()
        }
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{}", self.path, self.before + line)
    }

    /// The commands of a text that follows so many lines of the file.
    fn run(&mut self, text: &str, before: usize) {
        let outer = mem::replace(&mut self.before, before);
        match tokens(text) {
            Some(tokens) => commands(tokens).iter().for_each(|command| self.command(command)),
            None => {
                let why = "a quote, a parenthesis or a here-document is not closed, so nothing of the script is judged";
                self.not_judged(1, text, why);
            }
        }
        self.before = outer;
    }

    fn command(&mut self, command: &Command) {
        if let Some(end) = self.flow.end {
            return self.never_runs(command, end);
        }
        let mut piped = mem::take(&mut self.piped);
        if command.before != "|" {
            piped.clear();
        }
        // A subshell takes its directory with it.
        self.directory = self.directory.take().filter(|_| command.before != ")");
        let Some(parts) = self.flow.behind_keywords(command, &mut self.variables) else {
            if self.flow.has_left() {
                self.directory = None;
            }
            return;
        };
        if let [word] = parts
            && let [Part::Run(sum)] = &word[..]
            && sum.starts_with("((")
        {
            self.sum(sum);
            return;
        }
        let declares = ["export", "local", "readonly", "declare", "typeset"];
        let first = parts.first().and_then(|word| plain(word));
        let assigned = match first.is_some_and(|first| declares.contains(&first)) {
            true => parts.len(),
            false => parts.iter().take_while(|word| assignment(word).is_some()).count(),
        };
        let (assigned, parts) = parts.split_at(assigned);
        if parts.is_empty() {
            let is_sure = self.flow.is_known();
            self.flow.succeeds = false;
            assigned.iter().for_each(|word| self.variables.assign(word, is_sure));
            return;
        }
        let mut left = MOST;
        let words = parts.iter().flat_map(|word| self.variables.expanded(word, &mut left));
        let words: Vec<Word> = words.collect();
        self.execute(command, &words, assigned, piped);
        self.replaced(command, &words);
    }

    /// `((N = 4))`
    fn sum(&mut self, sum: &str) {
        if flow::assigns(sum) {
            self.variables.lose(sum);
        }
        self.flow.succeeds = false;
    }

    /// A command with its words, and the variables that are set for it alone.
    fn execute(&mut self, command: &Command, words: &[Word], assigned: &[Vec<Part>], piped: Vec<(usize, Word)>) {
        let is_sure = self.flow.is_sure();
        self.flow.succeeds = false;
        let at = launched(words);
        let Some(program) = words.get(at).map(|word| file_name(&word.text)) else {
            return;
        };
        let (line, arguments) = (command.line, &words[at + 1..]);
        self.flow.succeeds = flow::succeeds(program, arguments) && !command.is_negated();
        match program {
            "echo" | "printf" | "cat" => {
                self.print(command, printed(program, arguments, command, piped), is_sure);
            }
            "tee" => {
                let printed = self.input(command, piped);
                for into in arguments.iter().filter(|word| !word.text.starts_with('-')) {
                    self.write_all(command.line, into, &printed, is_sure);
                }
                self.piped = printed;
            }
            "sed" if arguments.iter().any(|word| word.text.starts_with("-i")) => self.edited(line, words),
            "envsubst" | "sed" | "awk" => {
                let mut lines = self.input(command, piped);
                lines.iter_mut().for_each(|(_, word)| word.open.clone_from(&word.text));
                self.print(command, lines, is_sure);
            }
            "sysctl" => self.sysctl(line, arguments, is_sure),
            "grubby" => self.grubby(line, arguments, is_sure),
            "hugeadm" => self.hugeadm(line, arguments, is_sure),
            "dpdk-hugepages.py" => self.dpdk_hugepages(line, &words[at..], is_sure),
            "setup.sh" if self.spdk(line, words, at, assigned) => {}
            "rpm-ostree" | "kernelstub" | "grub-editenv" | "grub2-editenv" => self.edited(line, words),
            "cd" => self.go_to(arguments),
            "exit" => self.flow.exit(command, "exit", arguments, !self.writes.is_empty()),
            "return" => self.flow.exit(command, "return", arguments, !self.writes.is_empty()),
            "let" | "read" => arguments.iter().for_each(|word| self.variables.lose(&word.text)),
            "mount" => {
                if let Some(new) = HugeMount::of(self.place(line), arguments, is_sure) {
                    mount(&mut self.script.mounts, new);
                }
            }
            "umount" => unmount(&mut self.script.mounts, arguments),
            name if SHELLS.contains(&name) || is_of_another_user(name) => {
                let inner = self.commands_of_shell(command, name, arguments, piped);
                self.inner(inner, is_sure);
            }
            "eval" => self.inner(Some((line, Word::join(arguments, " ").text)), is_sure),
            _ => {
                self.print(command, Vec::new(), is_sure);
                self.program(line, words, at, assigned, is_sure);
            }
        }
    }

    /// Where the output of a command goes.
    fn print(&mut self, command: &Command, printed: Vec<(usize, Word)>, is_sure: bool) {
        for into in &command.into {
            let into = self.variables.whole(into);
            self.write_all(command.line, &into, &printed, is_sure);
        }
        self.piped = printed;
    }

    /// The lines that a command reads: of a pipe, of `<<<` and of `<<END`.
    fn input(&self, command: &Command, piped: Vec<(usize, Word)>) -> Vec<(usize, Word)> {
        let given = command.given.as_ref();
        let given = given.map(|word| (command.line, self.variables.whole(word)));
        piped.into_iter().chain(given).chain(of_text(command)).collect()
    }

    /// A text that is not read may write any file of the kernel.
    fn not_judged(&mut self, line: usize, text: &str, why: &str) {
        let unresolved = Unresolved::new(self.place(line), why, Some(String::new()));
        let is_ours = text.contains("hugepage");
        self.script.unresolved.extend(is_ours.then_some(unresolved));
    }

    /// What stands behind the end of the script.
    fn never_runs(&mut self, command: &Command, end: &str) {
        let mut words = command.words.iter().chain(&command.into);
        if words.any(|word| written_as(word).contains("hugepage")) {
            let why = format!("this never runs, as the script ends before (`{end}`)");
            let unresolved = Unresolved::new(self.place(command.line), why, None);
            self.script.unresolved.push(unresolved);
        }
    }

    /// What only a run shows, with the word for the file of the kernel that it may write.
    fn unresolved(&mut self, line: usize, what: &str, file: Option<&Word>) {
        let why = format!("`{what}` is not judged: only a run of the script shows what it comes to");
        let file = file.map(|word| format!("{} {}", word.text, word.open));
        let unresolved = Unresolved::new(self.place(line), why, file);
        self.script.unresolved.push(unresolved);
    }

    /// A program that is known, or another one.
    fn program(&mut self, line: usize, words: &[Word], at: usize, assigned: &[Vec<Part>], is_sure: bool) {
        let own = &words[at..];
        let program = file_name(&own[0].text);
        self.programs += usize::from(!HARMLESS.contains(&program));
        let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect::<Vec<String>>();
        if !is_known(program, &texts(own)) {
            return;
        }
        if let Some(what) = lost(program, own) {
            self.unresolved(line, &what, None);
            // A JVM has its other options.
            if !is_java(program) {
                return;
            }
        }
        let is_same = |start: &Start| start.words.iter().any(|word| file_name(word) == program);
        // What may be the other branch is left out. Commands of one function run together.
        let body = self.flow.body();
        let is_with_last = body.is_some() && body == self.body;
        if !is_sure && !is_with_last && self.script.starts.iter().any(is_same) {
            return;
        }
        self.body = body;
        let place = self.place(line);
        if self.flow.is_in_loop() {
            let why = format!("{program} is started in a loop, and one start of it is judged");
            self.script.unresolved.push(Unresolved::new(&place, why, None));
        }
        let mut shown = words.to_vec();
        shown.retain(|word| !is_java(program) || !word.is_open());
        let read = READ_BY_JAVA.into_iter().filter(|_| is_java(program));
        let environment = read.filter_map(|name| {
            let mut own = assigned.iter().rev().filter_map(|word| assignment(word));
            let own = own.find(|(own, ..)| own == name);
            let own = own.map(|(_, _, value)| self.variables.whole(&value));
            let value = own.or_else(|| self.variables.get(name).cloned())?;
            (!value.is_open()).then(|| Setting::new(&place, name, value.text))
        });
        let environment = environment.collect();
        self.script.starts.push(Start {
            words: texts(&shown),
            environment,
            place,
            ..Start::default()
        });
    }
}

/// Programs that run a shell as another user.
fn is_of_another_user(program: &str) -> bool {
    matches!(program, "su" | "runuser" | "sudo" | "doas")
}

/// Does a text start one of them?
pub(in crate::config) fn changes_user(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || "\"'|;&(".contains(c));
    words.any(|word| is_of_another_user(file_name(word)))
}

/// Programs that use no pages of a pool between two writes of it.
const HARMLESS: [&str; 28] = [
    ".", ":", "[", "[[", "apt-get", "chgrp", "chmod", "chown", "cp", "date", "dnf", "false", "free", "grep",
    "groupadd", "id", "in", "ls", "mkdir", "modprobe", "rm", "set", "sleep", "sync", "test", "touch", "true",
    "usermod",
];
