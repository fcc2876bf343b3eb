//! Files of tools that set machines up: Ansible, Salt, Puppet, Chef, Terraform, cloud-init, Butane, kickstart, Vagrant, udev, cron. Settings of pages are
//! read of them by their lines, whatever the tool does around them; a value that the tool works out is not known, and passed over.

use std::ops::Range;

use super::FileKind;
use super::node::{Setup, boot_line, in_place};
use super::yaml::{self, Node};
use crate::config::files::{Line, said};
use crate::config::{LimitLine, Setting, limits, written};

/// What such a file sets.
#[derive(Debug, Default)]
pub(super) struct Provision {
    pub(super) setup: Setup,
    pub(super) limits: Vec<LimitLine>,
    /// Files that it writes, of kinds that are known by their names.
    pub(super) files: Vec<Written>,
}

/// A file that is written, by the lines of the one that writes it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) kind: FileKind,
    pub(super) text: String,
    lines: Range<usize>,
}

/// Has it a line that only such a file has?
pub(super) fn is_tool(text: &str) -> bool {
    const BEGIN: [&str; 14] = [
        "#cloud-config",
        "write_files:",
        "runcmd:",
        "bootcmd:",
        "- hosts:",
        "ansible.builtin.",
        "ansible.posix.",
        "lineinfile:",
        "blockinfile:",
        "variant: f",
        "sysctl.present",
        "resource \"",
        "%packages",
        "%post",
    ];
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| BEGIN.iter().any(|begin| line.starts_with(begin)))
}

/// Does it set anything about pages?
pub(super) fn sets(text: &str) -> bool {
    let Provision { setup, limits, files } = parse("", text);
    !(setup.boot.is_empty()
        && setup.sysctl.is_empty()
        && setup.sysfs.is_empty()
        && limits.is_empty()
        && files.is_empty())
}

pub(super) fn parse(path: &str, text: &str) -> Provision {
    let documents = yaml::documents(path, text).unwrap_or_default();
    let files: Vec<Written> = documents.iter().flat_map(|node| files(path, node)).collect();
    let is_within = |line: &Line<'_>| files.iter().any(|file| file.lines.contains(&line.number()));
    let lines = said(path, text, &['#']).filter(|line| !is_within(line) && !is_about(line.text));
    let lines: Vec<Line<'_>> = lines.collect();
    let mut setup = Setup {
        boot: boot(&lines),
        sysctl: sysctl(&lines),
        sysfs: written::in_text(path, text),
        ..Setup::default()
    };
    for setting in lines.iter().flat_map(writes) {
        match setting.name.strip_prefix("/proc/sys/") {
            Some(name) => setup
                .sysctl
                .push(Setting::new(&setting.place, name.replace('/', "."), &setting.value)),
            None => setup.sysfs.push(setting),
        }
    }
    let limits = (0..lines.len()).filter_map(|at| limit(&lines, at)).collect();
    Provision { setup, limits, files }
}

/// Is it a title or a condition, which sets nothing?
fn is_about(line: &str) -> bool {
    const BEGIN: [&str; 14] = [
        "regexp:",
        "regex:",
        "when:",
        "unless",
        "onlyif",
        "not_if",
        "only_if",
        "msg:",
        "debug",
        "if ",
        "elif ",
        "grep ",
        "description",
        "assert",
    ];
    let own = line.strip_prefix("- ").unwrap_or(line);
    let is_title = own.starts_with("name:") && own.split_whitespace().count() > 2;
    is_title || BEGIN.iter().any(|begin| own.starts_with(begin))
}

/// cloud-init's and Butane's files, and those that Ansible copies or changes.
fn files(path: &str, node: &Node) -> Vec<Written> {
    let below = node.entries().iter().map(|(_, node)| node).chain(node.items());
    file(path, node)
        .into_iter()
        .chain(below.flat_map(|node| files(path, node)))
        .collect()
}

