//! Files of tools that set machines up: Ansible, Salt, cloud-init and Butane by their YAML; Puppet, Chef, Terraform, kickstart, Vagrant, cron and udev by
//! their lines. What such a tool works out, or does under a condition, is not known, and is listed.

mod lines;

use super::FileKind;
use super::node::{Setup, boot_line, in_place};
use super::yaml::{self, Node};
use crate::config::{LimitLine, Setting};

/// Has it a line that only such a file has?
pub(super) fn is_tool(text: &str) -> bool {
    const BEGIN: [&str; 15] = [
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
        "parameter_defaults:",
    ];
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| BEGIN.iter().any(|begin| line.starts_with(begin)))
}

/// Is anything about pages in it?
pub(super) fn is_about_pages(text: &str) -> bool {
    !is_empty(&parse("", text))
}

/// Is nothing about pages in it?
pub(super) fn is_empty(read: &Setup) -> bool {
    let is_about = |(_, text): &(usize, String)| !super::script::read("", text).is_empty();
    read.sysctl.is_empty()
        && read.boot.is_empty()
        && read.limits.is_empty()
        && read.files.is_empty()
        && read.unresolved.is_empty()
        && !read.scripts.iter().any(is_about)
}

pub(super) fn parse(path: &str, text: &str) -> Setup {
    let mut reader = Reader {
        path,
        ..Reader::default()
    };
    let documents = yaml::documents(path, text).unwrap_or_default();
    // `sysctl { 'NAME': value => 8 }` of Puppet is YAML as well, with braces in a key.
    let is_key = |(key, _): &(String, Node)| !key.contains(['{', '"', '\'']);
    let is_yaml =
        |node: &Node| !node.items().is_empty() || (!node.entries().is_empty() && node.entries().iter().all(is_key));
    match documents.iter().any(is_yaml) {
        true => {
            // Plays for several groups of machines are not for one.
            let plays = || {
                documents
                    .iter()
                    .flat_map(Node::items)
                    .filter_map(|play| play.get("hosts")?.text())
            };
            let first = plays().next();
            let is_sure = plays().all(|hosts| first == Some(hosts));
            documents.iter().for_each(|node| reader.node(node, is_sure));
        }
        false => reader.lines(text),
    }
    reader.read
}

#[derive(Default)]
struct Reader<'a> {
    path: &'a str,
    read: Setup,
    /// Texts of cloud-init within the file.
    inner: usize,
}

