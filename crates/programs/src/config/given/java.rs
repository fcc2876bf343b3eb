//! A Java command line, or a file of options for one.

use model::{Cause, Unread};

use super::garbled::empty;
use super::kind::is_java;
use super::shell;
use crate::jvm::{self, Jvm};
use host::{CpuList, Snapshot, Source, Tree};

/// The options of a Java virtual machine to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Java {
    pub path: String,
    /// The program and its own options, without what is handed to the application.
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

    /// The option that begins so and holds, as written; `-XX:MaxHeapSize=` is another form of `-Xmx`.
    pub fn argument(&self, prefix: &str) -> Option<&str> {
        let other = if prefix == "-Xmx" { "-XX:MaxHeapSize=" } else { prefix };
        let mut arguments = self.arguments.iter().map(String::as_str);
        arguments.rfind(|argument| argument.starts_with(prefix) || argument.starts_with(other))
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
pub(super) fn of_words(path: &str, mut arguments: Vec<String>) -> Option<Java> {
    let jvm = jvm(&arguments)?;
    arguments.truncate(1 + jvm::options(&arguments).count());
    Some(Java {
        path: path.to_owned(),
        jvm,
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
        None => in_line(line),
    });
    std::iter::once("java".to_owned()).chain(words).collect()
}

/// The options of a line, up to a comment. One with a value may have blanks in it; a line that begins with something else has none.
fn in_line(line: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for word in line.split(" #").next().unwrap_or(line).split_whitespace() {
        let mut start = word.chars();
        let first = start.next();
        let is_dash = first == Some('-') && start.next().is_some_and(|c| c == '-' || c.is_ascii_alphabetic());
        let (begins, is_first) = (is_dash || first == Some('@'), options.is_empty());
        match options.last_mut().filter(|option| !begins && option.contains('=')) {
            Some(option) => *option += &format!(" {word}"),
            None if !begins && is_first => break,
            None => options.push(word.to_owned()),
        }
    }
    options
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

#[cfg(test)]
mod tests {
    use super::parse;
    use model::Bytes;

    #[test]
    fn a_line_of_a_file_may_be_one_option_with_blanks() {
        for text in [
            "-Xmx6g\n-XX:OnOutOfMemoryError=kill -9 %p\n-XX:+UseLargePages\n",
            "-Dapp.title=My App\n-Xmx6g -XX:+UseLargePages\n",
            "--add-exports java.base/a=ALL-UNNAMED\n-XX:+UseLargePages # pool\n-Xmx6g\n",
        ] {
            let jvm = parse("jvm.options", text).expect("options").jvm;
            let read = (jvm.large_pages, jvm.heap_max, &jvm.refused[..]);
            assert_eq!(read, (true, Some(Bytes::gib(6)), &[][..]), "{text}");
        }
    }

    #[test]
    fn the_heap_that_holds_is_shown() {
        for (text, heap) in [
            ("java -Xmx4g -Xmx8g -jar a.jar -Xmx1g", "-Xmx8g"),
            ("java -Xmx4g -XX:MaxHeapSize=8g A", "-XX:MaxHeapSize=8g"),
        ] {
            let java = parse("a.sh", text).expect("options");
            assert_eq!(java.argument("-Xmx"), Some(heap), "{text}");
        }
    }
}