fn file(path: &str, node: &Node) -> Option<Written> {
    const CONTENTS: [&[&str]; 4] = [&["content"], &["contents", "inline"], &["block"], &["line"]];
    let text = |key: &str| node.get(key).and_then(Node::text);
    let own = text("path").or_else(|| text("dest"))?;
    let kind = FileKind::by_name(own).filter(|kind| *kind != FileKind::Cmdline)?;
    let content = CONTENTS.iter().find_map(|keys| node.at(keys))?;
    if text("state") == Some("absent") || text("encoding").is_some_and(|encoding| encoding != "text/plain") {
        return None;
    }
    let worked_out = |line: &str| line.contains("{{") || line.contains("{%") || line.contains("${");
    let lines = content
        .text()?
        .lines()
        .map(|line| if worked_out(line) { "" } else { line });
    let lines: Vec<&str> = lines.collect();
    Some(Written {
        path: format!("{path}:{own}"),
        kind,
        text: in_place(content, &lines.join("\n")),
        lines: content.line..content.line + lines.len().max(1),
    })
}

/// Lines around one within which a tool has what belongs to it.
const NEAR: usize = 6;

/// The lines of the item of a list, or of the block, that a line is in.
fn around<'l, 'a>(lines: &'l [Line<'a>], at: usize) -> &'l [Line<'a>] {
    let begins = |line: &Line<'_>| line.text.starts_with("- ") && keyed(line.text, "value").is_none();
    let ends = |line: &&Line<'_>| {
        begins(line) || line.text.starts_with('}') || line.text == "end" || sysctl_name(line.text).is_some()
    };
    let before = lines[..at]
        .iter()
        .rev()
        .take(NEAR)
        .take_while(|line| !ends(line))
        .count();
    let before = if begins(&lines[at]) { 0 } else { before };
    let behind = lines[at + 1..].iter().take(NEAR).take_while(|line| !ends(line)).count();
    &lines[at - before..=at + behind]
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Settings of the kernel by their names, each with the value behind it or beside it.
fn sysctl(lines: &[Line<'_>]) -> Vec<Setting> {
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut rest = line.text;
        while let Some((name, behind)) = sysctl_name(rest) {
            rest = behind;
            let item = around(lines, at);
            let is_gone = |line: &Line<'_>| {
                ["state", "ensure"]
                    .iter()
                    .any(|key| keyed(line.text, key) == Some("absent"))
            };
            let beside = || item.iter().find_map(|line| Some((line, keyed(line.text, "value")?)));
            let value = assigned(behind).map(|value| (line, value)).or_else(beside);
            if let Some((line, value)) = value.filter(|_| !item.iter().any(is_gone)) {
                all.push(line.setting(name, value));
            }
        }
    }
    all
}

/// The first name of a setting in a text, and what is behind it.
fn sysctl_name(text: &str) -> Option<(&str, &str)> {
    let mut starts: Vec<usize> = ["vm.", "kernel."]
        .iter()
        .flat_map(|first| text.match_indices(first))
        .map(|(at, _)| at)
        .collect();
    starts.sort_unstable();
    starts.into_iter().find_map(|at| {
        let is_begin = !text[..at].ends_with(|c: char| is_part(c) || matches!(c, '.' | '$' | '/' | '-'));
        let rest = &text[at..];
        let end = rest.find(|c: char| !is_part(c) && c != '.').unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('.');
        let is_setting = name.contains('_') || name.starts_with("kernel.shm") || name == "vm.swappiness";
        (is_begin && is_setting).then(|| (name, &rest[name.len()..]))
    })
}

/// The value that a name has in front of it: `=8`, `: "8"`, `' => 8`, `', value: 8`.
fn assigned(behind: &str) -> Option<&str> {
    let rest = behind.trim_start_matches(['\'', '"', ']']).trim_start();
    let direct = || {
        ["=>", "=", ":"]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign))
            .and_then(value)
    };
    match rest.contains("value") {
        true => keyed(rest, "value"),
        false => direct(),
    }
}

/// The value of a key, as YAML, HCL, Puppet and Chef write it.
fn keyed<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.match_indices(key).find_map(|(at, _)| {
        let rest = &text[at + key.len()..];
        let is_word = !text[..at].ends_with(is_part) && !rest.starts_with(is_part);
        let rest = rest.trim_start_matches(['\'', '"']).trim_start();
        let rest = ["=>", "=", ":"]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign))
            .unwrap_or(rest);
        value(rest).filter(|_| is_word)
    })
}

/// A value that is written out; what a tool works out is `None`.
fn value(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (is_quoted, text) = text
        .strip_prefix(['\'', '"'])
        .map_or((false, text), |text| (true, text));
    let end = text
        .find(|c: char| !is_part(c) && !matches!(c, '.' | '+' | '-'))
        .unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    let is_closed = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || "'\",;})|&\\/".contains(c));
    let is_written = is_quoted || value.starts_with(|c: char| c.is_ascii_digit() || c == '-') || !value.contains('.');
    (!value.is_empty() && is_closed && is_written).then_some(value)
}

