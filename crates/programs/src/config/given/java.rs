//! A Java command line, or a file of options for one.

use model::{Cause, Unread};

use super::garbled::empty;
use super::kind::is_java;
use super::shell;
use crate::config::Setting;
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
    /// What decides the size of the heap where no option does.
    pub(super) heap_by: Option<Setting>,
    /// Lines and variables with its options, where these are not all at `path`.
    pub(super) written: Vec<Setting>,
}

impl Java {
    /// Options with which it does not start.
    pub(super) fn refused(&self) -> Vec<Unread> {
        let refused = self.jvm.refused.iter().map(|option| {
            let why = format!("the JVM does not start with `{option}`: {}", why_refused(option));
            Unread::new(Cause::Garbled, self.place_of(option), why)
        });
        refused.collect()
    }

    /// What sets the heap, with its line.
    pub fn heap(&self) -> Setting {
        if let Some(by) = &self.heap_by {
            return by.clone();
        }
        let option = self.argument("-Xmx").unwrap_or("no -Xmx");
        Setting::new(self.place_of(option), "heap", option)
    }

    /// The line of an option; its value may be left out.
    pub fn place_of(&self, option: &str) -> &str {
        let is_there = |set: &&Setting| holds(&set.value, option);
        self.written.iter().rfind(is_there).map_or(&self.path, |set| &set.place)
    }

    /// The option that begins so and holds, as written; `-XX:MaxHeapSize=` is another form of `-Xmx`.
    pub fn argument(&self, prefix: &str) -> Option<&str> {
        let other = if prefix == "-Xmx" { "-XX:MaxHeapSize=" } else { prefix };
        let mut arguments = self.arguments.iter().map(String::as_str);
        arguments.rfind(|argument| argument.starts_with(prefix) || argument.starts_with(other))
    }
}

pub(super) fn parse(path: &str, text: &str) -> Result<Java, Unread> {
    let (arguments, written) = if shell::starts(text, is_java) {
        (shell::words(path, text, is_java)?, Vec::new())
    } else {
        // The launcher alone has files with comments behind words (`@FILE`).
        (options(text, !path.ends_with("options")), lines(path, text))
    };
    let java = of_words(path, arguments).map(|java| Java { written, ..java });
    java.ok_or_else(|| empty(path, "no option for a Java virtual machine is in it"))
}

/// Those that are no comments, with single blanks as options have.
fn lines(path: &str, text: &str) -> Vec<Setting> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.starts_with('#'));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    lines
        .map(|(nth, line)| Setting::new(format!("{path}:{nth}"), "", words(line)))
        .collect()
}

/// Is the word in a text, or the first part of one up to a sign?
pub(super) fn holds(text: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = text.match_indices(word);
    found.any(|(at, _)| !text[at + word.len()..].starts_with(goes_on))
}

fn why_refused(option: &str) -> &'static str {
    match option {
        _ if jvm::has_comment(option) => {
            "a comment behind an option is a part of it, and has to be on a line of its own"
        }
        _ if jvm::is_of_launcher(option) => {
            "in JAVA_TOOL_OPTIONS and _JAVA_OPTIONS it knows no option of its launcher, and none whose value is the next word (write --add-opens=...)"
        }
        "-Xmx" => "no size follows, as where a variable is empty that nothing sets",
        _ => "it knows no such option, or takes sizes such as 512m and 4g",
    }
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
        heap_by: None,
        written: Vec::new(),
    })
}

/// `jvm.options` of Elasticsearch, Kafka and others: an option on each line, after `VERSIONS:` if it is not for all. One for versions up to 13 is left
/// out where the file has options for later ones: a JVM gets one of both.
fn options(text: &str, has_comments: bool) -> Vec<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let newest = lines().filter_map(|line| Some(versions(line)?.0.0)).max().unwrap_or(0);
    let words = lines().flat_map(|line| match versions(line) {
        Some(((_, Some(last)), _)) if last < newest => Vec::new(),
        Some((_, option)) => vec![option.to_owned()],
        None => in_line(line, has_comments),
    });
    std::iter::once("java".to_owned()).chain(words).collect()
}

/// The options of a line, up to a comment, or with it in the last one. One with a value may have blanks in it; a line that begins with something
/// else has none.
fn in_line(line: &str, has_comments: bool) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let (own, comment) = line
        .split_once(" #")
        .map_or((line, None), |(own, comment)| (own, Some(comment)));
    for word in own.split_whitespace() {
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
    if let (Some(comment), Some(last), false) = (comment, options.last_mut(), has_comments) {
        *last += &format!(" #{comment}");
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
            "--add-exports java.base/a=ALL-UNNAMED\n-XX:+UseLargePages\n-Xmx6g\n",
            "-Dapp.title=A # B\n--add-opens=java.base/a=ALL # C\n-XX:+UseLargePages\n-Xmx6g\n",
        ] {
            let jvm = parse("jvm.options", text).expect("options").jvm;
            let read = (jvm.large_pages, jvm.heap_max, &jvm.refused[..]);
            assert_eq!(read, (true, Some(Bytes::gib(6)), &[][..]), "{text}");
        }
    }

    #[test]
    fn a_comment_behind_an_option_is_a_part_of_it_but_in_a_file_of_the_launcher() {
        let text = "-Xmx6g # heap\n-XX:+UseLargePages # pool\n17-:-XX:+AlwaysPreTouch # pages\n-ea # checks\n";
        for (path, refused) in [
            ("jvm.options", 4),
            ("a/jvm.options.d/x.options", 4),
            ("a.vmoptions", 4),
            ("arguments", 1),
        ] {
            let java = parse(path, text).expect("options");
            assert_eq!(java.jvm.refused.len(), refused, "{path}: {:?}", java.jvm.refused);
            assert!(
                java.refused()[0].why.contains("a line of its own"),
                "{:?}",
                java.refused()
            );
        }
    }

    #[test]
    fn an_option_is_at_its_last_line() {
        let text =
            "-Xmx2g\n-XX:+UseLargePages\n# -XX:+UseLargePages # pool\n  -XX:+UseLargePages   # pool\n-Xmx6g -Xmx\n";
        let java = parse("jvm.options", text).expect("options");
        let refused = java.refused();
        let places: Vec<&str> = refused.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["jvm.options:4", "jvm.options:5"], "{refused:?}");
        assert_eq!(java.place_of("-Xmx6g"), "jvm.options:5");
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
