//! Shell scripts: the settings that they write, and the known programs that they start. What only a run shows is said, and not guessed.

mod commands;
mod known;
mod mounts;
mod printed;
mod words;
mod writes;

use std::mem;

use super::FileKind;
use super::kind::is_java;
use super::shell::file_name;
use super::shell_tokens::{Part, tokens};
use super::starts::{READ_BY_JAVA, Start};
use crate::config::{PoolWrite, Setting, sysctl_files};
use commands::{Command, assignment, commands, plain, written};
use known::{is_known, launched, lost};
pub use mounts::HugeMount;
use mounts::{mount, unmount};
use printed::{of_text, printed};
use words::{Variables, Word};
use writes::{Write, settle};

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
    /// Where it mounts hugetlbfs.
    pub(super) mounts: Vec<HugeMount>,
    /// Known programs.
    pub(super) starts: Vec<Start>,
    /// What only a run shows, with its place.
    pub(super) unresolved: Vec<String>,
}

impl Script {
    pub(super) fn is_empty(&self) -> bool {
        !self.writes() && self.starts.is_empty() && self.unresolved.is_empty()
    }

    fn writes(&self) -> bool {
        !self.sysctl.is_empty() || !self.sysfs.is_empty() || !self.grub.is_empty() || !self.mounts.is_empty()
    }

    /// Is there more in it than in a file of one of these kinds? Their readers know no variables.
    pub(super) fn is_more_than(&self, kinds: &[FileKind]) -> bool {
        match kinds {
            [] | [FileKind::Qemu] => !self.is_empty(),
            [FileKind::Java] => self.writes() || !self.unresolved.is_empty(),
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
    let mut reader = Reader::new(path);
    reader.run(text, 0);
    settle(&reader.writes, reader.script)
}

/// What encloses a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// It runs, or is for a file that is not there.
    Sure,
    Branch,
    Loop,
}

struct Reader<'a> {
    path: &'a str,
    /// Lines before the text, where it is a part of the file.
    before: usize,
    variables: Variables,
    blocks: Vec<Block>,
    /// What the command before writes into a pipe.
    piped: Vec<(usize, Word)>,
    programs: usize,
    /// Scripts within the script.
    inner: usize,
    writes: Vec<Write>,
    script: Script,
}

/// Of those at most so many, which may call themselves.
const MOST_INNER: usize = 32;

impl<'a> Reader<'a> {
    fn new(path: &'a str) -> Self {
        Self {
            path,
            before: 0,
            variables: Variables::default(),
            blocks: Vec::new(),
            piped: Vec::new(),
            programs: 0,
            inner: 0,
            writes: Vec::new(),
            script: Script::default(),
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
            None if text.contains("hugepage") => {
                let place = self.place(1);
                self.script.unresolved.push(format!(
                    "{place}: a quote is not closed, so nothing of the script is judged"
                ));
            }
            None => {}
        }
        self.before = outer;
    }

    fn command(&mut self, command: &Command) {
        let mut piped = mem::take(&mut self.piped);
        if command.before != "|" {
            piped.clear();
        }
        let Some(parts) = self.behind_keywords(command) else {
            return;
        };
        let declares = ["export", "local", "readonly", "declare", "typeset"];
        if parts
            .first()
            .and_then(|word| plain(word))
            .is_some_and(|first| declares.contains(&first))
        {
            self.assign(parts);
            return;
        }
        let assigned = parts.iter().take_while(|word| assignment(word).is_some()).count();
        let (assigned, parts) = parts.split_at(assigned);
        if parts.is_empty() {
            self.assign(assigned);
            return;
        }
        let words: Vec<Word> = parts.iter().flat_map(|word| self.variables.expanded(word)).collect();
        self.execute(command, &words, assigned, piped);
    }

