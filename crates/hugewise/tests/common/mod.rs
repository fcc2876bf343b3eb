//! What the tests of the program share: running it, captured machines, and looking at results.
#![allow(dead_code, unreachable_pub)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::Pid;
use serde_json::Value;

pub mod stall;

/// Where not even root can make a directory: a test that borrows pool pages has to name a place of its own.
pub const NO_STATE: &str = "/proc/hugewise-test";

/// The program with its settings kept away from the machine's own.
pub fn hugewise(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hugewise"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env("HUGEWISE_STATE_DIR", NO_STATE);
    command
}

/// What one run printed and how it ended.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The words of a line without quotes, and those that follow it.
pub fn words<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    line.split_whitespace().chain(more.iter().copied()).collect()
}

pub fn run(args: &[&str]) -> Run {
    told(hugewise(args).output().expect("the program starts"))
}

pub fn told(output: Output) -> Run {
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A run that must do what was asked.
pub fn done(args: &[&str]) -> Run {
    let run = run(args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
    run
}

/// A run that must refuse, in one message under the program's name.
pub fn refused(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, Some(2), "{args:?}: {} {}", run.out, run.err);
    assert!(run.err.starts_with("hugewise: "), "{args:?}: {}", run.err);
    assert!(run.out.is_empty(), "{args:?}: {}", run.out);
    run.err
}

/// The notes of each arm's last run in a comparison.
pub fn last_notes(result: &Value) -> String {
    let arms = result["data"]["arms"].as_array().expect("arms").iter();
    let last = arms.map(|arm| arm["runs"].as_array().and_then(|runs| runs.last()));
    last.map(|run| run.map_or_else(String::new, |run| run["notes"].to_string()))
        .collect()
}

/// A program that works, and what it says of that.
pub struct Begun {
    pub child: Child,
    err: BufReader<ChildStderr>,
    /// The lines that it said before it worked, and the one that says that it does.
    pub said: Vec<String>,
}

/// Starts a measurement and waits until it says that it measures.
pub fn begun(command: &mut Command) -> Begun {
    begun_until(command, |line| line.contains("measuring"))
}

/// Starts a measurement and waits until it says a line of that sort.
pub fn begun_until(command: &mut Command, is_last: impl Fn(&str) -> bool) -> Begun {
    let started = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("starts");
    let mut err = BufReader::new(child.stderr.take().expect("stderr"));
    let mut said: Vec<String> = Vec::new();
    while !said.last().is_some_and(|line| is_last(line)) {
        let mut line = String::new();
        assert_ne!(
            err.read_line(&mut line).expect("a line"),
            0,
            "it ended before: {said:?}"
        );
        said.push(line);
    }
    Begun { child, err, said }
}

impl Begun {
    /// Sends a signal; how it ends, and what it says until then.
    pub fn ended_by(mut self, signal: &str) -> (Option<i32>, String) {
        sent(signal, &self.child);
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("ends").code(), rest)
    }
}

/// Sends a signal to a program of ours.
pub fn sent(signal: &str, child: &Child) {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
}

/// A run whose reader goes away must end well and say nothing.
pub fn unread(args: &[&str]) {
    let mut command = hugewise(args);
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("starts");
    drop(child.stdout.take());
    let run = told(child.wait_with_output().expect("ends"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

/// Does a captured machine have processes with memory of their own?
pub fn has_processes(machine: &Path) -> bool {
    std::fs::read_to_string(machine).expect("a capture").contains("VmRSS:")
}

/// Every captured machine: name and path.
pub fn machines() -> Vec<(String, PathBuf)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let entries = std::fs::read_dir(&directory).expect("fixtures/machines");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let trees = paths.filter(|path| path.extension().is_some_and(|kind| kind == "tree"));
    let mut machines: Vec<_> = trees
        .map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path))
        .collect();
    machines.sort();
    assert!(
        machines.len() >= 9,
        "one real machine and eight made ones: {machines:?}"
    );
    machines
}

/// The path of a captured machine.
pub fn machine(name: &str) -> PathBuf {
    PathBuf::from(format!(
        "{}/../../fixtures/machines/{name}.tree",
        env!("CARGO_MANIFEST_DIR")
    ))
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A file in a folder, by its path.
pub fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("written");
    self::text(&file).to_owned()
}

/// The result of a run that must do what was asked.
pub fn json(args: &[&str]) -> Value {
    valid(&done(args).out)
}

/// Parses a result and holds it against the schema that the program publishes for it.
pub fn valid(json: &str) -> Value {
    let result: Value = serde_json::from_str(json).expect("JSON");
    let schema = result["schema"].as_str().expect("a schema name");
    let name = schema
        .strip_prefix("hugewise/")
        .and_then(|rest| rest.rsplit_once('/'))
        .expect("hugewise/NAME/VERSION")
        .0;
    let published: Value = serde_json::from_str(&done(&["schema", name]).out).expect("a schema");
    let validator = jsonschema::validator_for(&published).expect("a valid schema");
    let errors: Vec<String> = validator
        .iter_errors(&result)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    result
}

/// Builds a C program of these tests, `None` where there is no compiler.
pub fn compiled(source: &str, built: &Path) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let Ok(output) = Command::new("cc").args(["-O1", "-o"]).arg(built).arg(source).output() else {
        missing("a C compiler");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// Lines of a log so far.
pub fn lines(log: &Path) -> usize {
    std::fs::read_to_string(log).map_or(0, |text| text.lines().count())
}

/// The journals of what is on loan.
pub fn journals(state: &Path) -> usize {
    let entries = std::fs::read_dir(state).expect("the state directory");
    let is_journal = |path: &Path| path.extension().is_some_and(|kind| kind == "jsonl");
    entries
        .filter(|entry| is_journal(&entry.as_ref().expect("an entry").path()))
        .count()
}

/// The child of that process that returns its loans if it is killed.
pub fn guardian_of(parent: u32) -> Option<Pid> {
    let names = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut pids = names.filter_map(|name| name.file_name().to_str()?.parse::<i32>().ok());
    let is_it = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let of_parent = |(_, rest): (&str, &str)| rest.split(' ').nth(1) == Some(&parent.to_string());
        stat.split_once("(hugewise-guard) ").is_some_and(of_parent)
    };
    Pid::from_raw(pids.find(is_it)?)
}

/// Processes, stopped or not, of a program.
pub fn alive(program: &Path) -> usize {
    let program = program.as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    all.filter(|entry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.starts_with(program)
    })
    .count()
}

/// Processes, running or stopped, in whose environment a variable has the number of this test.
pub fn left_behind(mark: &str) -> Vec<String> {
    let mark = format!("{mark}={}", std::process::id());
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let marked = processes.filter(|process| {
        let variables = std::fs::read(process.path().join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    });
    marked
        .map(|process| {
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!(
                "{}: {}",
                process.path().display(),
                String::from_utf8_lossy(&words).replace('\0', " ")
            )
        })
        .collect()
}

#[allow(unused_imports, reason = "not every program of tests can be skipped")]
pub use testing::{missing, skipped};

/// Says what a test saw.
#[allow(clippy::print_stderr)]
pub fn noted(what: &str) {
    eprintln!("note: {what}");
}
