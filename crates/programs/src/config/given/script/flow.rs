//! Which commands of a script run for sure: what encloses them, what they are joined to, and where the script may have ended.

use super::commands::{Command, plain, written};
use super::words::{MOST, Variables, Word};
use crate::config::given::shell_tokens::Part;

/// What encloses a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Sure,
    /// It runs, or is for a file of the kernel that is not there.
    File,
    Branch,
    Loop,
    /// Whether it is called is not known.
    Function,
}

impl Block {
    fn is_sure(self) -> bool {
        matches!(self, Self::Sure | Self::File)
    }
}

#[derive(Default)]
pub(super) struct Flow {
    blocks: Vec<Block>,
    /// May `&&` or `||` pass the command over?
    may_be_passed: bool,
    /// Does a command behind `&&` of the last one run?
    pub(super) succeeds: bool,
    /// The words behind `if`.
    is_condition: bool,
    /// Behind `function NAME`, whose block is yet to come.
    is_function: bool,
    /// Bodies of functions so far.
    bodies: usize,
    /// The script may have ended after some of its writes.
    may_be_over: bool,
    /// It has ended for sure, by this command.
    pub(super) end: Option<&'static str>,
    /// How many blocks are around each subshell.
    subshells: Vec<usize>,
    /// The directory was changed where that is not sure.
    has_moved: bool,
}

impl Flow {
    /// That of a shell within the script.
    pub(super) fn within(is_sure: bool) -> Self {
        let block = if is_sure { Block::Sure } else { Block::Branch };
        Self {
            blocks: vec![block],
            ..Self::default()
        }
    }

    pub(super) fn is_sure(&self) -> bool {
        self.is_known() && !self.may_be_over
    }

    /// Is what is assigned here the value in all that follows? Where the script has ended, nothing follows.
    pub(super) fn is_known(&self) -> bool {
        !self.may_be_passed && self.blocks.iter().all(|block| block.is_sure())
    }

    /// The number of the function whose commands from here on all run where it is called; `None` in a branch or a loop of it.
    pub(super) fn body(&self) -> Option<usize> {
        let is_plain = |block: &Block| block.is_sure() || *block == Block::Function;
        let is_in_one = self.blocks.contains(&Block::Function);
        (is_in_one && !self.may_be_passed && self.blocks.iter().all(is_plain)).then_some(self.bodies)
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.blocks.contains(&Block::Loop)
    }

    /// `exit` or `return`. With a status of failure it is for a run that fails; before any write it is for one that sets nothing.
    pub(super) fn exit(&mut self, command: &Command, by: &'static str, arguments: &[Word], has_written: bool) {
        let is_failure = arguments.first().is_some_and(|status| status.text != "0");
        self.ends(command, by, has_written && !is_failure);
    }

    /// A command behind which nothing of the script runs, unless a shell of its own has it: `(exit)`, `exec a | b`, `exec a &`.
    pub(super) fn ends(&mut self, command: &Command, by: &'static str, may_be: bool) {
        if command.is_apart || !self.subshells.is_empty() || self.blocks.contains(&Block::Function) {
            return;
        }
        match self.is_known() && command.before != "&&" && !self.blocks.contains(&Block::File) {
            true => self.end = Some(by),
            false => self.may_be_over |= may_be,
        }
    }

    /// Where a subshell begins and ends; a pattern of `case` ends none.
    fn parenthesis(&mut self, sign: &str) {
        match sign {
            "(" => self.subshells.push(self.blocks.len()),
            ")" if self.subshells.last() == Some(&self.blocks.len()) => drop(self.subshells.pop()),
            _ => {}
        }
    }

    /// The directory is changed: is it the one of the commands that follow?
    pub(super) fn moves(&mut self) -> bool {
        let is_known = self.is_known();
        self.has_moved |= !is_known;
        is_known || !self.blocks.is_empty()
    }

    /// Was the directory changed in a block that has ended?
    pub(super) fn has_left(&mut self) -> bool {
        let is_open = self.blocks.iter().any(|block| !block.is_sure());
        !is_open && std::mem::take(&mut self.has_moved)
    }

    fn close(&mut self) {
        if self.blocks.pop().is_some_and(|block| !block.is_sure()) {
            self.succeeds = false;
        }
    }

    fn unsure(&mut self) {
        if let Some(last) = self.blocks.last_mut().filter(|block| block.is_sure()) {
            *last = Block::Branch;
        }
    }

    fn passes(&self, command: &Command) -> bool {
        match command.before {
            "&&" => self.may_be_passed || !self.succeeds,
            "||" => true,
            "|" | "(" => self.may_be_passed,
            ")" if command.words.is_empty() => self.may_be_passed,
            _ => false,
        }
    }