    /// A command with its words, and the variables that are set for it alone.
    fn execute(&mut self, command: &Command, words: &[Word], assigned: &[Vec<Part>], piped: Vec<(usize, Word)>) {
        let is_sure = self.is_sure() && command.before != "||";
        let at = launched(words);
        let Some(program) = words.get(at).map(|word| file_name(&word.text)) else {
            return;
        };
        let (line, arguments) = (command.line, &words[at + 1..]);
        match program {
            "echo" | "printf" | "cat" => {
                let printed = printed(program, arguments, command, piped);
                for into in &command.into {
                    let into = self.variables.whole(into);
                    self.write_all(&into, &printed, is_sure);
                }
                self.piped = printed;
            }
            "tee" => {
                let given = command.given.as_ref().map(|word| (line, self.variables.whole(word)));
                let printed: Vec<(usize, Word)> = piped.into_iter().chain(given).chain(of_text(command)).collect();
                for into in arguments.iter().filter(|word| !word.text.starts_with('-')) {
                    self.write_all(into, &printed, is_sure);
                }
                self.piped = printed;
            }
            "sysctl" => self.sysctl(line, arguments, is_sure),
            "mount" => {
                if let Some(new) = HugeMount::of(self.place(line), arguments, is_sure) {
                    mount(&mut self.script.mounts, new);
                }
            }
            "umount" => unmount(&mut self.script.mounts, arguments),
            name if SHELLS.contains(&name) || matches!(name, "su" | "runuser") => {
                let inner = arguments.iter().skip_while(|word| word.text != "-c").nth(1);
                if let Some(inner) = inner.filter(|_| self.inner < MOST_INNER) {
                    self.inner += 1;
                    let (blocks, before) = (self.blocks.clone(), self.before + line - 1);
                    self.run(&inner.text, before);
                    self.blocks = blocks;
                }
            }
            _ => self.program(line, words, at, assigned, is_sure),
        }
    }

    fn assign(&mut self, words: &[Vec<Part>]) {
        let is_sure = self.is_sure();
        words.iter().for_each(|word| self.variables.assign(word, is_sure));
    }

    fn is_sure(&self) -> bool {
        self.blocks.iter().all(|block| *block == Block::Sure)
    }

