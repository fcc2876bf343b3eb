//! What a program itself wrote about huge pages: lines of the files that its output goes to.

use model::{Bytes, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, Program, messages};
use host::Source;
use host::source::End;

/// Of a longer log only the end is read: all of it would take seconds.
const LONGEST: Bytes = Bytes::mib(16);
/// The last lines are the news.
const MOST: usize = 4;
/// Of the files that it has open so many are looked at for logs, and so many logs are read.
const OPEN: usize = 4096;
const MOST_LOGS: usize = 4;
/// What programs write where they use, want or miss huge pages, in lower case.
const WORDS: [&str; 9] = [
    // ZGC with too small a pool: "Forced to lower max Java heap size from 2048M(100%) to 832M(41%)".
    "forced to lower max java heap",
    "huge page",
    "hugepage",
    "hugetlb",
    "large page",
    "largepages",
    "conventional memory pool",
    "failed to reserve and commit memory",
    "transparent huge",
];

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// The file with the number of the line, as the program sees it.
    pub place: String,
    /// The line.
    pub text: String,
    /// What it means, where that is known.
    #[serde(default)]
    pub means: Option<String>,
}

/// What logs say about huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// The last such lines of each.
    pub lines: Vec<LogLine>,
    /// Those of which only the end was read.
    pub cut: Vec<CutLog>,
}

/// A log of which only the end was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutLog {
    /// The file, as the program sees it.
    pub file: String,
    /// How much of its end was read.
    pub read: Bytes,
    /// How long it is.
    pub size: Bytes,
}

/// The last lines about huge pages in a program's standard output, its standard error, the logs that it has open and the log of a
/// PostgreSQL server.
pub(super) fn lines(source: &Source, program: &Program, kind: Option<Kind>, directory: Option<&str>) -> Logs {
    let mut files: Vec<String> = ["fd/1", "fd/2"]
        .iter()
        .filter_map(|fd| source.link(&program.file(fd)).known().cloned())
        .collect();
    files.extend(open(source, program));
    if let (Some(Kind::Postgres), Some(directory)) = (kind, directory) {
        files.extend(collected(source, program, directory));
    }
    files.retain(|path| path.starts_with('/') && !path.starts_with("/dev/") && !path.ends_with(" (deleted)"));
    files.sort();
    files.dedup();
    let mut logs = Logs::default();
    for path in &files {
        if let Reading::Known(end) = source.end(&program.file(&format!("root{path}")), LONGEST) {
            logs.add(path, &end, program.pid());
        }
    }
    logs
}

/// Its open files that are logs by their names, as of a JVM with -Xlog:file= or of xmrig.
fn open(source: &Source, program: &Program) -> Vec<String> {
    let all = source.list(&program.file("fd"));
    let all = all.known().into_iter().flatten().take(OPEN);
    let paths = all.filter_map(|fd| source.link(&program.file(&format!("fd/{fd}"))).known().cloned());
    paths.filter(|path| path.ends_with(".log")).take(MOST_LOGS).collect()
}

/// The files that PostgreSQL's own collector writes to, which `current_logfiles` names relative to the data directory.
fn collected(source: &Source, program: &Program, directory: &str) -> Vec<String> {
    let list = source.text(&program.file(&format!("root{directory}/current_logfiles")));
    let names = list.known().map_or("", String::as_str).lines();
    let path = |name: &str| match name.starts_with('/') {
        true => name.to_owned(),
        false => format!("{directory}/{name}"),
    };
    names.filter_map(|line| Some(path(line.split_once(' ')?.1))).collect()
}

impl Logs {
    /// The lines of a log's end, without those in front of the first that names the process: they are of earlier starts. Where something is in front of it, its first line is not whole, and no line has a number.
    fn add(&mut self, path: &str, end: &End, pid: u32) {
        let text = String::from_utf8_lossy(&end.bytes);
        let is_cut = end.before > 0;
        let is_about = |line: &str| {
            let small = line.to_ascii_lowercase();
            WORDS.iter().any(|word| small.contains(word)) || messages::is_log(line)
        };
        let lines = (1..).zip(text.lines()).skip(usize::from(is_cut));
        let own = lines.clone().position(|(_, line)| names(line, pid)).unwrap_or(0);
        let lines = lines.skip(own);
        let lines: Vec<LogLine> = lines
            .filter(|(_, line)| is_about(line))
            .map(|(number, line)| LogLine {
                place: if is_cut {
                    path.to_owned()
                } else {
                    format!("{path}:{number}")
                },
                text: line.trim().chars().take(400).collect(),
                means: messages::meaning(line),
            })
            .collect();
        self.lines.extend_from_slice(&lines[lines.len().saturating_sub(MOST)..]);
        let read = end.bytes.len() as u64;
        self.cut.extend(is_cut.then(|| CutLog {
            file: path.to_owned(),
            read: Bytes(read),
            size: Bytes(end.before + read),
        }));
    }
}