    /// `for NAME in VALUES`
    fn each(&mut self, words: &[Vec<Part>], variables: &mut Variables) {
        self.blocks.push(Block::Loop);
        let name = words
            .first()
            .and_then(|word| plain(word))
            .unwrap_or_default()
            .to_owned();
        let open = words.iter().map(|word| written(word)).collect::<Vec<_>>().join(" ") + " ";
        let text = format!("${{{name}}}");
        variables.set(name, Word { text, open });
    }

    /// What a block of `{` is.
    fn braced(&mut self, before: &str) -> Block {
        match std::mem::take(&mut self.is_function) || before == ")" {
            true => {
                self.bodies += 1;
                Block::Function
            }
            false if self.may_be_passed => Block::Branch,
            false if before == "&&" => Block::File,
            false => Block::Sure,
        }
    }

    /// The words of a command behind those that open and close blocks; `None` of what is such words alone.
    pub(super) fn behind_keywords<'c>(
        &mut self,
        command: &'c Command,
        variables: &mut Variables,
    ) -> Option<&'c [Vec<Part>]> {
        self.parenthesis(command.before);
        self.may_be_passed = self.passes(command);
        let mut parts = &command.words[..];
        let begins = parts.first().and_then(|word| plain(word));
        // The condition is more than one test.
        if self.is_condition && !parts.is_empty() && begins != Some("then") {
            self.unsure();
        }
        while let Some(keyword) = parts.first().and_then(|word| plain(word)) {
            let mut rest = &parts[1..];
            match keyword {
                "if" => {
                    let is_sure = !self.may_be_passed && asks_for_file(rest, variables);
                    self.blocks.push(if is_sure { Block::File } else { Block::Branch });
                    self.is_condition = true;
                }
                "elif" | "else" => self.unsure(),
                "while" | "until" => self.blocks.push(Block::Loop),
                "for" | "select" => {
                    self.each(rest, variables);
                    return None;
                }
                "case" => {
                    self.blocks.push(Block::Branch);
                    return None;
                }
                "{" => {
                    let block = self.braced(command.before);
                    self.blocks.push(block);
                }
                "fi" | "done" | "esac" | "}" => self.close(),
                "then" => self.is_condition = false,
                "do" | "!" | "time" => {}
                "function" => {
                    self.is_function = true;
                    rest = rest.get(1..).unwrap_or_default();
                }
                _ => break,
            }
            parts = rest;
        }
        (!parts.is_empty()).then_some(parts)
    }
}

/// `[ -f /sys/kernel/mm/transparent_hugepage/enabled ]`: where a file of the kernel is not there, nothing can be written to it.
fn asks_for_file(condition: &[Vec<Part>], variables: &Variables) -> bool {
    // A test of one file has no more words.
    let words = condition.get(..4).unwrap_or(condition);
    let mut left = MOST;
    let words = words.iter().flat_map(|word| variables.expanded(word, &mut left));
    let words: Vec<Word> = words.collect();
    condition.len() <= 4
        && words
            .split_first()
            .is_some_and(|(test, rest)| is_test(&test.text) && is_of_file(rest))
}

fn is_test(program: &str) -> bool {
    matches!(program, "[" | "[[" | "test")
}

/// The words of a test behind its name.
fn is_of_file(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().take(4).map(|word| word.text.as_str()).collect();
    match texts[..] {
        ["-d" | "-e" | "-f" | "-r" | "-s" | "-w" | "-x", path]
        | ["-d" | "-e" | "-f" | "-r" | "-s" | "-w" | "-x", path, "]" | "]]"] => is_of_kernel(path),
        _ => false,
    }
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("/sys/") || path.starts_with("/proc/")
}

/// Does a program, once it runs, let what is behind `&&` run as well? What fails ends what a script is for.
pub(super) fn succeeds(program: &str, arguments: &[Word]) -> bool {
    const WRITES: [&str; 31] = [
        ":", "apt", "apt-get", "cat", "cd", "chgrp", "chmod", "chown", "cp", "dnf", "echo", "groupadd", "grubby",
        "install", "mkdir", "modprobe", "mount", "mv", "printf", "rm", "sed", "set", "sleep", "sync", "sysctl", "tee",
        "touch", "true", "umount", "usermod", "yum",
    ];
    WRITES.contains(&program) || (is_test(program) && is_of_file(arguments))
}

/// Does `((...))` change a variable?
pub(super) fn assigns(sum: &str) -> bool {
    let compared = ["==", "!=", "<=", ">="];
    let sum = compared.iter().fold(sum.to_owned(), |sum, sign| sum.replace(sign, " "));
    sum.contains('=') || sum.contains("++") || sum.contains("--")
}