    /// The words of a command behind those that open and close blocks; `None` of what is such words alone.
    fn behind_keywords<'c>(&mut self, command: &'c Command) -> Option<&'c [Vec<Part>]> {
        let mut parts = &command.words[..];
        while let Some(keyword) = parts.first().and_then(|word| plain(word)) {
            let rest = &parts[1..];
            match keyword {
                "if" if asks_for_file(rest) => self.blocks.push(Block::Sure),
                "if" => self.blocks.push(Block::Branch),
                "elif" | "else" => {
                    if let Some(last) = self.blocks.last_mut() {
                        *last = Block::Branch;
                    }
                }
                "while" | "until" => self.blocks.push(Block::Loop),
                "for" | "select" => {
                    self.blocks.push(Block::Loop);
                    let name = rest.first().and_then(|word| plain(word)).unwrap_or_default().to_owned();
                    let open = rest.iter().map(|word| written(word)).collect::<Vec<_>>().join(" ") + " ";
                    let text = format!("${{{name}}}");
                    self.variables.set(name, Word { text, open });
                    return None;
                }
                "case" => {
                    self.blocks.push(Block::Branch);
                    return None;
                }
                "{" if command.before == ")" => self.blocks.push(Block::Branch),
                "{" => self.blocks.push(Block::Sure),
                "fi" | "done" | "esac" | "}" => {
                    self.blocks.pop();
                }
                "then" | "do" | "!" | "time" => {}
                "function" => return None,
                _ => break,
            }
            parts = rest;
        }
        (!parts.is_empty()).then_some(parts)
    }

    fn write_all(&mut self, into: &Word, printed: &[(usize, Word)], is_sure: bool) {
        for (line, what) in printed {
            self.write(*line, into, what, is_sure);
        }
    }

    fn write(&mut self, line: usize, into: &Word, what: &Word, is_sure: bool) {
        let (path, value) = (into.text.as_str(), what.text.trim());
        let is_relative = !path.starts_with('/') && path.ends_with("_hugepages");
        let is_pattern = path.contains(['*', '?', '[']);
        if into.is_open() || what.is_open() || is_relative || is_pattern {
            if into.is_about_pages() || what.is_about_pages() {
                self.unresolved(line, &format!("{value} > {path}"));
            }
            return;
        }
        let place = self.place(line);
        let pair = value.split_once('=').filter(|_| !value.starts_with('#'));
        if let Some(name) = path.strip_prefix("/proc/sys/") {
            self.keep(sysctl_files::taken_as(Setting::new(place, name, value)), is_sure);
        } else if path.starts_with("/sys/") {
            self.keep(Setting::new(place, path, value), is_sure);
        } else if path.ends_with("/sysctl.conf") || path.contains("/sysctl.d/") {
            // It is there from then on, whatever this run does.
            if let Some((name, value)) = pair {
                self.keep(
                    sysctl_files::taken_as(Setting::new(place, name.trim(), value.trim())),
                    true,
                );
            }
        } else if path.ends_with("/default/grub") {
            self.script.grub.push((place, value.to_owned()));
        }
    }

    /// `sysctl -w NAME=VALUE`
    fn sysctl(&mut self, line: usize, arguments: &[Word], is_sure: bool) {
        for word in arguments {
            let Some((name, value)) = word.text.split_once('=').filter(|(name, _)| !name.starts_with('-')) else {
                continue;
            };
            if !word.is_open() {
                let setting = Setting::new(self.place(line), name.trim(), value.trim());
                self.keep(sysctl_files::taken_as(setting), is_sure);
            } else if word.is_about_pages() {
                self.unresolved(line, &format!("sysctl {}", word.text));
            }
        }
    }

    fn keep(&mut self, setting: Setting, is_sure: bool) {
        self.writes.push(Write {
            setting,
            is_sure,
            after: self.programs,
        });
    }

    fn unresolved(&mut self, line: usize, what: &str) {
        let place = self.place(line);
        self.script.unresolved.push(format!(
            "{place}: `{what}` is not judged: only a run of the script shows what it comes to"
        ));
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
            self.unresolved(line, &what);
            // A JVM has its other options.
            if !is_java(program) {
                return;
            }
        }
        let is_same = |start: &Start| start.words.iter().any(|word| file_name(word) == program);
        if !is_sure && self.script.starts.iter().any(is_same) {
            return;
        }
        let place = self.place(line);
        if self.blocks.contains(&Block::Loop) {
            self.script.unresolved.push(format!(
                "{place}: {program} is started in a loop, and one start of it is judged"
            ));
        }
        let mut shown = words.to_vec();
        shown.retain(|word| !is_java(program) || !word.is_open());
        let variables = assigned.iter().filter_map(|word| assignment(word));
        let variables = variables.map(|(name, _, value)| (name, self.variables.whole(&value)));
        let exported = self.variables.all();
        let environment = exported.chain(variables);
        let is_read = |name: &str| is_java(program) && READ_BY_JAVA.contains(&name);
        let environment = environment.filter(|(name, value)| is_read(name) && !value.is_open());
        let environment = environment
            .map(|(name, value)| Setting::new(&place, name, value.text))
            .collect();
        self.script.starts.push(Start {
            words: texts(&shown),
            environment,
            place,
        });
    }
}

/// `[ -f /sys/kernel/mm/transparent_hugepage/enabled ]`
fn asks_for_file(condition: &[Vec<Part>]) -> bool {
    let mut words = condition.iter().map(|word| plain(word));
    let is_test = matches!(words.next().flatten(), Some("[" | "[[" | "test"));
    is_test
        && matches!(
            words.next().flatten(),
            Some("-d" | "-e" | "-f" | "-r" | "-s" | "-w" | "-x")
        )
}

/// Programs that use no pages of a pool between two writes of it.
const HARMLESS: [&str; 33] = [
    ".", ":", "[", "[[", "apt-get", "awk", "cd", "chgrp", "chmod", "chown", "cp", "date", "dnf", "exit", "false",
    "free", "grep", "groupadd", "id", "in", "ls", "mkdir", "modprobe", "read", "rm", "sed", "set", "sleep", "sync",
    "test", "touch", "true", "usermod",
];