impl Reader<'_> {
    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    /// What only a run shows.
    fn only_run(&mut self, line: usize, what: &str) {
        let place = self.place(line);
        self.read
            .unresolved
            .push(format!("{place}: {what}: only a run shows it"));
    }

    /// A setting, if it is sure and written out.
    fn set(&mut self, line: usize, name: &str, value: &str, is_sure: bool) {
        match is_sure && !is_template(value) {
            true => self.read.sysctl.push(Setting::new(self.place(line), name, value)),
            false => self.only_run(line, &format!("{name} = {value}")),
        }
    }

    /// Commands; those under a condition are listed where they are about pages.
    fn shell(&mut self, line: usize, text: &str, is_sure: bool) {
        if !text.contains("huge") && !text.contains("vm.") && !text.contains("kernel.shm") {
            return;
        }
        if is_sure && !is_template(text) {
            self.read.scripts.push((line.saturating_sub(1), text.to_owned()));
        } else {
            self.only_run(line, "a command about huge pages");
        }
    }

    fn node(&mut self, node: &Node, is_sure: bool) {
        let is_gone = ["state", "ensure"]
            .iter()
            .any(|key| node.text_of(key) == Some("absent"));
        let is_sure = is_sure && node.get("when").is_none();
        if is_gone || self.file(node, is_sure) {
            return;
        }
        self.limit(node);
        let name = ["name", "key", "sysctl_name"].iter().find_map(|key| node.text_of(key));
        if let Some(name) = name.filter(|name| is_sysctl(name))
            && let Some(value) = node.get("value")
        {
            self.set(value.line, name, value.text().unwrap_or_default(), is_sure);
        }
        for (key, below) in node.entries() {
            self.entry(key, below, is_sure);
        }
        node.items().iter().for_each(|item| self.node(item, is_sure));
    }

    /// What a key of a map is for.
    fn entry(&mut self, key: &str, below: &Node, is_sure: bool) {
        let own = key.rsplit('.').next().unwrap_or(key);
        match (own, below.text()) {
            // What is said, and what is asked.
            ("debug" | "fail" | "assert" | "msg" | "failed_when" | "changed_when" | "until" | "that", _) => {}
            (_, Some(value)) if is_sysctl(key) => self.set(below.line, key, value, is_sure),
            ("shell" | "command" | "raw" | "cmd", Some(text)) => self.shell(below.line, text, is_sure),
            ("sysctl", Some(text)) => self.inline(below.line, text, is_sure),
            ("runcmd" | "bootcmd", None) => {
                for item in below.items() {
                    let words: Vec<&str> = item.items().iter().filter_map(Node::text).collect();
                    let joined = shlex::try_join(words).unwrap_or_default();
                    self.shell(item.line, item.text().unwrap_or(&joined), is_sure);
                }
            }
            // Of TripleO, which deploys OpenStack.
            ("KernelArgs", Some(_)) if !self.read.boot.is_empty() => {
                let place = self.place(below.line);
                self.read.unresolved.push(format!(
                    "{place}: KernelArgs of one more role are for other machines, and are not judged"
                ));
            }
            ("KernelArgs", Some(text)) => self.read.boot.push(boot_line(self.place(below.line), text)),
            ("should_exist", None) => {
                let words: Vec<&str> = below.items().iter().filter_map(Node::text).collect();
                self.read.boot.push(boot_line(self.place(below.line), &words.join(" ")));
            }
            _ if is_sysctl(key) => self.of_salt(key, below, is_sure),
            _ => self.node(below, is_sure),
        }
    }

    /// `sysctl: name=vm.nr_hugepages value=8 state=present`
    fn inline(&mut self, line: usize, text: &str, is_sure: bool) {
        let of = |key: &str| {
            text.split_whitespace()
                .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        if let (Some(name), Some(value)) = (of("name").filter(|name| is_sysctl(name)), of("value"))
            && of("state") != Some("absent")
        {
            self.set(line, name, value, is_sure);
        }
    }

    /// `vm.nr_hugepages: {sysctl.present: [{value: 8}]}`
    fn of_salt(&mut self, name: &str, below: &Node, is_sure: bool) {
        let states = below.entries().iter().filter(|(state, _)| state == "sysctl.present");
        for value in states
            .flat_map(|(_, list)| list.items())
            .filter_map(|item| item.get("value"))
        {
            if let Some(text) = value.text() {
                self.set(value.line, name, text, is_sure);
            }
        }
    }

    /// cloud-init's and Butane's files, and those that Ansible copies or changes. Was it one?
    fn file(&mut self, node: &Node, is_sure: bool) -> bool {
        const CONTENTS: [&[&str]; 4] = [&["content"], &["contents", "inline"], &["block"], &["line"]];
        let Some(own) = node.text_of("path").or_else(|| node.text_of("dest")) else {
            return false;
        };
        let Some(content) = CONTENTS.iter().find_map(|keys| node.at(keys)) else {
            return false;
        };
        let text = content.text().unwrap_or_default();
        let kind = FileKind::by_name(own);
        if kind.is_none()
            || node
                .text_of("encoding")
                .is_some_and(|encoding| encoding != "text/plain")
        {
            return true;
        }
        let lines: Vec<&str> = text.lines().collect();
        let is_known = |line: &&str| is_sure && !is_template(line) && !line.contains("\\1");
        for (at, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !is_known(line) && line.contains("huge"))
        {
            self.only_run(content.line + at, line.trim());
        }
        let known: Vec<&str> = lines
            .iter()
            .map(|line| if is_known(line) { line } else { "" })
            .collect();
        let is_grub = kind == Some(FileKind::Cmdline) && !known.iter().any(|line| line.contains("GRUB_CMDLINE"));
        if let Some(kind) = kind.filter(|_| !is_grub && known.iter().any(|line| !line.trim().is_empty())) {
            let text = in_place(content, &known.join("\n"));
            self.read.files.push((format!("{}:{own}", self.path), kind, text));
        }
        true
    }

    /// The keys of Ansible's pam_limits.
    fn limit(&mut self, node: &Node) {
        let of = |key: &str| node.text_of(key).filter(|text| !is_template(text)).map(str::to_owned);
        let (Some("memlock"), Some(domain), Some(value)) = (node.text_of("limit_item"), of("domain"), of("value"))
        else {
            return;
        };
        self.read.limits.push(LimitLine {
            place: self.place(node.line),
            domain,
            kind: of("limit_type").unwrap_or_else(|| "-".to_owned()),
            item: "memlock".to_owned(),
            value,
        });
    }
}

/// A name of a setting alone.
fn is_sysctl(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.');
    ["vm.", "kernel."].iter().any(|first| text.starts_with(first)) && text.chars().all(is_part)
}

/// Is a part of it what a tool or a shell fills in?
pub(crate) fn is_template(text: &str) -> bool {
    ["{{", "{%", "${", "<%", "#{"].iter().any(|mark| text.contains(mark)) || text.trim_start().starts_with(['$', '@'])
}