/// Does a line name the process that wrote it by its number, as databases do: `[4711] LOG:`, `starting as process 4711 ...`?
fn names(line: &str, pid: u32) -> bool {
    let number = pid.to_string();
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    ["[", "process "].iter().any(|before| {
        let rest = line.split(before).skip(1);
        rest.filter_map(|rest| rest.strip_prefix(&number))
            .any(|rest| match *before {
                "[" => rest.starts_with(']'),
                _ => is_whole(rest),
            })
    })
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::{End, Logs};
    use crate::targets;
    use host::{Snapshot, Source, Tree};

    fn logs(text: &str, before: u64) -> Logs {
        let mut logs = Logs::default();
        let bytes = text.as_bytes().to_vec();
        logs.add("/var/log/app.log", &End { bytes, before }, 5);
        logs
    }

    fn texts(logs: &Logs) -> Vec<(&str, &str)> {
        let lines = logs.lines.iter();
        lines.map(|line| (line.place.as_str(), line.text.as_str())).collect()
    }

    #[test]
    fn the_last_lines_about_huge_pages_have_their_numbers() {
        let all = "ready\nHuge Pages: 1\nhugetlb 2\nx\nlarge page 3\n transparent huge 4\nhugepage 5\n";
        let found = logs(all, 0);
        let expected = [
            ("/var/log/app.log:3", "hugetlb 2"),
            ("/var/log/app.log:5", "large page 3"),
            ("/var/log/app.log:6", "transparent huge 4"),
            ("/var/log/app.log:7", "hugepage 5"),
        ];
        assert_eq!(texts(&found), expected);
        assert_eq!(found.cut, []);
        assert_eq!(logs("ready\n\u{fffd}", 0), Logs::default());
        let long = format!("hugetlb {}", "x".repeat(1000));
        assert_eq!(logs(&long, 0).lines[0].text.len(), 400);
    }

    #[test]
    fn lines_of_earlier_starts_are_no_news() {
        let failed = "2026 UTC [55] FATAL:  could not map anonymous shared memory: huge pages\n";
        let started = "2026 UTC [5] LOG:  starting PostgreSQL 15.18\n";
        let later = "2026 UTC [9] LOG:  huge pages, later\n";
        let found = logs(&format!("{failed}{started}{later}"), 0);
        assert_eq!(texts(&found), [("/var/log/app.log:3", later.trim())]);
        assert_eq!(logs(failed, 0).lines.len(), 1, "whose it is does not show");
        let mariadb = "huge pages\nStarting MariaDB 10.11.19 as process 55\nx\n2026 0 [Note] starting as process 5 ...\nhugetlb\n";
        assert_eq!(texts(&logs(mariadb, 0)), [("/var/log/app.log:5", "hugetlb")]);
    }

    #[test]
    fn the_end_of_a_long_log_has_no_numbers_and_says_how_long_it_is() {
        let found = logs("half a line of hugetlb\nhugetlb whole\n", 100);
        assert_eq!(texts(&found), [("/var/log/app.log", "hugetlb whole")]);
        let cut = &found.cut[0];
        assert_eq!((cut.read, cut.size), (Bytes(37), Bytes(137)));
        assert_eq!(
            logs("nothing about pages", 1).cut.len(),
            1,
            "said although nothing was found"
        );
    }

    #[test]
    fn a_log_that_a_program_has_open_is_read_whatever_its_number() {
        let line = " randomx  allocated 2336 MB (2080+256) huge pages 0% 0/1168 +JIT (3 ms)";
        let tree = Tree::new()
            .file("/proc/5/status", "Name:\txmrig\nPPid:\t1\nVmRSS:\t9000 kB\n")
            .file("/proc/5/cmdline", "xmrig\0--log-file=/srv/miner.log\0")
            .link("/proc/5/fd/1", "/dev/null")
            .link("/proc/5/fd/17", "/srv/miner.log")
            .file("/proc/5/root/srv/miner.log", format!("ready\n{line}\n"));
        let source = Source::from_tree("test", tree);
        let targets = targets(&source, &Snapshot::take(&source), "5").expect("the program");
        assert_eq!(texts(&targets[0].log), [("/srv/miner.log:2", line.trim())]);
    }

    /// The log that a server's own collector writes, which its directory names.
    #[test]
    fn the_log_of_a_captured_server_is_read_from_its_end() {
        let long = format!(
            "{}\ncould not map anonymous shared memory: hugetlb\n",
            "x".repeat(17 << 20)
        );
        let tree = Tree::new()
            .file("/proc/5/status", "Name:\tpostgres\nPPid:\t1\nVmRSS:\t9000 kB\n")
            .file("/proc/5/cmdline", "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0")
            .file("/proc/5/root/data/current_logfiles", "stderr log/a.log\n")
            .file("/proc/5/root/data/log/a.log", long)
            .link("/proc/5/cwd", "/data");
        let source = Source::from_tree("test", tree);
        let targets = targets(&source, &Snapshot::take(&source), "postgres").expect("the server");
        let logs = &targets[0].log;
        let text = "could not map anonymous shared memory: hugetlb";
        assert_eq!(texts(logs), [("/data/log/a.log", text)]);
        assert_eq!(logs.cut[0].read, Bytes::mib(16));
    }
}
