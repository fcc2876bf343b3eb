//! Puppet, Chef, Terraform, kickstart, Vagrant, cron and udev: what lines of them set, and the commands in them.

use super::super::node::boot_line;
use super::super::yaml;
use super::{Reader, is_sysctl};
use crate::config::files::{Line, said};

impl Reader<'_> {
    /// What is no YAML.
    pub(super) fn lines(&mut self, text: &str) {
        let lines: Vec<Line<'_>> = said(self.path, text, &['#']).collect();
        let raw: Vec<&str> = text.lines().collect();
        let asks = ["if ", "unless ", "case ", "elsif ", "count "];
        let is_sure = !lines
            .iter()
            .any(|line| asks.iter().any(|begin| line.text.starts_with(begin)));
        let mut at = 0;
        while at < lines.len() {
            at += self.line(&lines[at..], &raw, is_sure);
        }
    }

    /// Reads what begins with a line of all those of the file; how many lines is that?
    fn line(&mut self, lines: &[Line<'_>], raw: &[&str], is_sure: bool) -> usize {
        let (line, number) = (lines[0].text, lines[0].number());
        if let Some(end) = embedded(line) {
            let inner = lines[1..].iter().take_while(|line| !ends(line.text, end)).count();
            let raw = raw.get(number..lines[inner].number()).unwrap_or_default();
            // What a package runs when it goes is no setting.
            if !["%postun", "%preun"].iter().any(|gone| line.starts_with(gone)) {
                self.text(&lines[1..=inner], number, raw, is_sure);
            }
            return inner + 1;
        }
        let (quoted, command) = (quoted(line), of_cron(line));
        let is_command = |text: &str| {
            ["sysctl ", "echo ", "/bin/sh ", "sh -c "]
                .iter()
                .any(|begin| text.starts_with(begin))
        };
        for text in quoted.iter().copied().chain(command).filter(|text| is_command(text)) {
            self.shell(number, text, is_sure);
        }
        if line.starts_with("bootloader ")
            && let Some(words) = quoted.iter().find(|text| text.contains("hugepage"))
        {
            self.read.boot.push(boot_line(self.place(number), words));
        }
        if let Some(name) = quoted.iter().find(|text| is_sysctl(text)) {
            self.declared(lines, name, is_sure);
        }
        1
    }

    /// A text within the file, behind so many lines: a script, or one of cloud-init.
    fn text(&mut self, lines: &[Line<'_>], before: usize, raw: &[&str], is_sure: bool) {
        let begin = raw.iter().map(|line| line.trim()).find(|line| !line.is_empty());
        match begin.unwrap_or_default() {
            first if first.starts_with("#cloud-config") => self.cloud_init(before, raw, is_sure),
            first if first.starts_with("Content-Type:") || first.starts_with("MIME-Version:") => self.list(before, raw),
            _ => self.script(lines, is_sure),
        }
    }

    fn script(&mut self, lines: &[Line<'_>], is_sure: bool) {
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let before = at.checked_sub(1).map_or(lines[0].number(), |at| lines[at].number());
            text.push_str(&"\n".repeat(line.number() - before));
            text.push_str(line.text);
        }
        let Some(first) = lines.first() else { return };
        self.shell(first.number(), &text, is_sure);
    }

    fn cloud_init(&mut self, before: usize, raw: &[&str], is_sure: bool) {
        self.inner += 1;
        let text = || "\n".repeat(before) + &raw.join("\n");
        let documents = (self.inner <= MOST_INNER).then(|| yaml::documents(self.path, &text()));
        match documents {
            Some(Ok(documents)) => documents.iter().for_each(|node| self.node(node, is_sure)),
            _ => self.list(before, raw),
        }
    }

    /// Lines about huge pages that are not read.
    fn list(&mut self, before: usize, raw: &[&str]) {
        for (number, line) in (before + 1..).zip(raw).filter(|(_, line)| line.contains("huge")) {
            self.only_run(number, line.trim());
        }
    }

    /// `sysctl { 'NAME': value => 8 }`, `sysctl 'NAME' do ... value 8`, `"NAME" = 8`.
    fn declared(&mut self, lines: &[Line<'_>], name: &str, is_sure: bool) {
        let (_, behind) = lines[0].text.split_once(name).unwrap_or_default();
        let behind = behind.trim_start_matches(['\'', '"']).trim_start();
        if let Some(value) = behind
            .strip_prefix('=')
            .filter(|rest| !rest.starts_with(['=', '~', '>']))
        {
            return self.set(lines[0].number(), name, plain(value), is_sure);
        }
        let ends = |text: &str| text.contains('}') || text == "end" || text == "]";
        let inner = lines.iter().take(NEAR).position(|line| ends(line.text)).unwrap_or(0);
        let block = || {
            std::iter::once((lines[0].number(), behind))
                .chain(lines[1..=inner].iter().map(|line| (line.number(), line.text)))
        };
        let is_gone = |(_, text): (usize, &str)| ["absent", ":remove"].iter().any(|word| text.contains(word));
        if block().any(is_gone) {
            return;
        }
        if let Some((line, value)) = block().find_map(|(line, text)| Some((line, keyed(text)?))) {
            self.set(line, name, value, is_sure);
        }
    }
}

/// Lines within which a block has its value.
const NEAR: usize = 8;

/// Texts of cloud-init in one file that are read.
const MOST_INNER: usize = 32;

/// Does a line end a text within the file? In a file of RPM the next section does, while other `%` words are macros.
fn ends(line: &str, end: &str) -> bool {
    const SECTIONS: [&str; 11] = [
        "%pre",
        "%post",
        "%files",
        "%changelog",
        "%package",
        "%description",
        "%prep",
        "%build",
        "%install",
        "%check",
        "%trigger",
    ];
    line == end || (end == "%end" && SECTIONS.iter().any(|section| line.starts_with(section)))
}

/// What ends a text within the file that begins behind this line: a here-document, or a section of kickstart's.
fn embedded(line: &str) -> Option<&str> {
    if line.starts_with("%post") || line.starts_with("%pre") {
        return Some("%end");
    }
    let (_, mark) = line.split_once("<<")?;
    let mark = mark.trim_start_matches(['-', '~']).trim_matches(['\'', '"']);
    (!mark.is_empty() && mark.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some(mark)
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['\'', '"']) {
        let (mark, inner) = rest[at..].split_at(1);
        let Some(end) = inner.find(mark) else { break };
        texts.push(&inner[..end]);
        rest = &inner[end + 1..];
    }
    texts
}

/// The command of a line of cron: `@reboot root COMMAND`, `0 3 * * * root COMMAND`.
fn of_cron(line: &str) -> Option<&str> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let is_time = |word: &str| word.starts_with('@') || word.chars().all(|c| c.is_ascii_digit() || "*/,-".contains(c));
    let mut rest = line;
    for _ in 0..fields {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        rest = behind.trim_start();
        if !is_time(word) {
            return None;
        }
    }
    Some(rest.strip_prefix("root ").unwrap_or(rest).trim_start())
}

/// The value of a key `value`, with a sign or, as Chef has it, without.
fn keyed(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("value")?;
    let rest = rest.trim_start();
    let signed = ["=>", "="].iter().find_map(|sign| rest.strip_prefix(sign));
    let is_word = before.ends_with(|c: char| c.is_whitespace() || matches!(c, ',' | '{')) || before.is_empty();
    let value = signed.or_else(|| {
        let is_literal = rest.starts_with(|c: char| matches!(c, '\'' | '"') || c.is_ascii_digit());
        (is_literal || rest.starts_with("node[")).then_some(rest)
    })?;
    is_word.then(|| plain(value))
}

/// A value as it is written, without quotes; what follows it is left out. What is no literal looks like a template.
fn plain(text: &str) -> &str {
    let text = text.trim_start();
    if let Some(inner) = text.strip_prefix(['\'', '"']) {
        return inner.split(['\'', '"']).next().unwrap_or_default();
    }
    let end = text
        .find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ';'))
        .unwrap_or(text.len());
    match text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        true => &text[..end],
        false => "${...}",
    }
}
