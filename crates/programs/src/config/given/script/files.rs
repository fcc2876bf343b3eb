//! Commands of a script that set something: files that are written, sysctl, and tools of the boot line.

use super::Reader;
use super::words::Word;
use super::writes::Write;
use crate::config::{Setting, grub, sysctl_files};

impl Reader<'_> {
    /// What a command at a line writes into a file.
    pub(super) fn write_all(&mut self, line: usize, into: &Word, printed: &[(usize, Word)], is_sure: bool) {
        if printed.is_empty() {
            let into = self.located(into);
            let is_of_kernel = into.is_open() || ["/sys/", "/proc/"].iter().any(|below| into.text.starts_with(below));
            if is_of_kernel && into.is_about_pages() {
                self.unresolved(line, &format!("> {}", into.text), Some(&into));
            }
        }
        for (line, what) in printed {
            self.write(*line, into, what, is_sure);
        }
    }

    fn write(&mut self, line: usize, into: &Word, what: &Word, is_sure: bool) {
        let into = &self.located(into);
        let (path, value) = (into.text.as_str(), what.text.trim());
        let is_relative = !path.starts_with('/') && path.ends_with("_hugepages");
        let is_pattern = path.contains(['*', '?', '[']);
        let is_about_pages = into.is_about_pages() || what.is_about_pages();
        if into.is_open() || what.is_open() || is_relative || is_pattern {
            if is_about_pages {
                self.unresolved(line, &format!("{value} > {path}"), Some(into));
            }
            return;
        }
        let place = self.place(line);
        let pair = value.split_once('=').filter(|_| !value.starts_with('#'));
        if let Some(name) = path.strip_prefix("/proc/sys/") {
            self.keep(sysctl_files::taken_as(Setting::new(place, name, value)), is_sure, true);
        } else if path.starts_with("/sys/") {
            self.keep(Setting::new(place, path, value), is_sure, true);
        } else if path.ends_with("/sysctl.conf") || path.contains("/sysctl.d/") {
            if let Some((name, value)) = pair {
                let setting = Setting::new(place, name.trim(), value.trim());
                self.keep(sysctl_files::taken_as(setting), is_sure, false);
            }
        } else if path.ends_with("/default/grub") || path.contains("/default/grub.d/") {
            // A line that GRUB's scripts never take is wrong whenever it is written.
            if is_sure || grub::parameter(value).is_some() {
                self.script.grub.push((place, value.to_owned()));
            } else if is_about_pages {
                self.unresolved(line, &format!("{value} > {path}"), None);
            }
        }
    }

    /// A path behind `cd`. What a variable may hold is not joined.
    fn located(&self, path: &Word) -> Word {
        let directory = self.directory.as_deref().filter(|_| !path.text.starts_with(['/', '$']));
        let text = directory.map_or_else(|| path.text.clone(), |directory| joined(directory, &path.text));
        let open = path.open.clone();
        Word { text, open }
    }

    pub(super) fn go_to(&mut self, arguments: &[Word]) {
        let target = match arguments {
            [only] if !only.is_open() && only.text != "-" => Some(&only.text),
            _ => None,
        };
        let goes = target.and_then(|target| match target.starts_with('/') {
            true => Some(joined("", target)),
            false => Some(joined(self.directory.as_deref()?, target)),
        });
        self.directory = goes.filter(|_| self.flow.moves());
    }

    /// `grubby --args="hugepages=16"`
    pub(super) fn grubby(&mut self, line: usize, arguments: &[Word], is_sure: bool) {
        for (at, word) in arguments.iter().enumerate() {
            let words = match word.text.strip_prefix("--args") {
                Some("") => arguments.get(at + 1).map(|next| (next, next.text.as_str())),
                Some(words) => words.strip_prefix('=').map(|words| (word, words)),
                None => None,
            };
            let Some((word, words)) = words.filter(|(word, _)| word.is_about_pages()) else {
                continue;
            };
            if is_sure && !word.is_open() {
                self.script.boot.push((self.place(line), words.to_owned()));
            } else {
                self.unresolved(line, &format!("grubby --args={words}"), None);
            }
        }
    }

    /// A program that edits settings in ways that are not worked out here. What takes lines away asks for no pages.
    pub(super) fn edited(&mut self, line: usize, words: &[Word]) {
        let sets =
            |word: &Word| word.is_about_pages() && !word.text.ends_with("/d") && !word.text.starts_with("--delete");
        if words.iter().any(sets) {
            self.unresolved(line, &Word::join(words, " ").text, None);
        }
    }

    /// `sysctl -w NAME=VALUE`
    pub(super) fn sysctl(&mut self, line: usize, arguments: &[Word], is_sure: bool) {
        for word in arguments {
            let Some((name, value)) = word.text.split_once('=').filter(|(name, _)| !name.starts_with('-')) else {
                continue;
            };
            if !word.is_open() {
                let setting = Setting::new(self.place(line), name.trim(), value.trim());
                self.keep(sysctl_files::taken_as(setting), is_sure, true);
            } else if word.is_about_pages() {
                // The name is known where the value alone is open.
                let file = match name.contains(['$', '`']) {
                    true => word.clone(),
                    false => Word::plain(name),
                };
                self.unresolved(line, &format!("sysctl {}", word.text), Some(&file));
            }
        }
    }

    pub(super) fn keep(&mut self, setting: Setting, is_sure: bool, is_at_once: bool) {
        self.writes.push(Write {
            setting,
            is_sure,
            is_at_once,
            after: self.programs,
        });
    }
}

/// A path below a directory.
fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