/// `echo never > /sys/...`, also by `tee`; each command of a line.
fn writes(line: &Line<'_>) -> Vec<Setting> {
    let commands = line.text.split("&&").flat_map(|text| text.split(';'));
    let written = commands.filter_map(|command| {
        let (_, rest) = command.split_once("echo ")?;
        let at = ["/sys/kernel/mm/", "/proc/sys/"]
            .iter()
            .find_map(|below| rest.find(below))?;
        let (said, file) = rest.split_at(at);
        let (words, _) = said.split_once(['>', '|'])?;
        let value = words
            .trim()
            .trim_start_matches("-n ")
            .trim()
            .trim_matches(['"', '\'', '\\']);
        let end = file
            .find(|c: char| c.is_whitespace() || "'\"),|\\".contains(c))
            .unwrap_or(file.len());
        let is_written =
            !value.is_empty() && !value.contains(['$', '`', '{']) && !file[..end].contains(['$', '{', '*']);
        is_written.then(|| line.setting(&file[..end], value))
    });
    written.collect()
}

/// Parameters of the kernel's command line that ask for pages; those of lines that follow each other are one line.
fn boot(lines: &[Line<'_>]) -> Vec<crate::config::BootLine> {
    let words = |line: &Line<'_>| -> Vec<String> {
        let words = line
            .text
            .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '[' | ']'));
        words
            .map(|word| word.trim_matches([',', '+', '\\']))
            .filter(|word| is_parameter(word))
            .map(str::to_owned)
            .collect()
    };
    let each: Vec<(&Line<'_>, Vec<String>)> = lines.iter().map(|line| (line, words(line))).collect();
    let runs = each.chunk_by(|(_, one), (_, next)| one.is_empty() == next.is_empty());
    let runs = runs.filter(|run| !run[0].1.is_empty());
    runs.map(|run| {
        let words: Vec<&str> = run.iter().flat_map(|(_, words)| words).map(String::as_str).collect();
        boot_line(run[0].0.place(), &words.join(" "))
    })
    .collect()
}

fn is_parameter(word: &str) -> bool {
    const SIZED: [&str; 6] = [
        "hugepages",
        "hugepagesz",
        "default_hugepagesz",
        "hugepagesize",
        "default_hugepages",
        "hugetlb_cma",
    ];
    let Some((name, value)) = word.split_once('=') else {
        return false;
    };
    let is_policy = matches!(name, "transparent_hugepage" | "transparent_hugepages");
    (SIZED.contains(&name) && value.starts_with(|c: char| c.is_ascii_digit()))
        || (is_policy && !value.is_empty() && value.chars().all(|c| c.is_ascii_alphabetic()))
}

/// A line of limits.conf within a line, or the keys of Ansible's pam_limits.
fn limit(lines: &[Line<'_>], at: usize) -> Option<LimitLine> {
    let line = &lines[at];
    if keyed(line.text, "limit_item") == Some("memlock") {
        let item = around(lines, at);
        let of = |key: &str| item.iter().find_map(|line| keyed(line.text, key)).map(str::to_owned);
        // `*` and `@group` are no words.
        let domain = item.iter().find_map(|line| {
            let (_, rest) = line.text.split_once("domain")?;
            let rest = rest.trim_start_matches([':', '=', ' ', '\'', '"']);
            rest.split(['\'', '"', ' ']).next().filter(|word| !word.is_empty())
        });
        return Some(LimitLine {
            place: line.place(),
            domain: domain?.to_owned(),
            kind: of("limit_type").unwrap_or_else(|| "-".to_owned()),
            item: "memlock".to_owned(),
            value: of("value")?,
        });
    }
    let words: Vec<&str> = line
        .text
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"', ',', ';']))
        .collect();
    let found = words
        .windows(4)
        .find(|words| matches!(words[1], "soft" | "hard" | "-") && words[2] == "memlock")?;
    let found = LimitLine {
        place: line.place(),
        domain: found[0].to_owned(),
        kind: found[1].to_owned(),
        item: found[2].to_owned(),
        value: found[3].trim_end_matches("\\n").to_owned(),
    };
    Some(found).filter(limits::is_known)
}
