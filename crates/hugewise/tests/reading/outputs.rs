//! Result files: each is whole whatever stops its writer, and a result that could not be written is no success.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{done, hugewise, machine, refused, text, told};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Kills per kind of file.
const KILLS: u32 = 15;

/// On a disk, where writing takes long enough to be interrupted; /tmp may be in memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".hugewise")
}

/// A command that writes files into a folder, and what is whole in it.
struct Writer<'a> {
    folder: &'a Path,
    words: Vec<String>,
    files: Vec<&'static str>,
    is_whole: fn(&Path) -> bool,
}

impl Writer<'_> {
    fn command(&self) -> Command {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let mut command = hugewise(&words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts it and kills it soon after a temporary file is there; `None` if it ended first.
    fn killed_while_writing(&self, round: u32) -> Option<()> {
        let mut child = self.command().spawn().expect("starts");
        let began = Instant::now();
        // The first temporary files only show that the files can be written; the last ones become them.
        let mut wait = 1 + round % 3;
        while wait > 0 {
            if child.try_wait().expect("waits").is_some() || began.elapsed() > Duration::from_secs(60) {
                break;
            }
            if names(self.folder).iter().any(|name| is_temporary(name)) {
                wait -= 1;
                std::thread::sleep(Duration::from_micros(u64::from(round * 37 % 400)));
            }
        }
        let was_killed = kill_process(Pid::from_child(&child), Signal::KILL).is_ok();
        let ended = child.wait().expect("ended");
        (was_killed && ended.code().is_none()).then_some(())
    }

    fn assert_old_or_new(&self, round: u32) {
        for file in &self.files {
            let path = self.folder.join(file);
            assert!((self.is_whole)(&path), "round {round}: {file} is not whole");
        }
        let strange: Vec<String> = names(self.folder)
            .into_iter()
            .filter(|name| !self.files.contains(&name.as_str()) && !is_temporary(name))
            .collect();
        assert!(strange.is_empty(), "round {round}: {strange:?}");
    }

    /// Kills it again and again within its writes; the next whole run clears up.
    fn assert_survives_kills(&self) {
        assert!(self.command().status().expect("runs").success());
        let mut killed = 0;
        let mut left = 0;
        for round in 0..KILLS * 4 {
            killed += u32::from(self.killed_while_writing(round).is_some());
            self.assert_old_or_new(round);
            left += names(self.folder).iter().filter(|name| is_temporary(name)).count();
            if killed >= KILLS && left > 0 {
                break;
            }
        }
        assert!(killed >= KILLS, "only {killed} kills came in time");
        assert!(left > 0, "no kill came within a write");
        assert!(self.command().status().expect("runs").success());
        assert_eq!(names(self.folder).len(), self.files.len(), "{:?}", names(self.folder));
    }
}

fn is_json(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str::<Value>(&text).is_ok()
}

fn is_tree(path: &Path) -> bool {
    Command::new(env!("CARGO_BIN_EXE_hugewise"))
        .args(["--root", text(path), "vm"])
        .env("HUGEWISE_STATE_DIR", crate::common::NO_STATE)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("runs")
        .success()
}

fn is_report(path: &Path) -> bool {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => is_json(path),
        _ => fs::read_to_string(path).is_ok_and(|text| text.trim_end().ends_with("</html>")),
    }
}

