//! A Java command line, or a file of options for one.

use model::{Cause, Unread};

use super::garbled::empty;
use super::kind::is_java;
use super::shell;
use crate::Jvm;
use host::{CpuList, Snapshot, Source, Tree};

/// The options of a Java virtual machine to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Java {
    pub path: String,
    /// Its words, the program first.
    pub arguments: Vec<String>,
    /// What they mean for pages.
    pub jvm: Jvm,
    /// The nodes that its memory has to be on, where what starts it says so.
    pub nodes: Option<CpuList>,
}

impl Java {
    /// Options with which it does not start.
    pub(super) fn refused(&self) -> Vec<Unread> {
        let refused = self.jvm.refused.iter().map(|option| {
            let why = format!(
                "the JVM does not start with `{option}`: it knows no such option, or takes sizes such as 512m and 4g"
            );
            Unread::new(Cause::Garbled, &self.path, why)
        });
        refused.collect()
    }

    /// The first argument that begins so, as written.
    pub fn argument(&self, prefix: &str) -> Option<&str> {
        self.arguments
            .iter()
            .map(String::as_str)
            .find(|argument| argument.starts_with(prefix))
    }
}

pub(super) fn parse(path: &str, text: &str) -> Result<Java, Unread> {
    let arguments = if shell::starts(text, is_java) {
        shell::words(path, text, is_java)?
    } else {
        options(text)
    };
    of_words(path, arguments).ok_or_else(|| empty(path, "no option for a Java virtual machine is in it"))
}

/// A JVM that is started with these words; `None` without an option.
pub(super) fn of_words(path: &str, arguments: Vec<String>) -> Option<Java> {
    Some(Java {
        path: path.to_owned(),
        jvm: jvm(&arguments)?,
        arguments,
        nodes: None,
    })
}

/// `jvm.options` of Elasticsearch, Kafka and others: an option on each line, after `VERSIONS:` if it is not for all. One for versions up to 13 is left
/// out where the file has options for later ones: a JVM gets one of both.
fn options(text: &str) -> Vec<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let newest = lines().filter_map(|line| Some(versions(line)?.0.0)).max().unwrap_or(0);
    let words = lines().flat_map(|line| match versions(line) {
        Some(((_, Some(last)), _)) if last < newest => Vec::new(),
        Some((_, option)) => vec![option.to_owned()],
        None => line.split_whitespace().map(str::to_owned).collect(),
    });
    std::iter::once("java".to_owned()).chain(words).collect()
}

/// `8-13:-XX:...`, `14-:-XX:...` (without an end), `8:-XX:...`: the first and the last version, and the option.
fn versions(line: &str) -> Option<((u32, Option<u32>), &str)> {
    let at = line.find(":-")?;
    let (range, option) = (&line[..at], &line[at + 1..]);
    let (first, last) = match range.split_once('-') {
        Some((first, "")) => (first, None),
        Some((first, last)) => (first, Some(last)),
        None => (range, Some(range)),
    };
    let last = last.map(str::parse).transpose().ok()?;
    Some(((first.parse().ok()?, last), option))
}

/// As a process of that command line would be read: one reader of options, live and here.
fn jvm(arguments: &[String]) -> Option<Jvm> {
    let command: String = arguments.iter().skip(1).map(|word| format!("{word}\0")).collect();
    let tree = Tree::new()
        .file("/proc/2/status", "Name:\tjava\nPPid:\t1\nVmRSS:\t1 kB\n")
        .file("/proc/2/cmdline", format!("java\0{command}"))
        .file("/proc/2/environ", "");
    let source = Source::from_tree("a command line", tree);
    let found = crate::programs(&source, &Snapshot::take(&source));
    found.known()?.first()?.jvm().ok().flatten().cloned()
}