/// The command on a captured machine, with the first of its files as the last argument.
fn assert_survives_kills(words: &[&str], files: &[&'static str], is_whole: fn(&Path) -> bool) {
    let folder = folder();
    let (machine, file) = (machine("two-node-smt"), folder.path().join(files[0]));
    let words = [&["--root", text(&machine)], words, &[text(&file)]].concat();
    let writer = Writer {
        folder: folder.path(),
        words: words.into_iter().map(str::to_owned).collect(),
        files: files.to_vec(),
        is_whole,
    };
    writer.assert_survives_kills();
}

#[test]
fn an_output_killed_while_it_is_written_is_the_old_one_or_the_new_one() {
    assert_survives_kills(&["doctor", "--json", "--output"], &["out.json"], is_json);
}

#[test]
fn a_snapshot_killed_while_it_is_written_is_the_old_one_or_the_new_one() {
    assert_survives_kills(&["--yes", "snapshot"], &["m.tree"], is_tree);
}

#[test]
fn the_files_of_a_checkup_killed_while_they_are_written_are_old_or_new() {
    assert_survives_kills(&["checkup", "--report"], &["report.html", "result.json"], is_report);
}

#[test]
fn a_snapshot_is_for_its_owner_alone_also_where_it_replaces_one_that_was_not() {
    let folder = folder();
    let (machine, file) = (machine("two-node-smt"), folder.path().join("m.tree"));
    let mode = || fs::metadata(&file).expect("there").permissions().mode() & 0o777;
    done(&["--root", text(&machine), "snapshot", text(&file)]);
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
    done(&["--root", text(&machine), "--yes", "snapshot", text(&file)]);
    assert_eq!(mode(), 0o600);
}

/// The program under a shell that arranges something first.
fn under_shell(script: &str, words: &[&str]) -> crate::common::Run {
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_hugewise")])
        .args(words)
        .env("HUGEWISE_STATE_DIR", crate::common::NO_STATE);
    told(command.output().expect("runs"))
}

/// The program where no file may be longer than 4 KiB, which fails as a full disk does. (The signal is ignored, as it
/// ends the program otherwise; a kill is another test.)
fn on_a_full_disk(words: &[&str]) -> crate::common::Run {
    under_shell("trap '' XFSZ; ulimit -f 8; exec \"$@\"", words)
}

#[test]
fn a_full_disk_leaves_old_results_whole_and_no_stumps() {
    let folder = folder();
    let machine = machine("two-node-smt");
    let path = |name: &str| text(&folder.path().join(name)).to_owned();
    let [out, tree, page] = ["out.json", "m.tree", "report.html"].map(path);
    let root = ["--root", text(&machine)];
    let all: [&[&str]; 3] = [
        &["--json", "--output", &out, "doctor"],
        &["--yes", "snapshot", &tree],
        &["checkup", "--report", &page],
    ];
    for words in all {
        let run = on_a_full_disk(&[&root[..], words].concat());
        assert_eq!(run.code, Some(2), "{words:?}: {}", run.err);
        assert!(run.err.contains("File too large"), "{words:?}: {}", run.err);
        assert!(names(folder.path()).is_empty(), "{words:?}: {:?}", names(folder.path()));
    }
    let old = ["out.json", "m.tree", "report.html", "result.json"];
    old.iter()
        .for_each(|name| fs::write(folder.path().join(name), "old").expect("written"));
    for words in all {
        assert_eq!(on_a_full_disk(&[&root[..], words].concat()).code, Some(2), "{words:?}");
    }
    for name in old {
        assert_eq!(
            fs::read_to_string(folder.path().join(name)).expect("read"),
            "old",
            "{name}"
        );
    }
    assert_eq!(names(folder.path()).len(), old.len());
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let folder = folder();
    for place in ["none/out.json", ".", "out.json/"] {
        let began = Instant::now();
        let place = folder.path().join(place);
        let words = ["--output", text(&place), "measure", "latency", "--budget", "60s"];
        let said = refused(&words);
        assert!(said.contains("--output"), "{said}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_failed_command_leaves_no_empty_output() {
    let folder = folder();
    let file = folder.path().join("out.json");
    refused(&["--output", text(&file), "report", "/nonexistent.json"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn devices_are_written_straight_and_a_full_one_is_an_error() {
    let machine = machine("two-node-smt");
    let doctor = ["--root", text(&machine), "vm", "--output"];
    assert!(done(&[&doctor[..], &["/dev/null"]].concat()).out.is_empty());
    assert!(!done(&[&doctor[..], &["/dev/stdout"]].concat()).out.is_empty());
    assert!(refused(&[&doctor[..], &["/dev/full"]].concat()).contains("No space left"));
}

/// The program under a shell that arranges its standard output.
fn with_stdout(arranged: &str, words: &[&str]) -> crate::common::Run {
    under_shell(&format!("exec \"$@\" {arranged}"), words)
}

#[test]
fn a_full_or_closed_standard_output_is_an_error_and_a_reader_that_left_is_none() {
    let machine = machine("two-node-smt");
    let root = text(&machine);
    let all: [&[&str]; 5] = [
        &["--version"],
        &["--help"],
        &["help", "compare"],
        &["--root", root, "vm"],
        &["completions", "bash"],
    ];
    for words in all {
        for arranged in [">/dev/full", ">&-"] {
            let run = with_stdout(arranged, words);
            assert_eq!(run.code, Some(2), "{words:?} {arranged}: {}", run.err);
            assert!(run.err.contains("standard output"), "{words:?} {arranged}: {}", run.err);
        }
        crate::common::unread(words);
        for arranged in [">/dev/null", "<>/dev/null >&0"] {
            assert_eq!(with_stdout(arranged, words).code, Some(0), "{words:?} {arranged}");
        }
    }
    let folder = folder();
    let file = folder.path().join("out");
    let words = ["--root", root, "--output", text(&file), "vm"];
    assert_eq!(
        with_stdout(">&-", &words).code,
        Some(0),
        "standard output is not needed"
    );
}

/// Any user could make such a name before its owner does, and deny loans to that user.
#[test]
fn nothing_planted_in_tmp_is_looked_at() {
    let shared = tempfile::tempdir().expect("a folder");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("opened");
    open(shared.path(), 0o777);
    // Root has a directory of its own, so another user runs a copy that it can reach.
    let user = match rustix::process::geteuid() {
        root if root.is_root() => 65534,
        user => user.as_raw(),
    };
    let program = shared.path().join("program");
    // A program that this process writes itself cannot be started while another thread's child still has the file open.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_hugewise")).arg(&program);
    assert!(copy.status().expect("cp").success());
    open(&program, 0o755);
    let planted = shared.path().join(format!("hugewise-{user}"));
    fs::create_dir(&planted).expect("made");
    open(&planted, 0o777);
    let mut command = Command::new(&program);
    command.arg("vm").current_dir("/").env("TMPDIR", shared.path());
    command.env_remove("XDG_RUNTIME_DIR").env_remove("HUGEWISE_STATE_DIR");
    if rustix::process::geteuid().is_root() {
        command.gid(user).uid(user);
    }
    let run = told(command.output().expect("runs"));
    assert!(!run.err.contains("hugewise-"), "{}", run.err);
    assert_eq!(run.code, Some(0), "{}", run.err);
}
