//! How recordings end that do not end well: either side is killed, the disk is full, or the user may not record.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{done, hugewise, sent, told};
use serde_json::Value;

/// Kills of each test, unless this says how many.
const ASKED: &str = "HUGEWISE_TEST_KILLS";
const KILLS: u64 = 6;
/// It forks all the time, so that the result grows and is being written when a kill comes.
const FORKS: &str = "while :; do (true); done";

fn kills() -> u64 {
    std::env::var(ASKED).map_or(KILLS, |count| count.parse().expect("a number"))
}

/// The same moments each time, from at once to 1.5 s after the start.
fn moment(turn: u64) -> Duration {
    Duration::from_micros(turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1_500_000)
}

fn recorded(file: &Path, words: &[&str]) -> Child {
    let flags = [
        "placement",
        "record",
        "--quiet",
        "--output",
        file.to_str().expect("text"),
    ];
    let mut command = hugewise(&[&flags[..], words].concat());
    command.stderr(Stdio::null()).spawn().expect("starts")
}

/// A result that is there is whole.
fn read(file: &Path) -> Option<Value> {
    let text = std::fs::read(file).ok()?;
    Some(serde_json::from_slice(&text).expect("whole JSON"))
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_there(pid: &str) -> bool {
    Path::new(&format!("/proc/{pid}/stat")).exists()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("recording.json");
    (folder, file)
}

#[test]
fn a_recorder_killed_at_any_moment_leaves_a_readable_recording_and_no_program() {
    let (_folder, file) = folder();
    for turn in 0..kills() {
        let mut child = recorded(&file, &["--", "sh", "-c", FORKS]);
        let first = until("nothing was kept", || read(&file));
        std::thread::sleep(moment(turn));
        sent("-KILL", &child);
        child.wait().expect("ends");
        let data = read(&file).expect("kept")["data"].clone();
        assert_eq!(
            (&data["end"], &data["target"]),
            (&"so-far".into(), &first["data"]["target"])
        );
        let text = done(&["report", file.to_str().expect("text"), "--format", "text"]).out;
        assert!(text.contains("still ran when this was written"), "{text}");
        let pid = data["target"]["pid"].to_string();
        until("the program goes on", || (!is_there(&pid)).then_some(()));
        std::fs::remove_file(&file).expect("removed");
    }
}

#[test]
fn a_program_killed_at_any_moment_is_recorded_up_to_then() {
    let (_folder, file) = folder();
    for turn in 0..kills() {
        let mut child = recorded(&file, &["--", "sh", "-c", FORKS]);
        let pid = until("nothing was kept", || read(&file))["data"]["target"]["pid"].to_string();
        std::thread::sleep(moment(turn));
        let kill = Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
        assert!(kill.success() && child.wait().expect("ends").success());
        let data = read(&file).expect("a result")["data"].clone();
        assert_eq!(data["end"]["killed"], 9, "{}", data["end"]);
        assert!(
            data["total"]["cpu_s"].as_object().is_some_and(|cpus| !cpus.is_empty()),
            "{data}"
        );
        std::fs::remove_file(&file).expect("removed");
    }
}

#[test]
fn a_running_process_that_is_killed_ends_its_recording() {
    let (_folder, file) = folder();
    let mut target = Command::new("sleep").arg("600").spawn().expect("starts");
    let mut child = recorded(&file, &["--pid", &target.id().to_string()]);
    until("nothing was kept", || read(&file));
    target.kill().expect("ends");
    target.wait().expect("ends");
    assert!(child.wait().expect("ends").success());
    assert_eq!(read(&file).expect("a result")["data"]["end"], "gone");
}

/// The limit stands for the end of the disk: the first results fit, the later ones have more threads than fit.
#[test]
fn on_a_full_disk_the_file_holds_the_recording_up_to_then_and_the_error_says_so() {
    let (folder, file) = folder();
    let limited = format!(
        "ulimit -f 16; exec {} placement record --quiet --output {} -- sh -c \"$1\"",
        env!("CARGO_BIN_EXE_hugewise"),
        file.display()
    );
    // It starts when the first result is there, and goes on until one does not fit any more.
    let forks = format!(
        "until [ -e {} ]; do sleep 0.05; done; i=0; while [ $i -lt 400 ]; do (true); i=$((i+1)); done; sleep 2",
        file.display()
    );
    let run = told(
        Command::new("sh")
            .args(["-c", &limited, "sh", &forks])
            .output()
            .expect("starts"),
    );
    assert_eq!(run.code, Some(2), "{}", run.err);
    for part in [
        "could not be kept, and goes on",
        "the file holds the recording of the first",
        "File too large",
    ] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    assert_eq!(read(&file).expect("kept")["data"]["end"], "so-far");
    let names = std::fs::read_dir(folder.path()).expect("a directory");
    assert_eq!(names.count(), 1, "a draft is left");
}

/// Run as another user than root; `None` where that is not possible.
fn as_nobody(args: &[&str]) -> Option<Value> {
    if !rustix::process::geteuid().is_root() {
        testing::skipped("not root");
        return None;
    }
    let program = tempfile::Builder::new()
        .prefix("hugewise-test")
        .tempdir_in("/tmp")
        .expect("a directory");
    let copy = program.path().join("hugewise");
    // Not by this process: a child of another thread could still have the file open.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_hugewise"))
        .arg(&copy)
        .status();
    assert!(copied.expect("cp").success());
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(program.path(), all).expect("readable");
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy);
    let Ok(output) = command.args(args).current_dir("/").output() else {
        testing::skipped("no setpriv");
        return None;
    };
    let run = told(output);
    assert_eq!(run.code, Some(0), "{}", run.err);
    Some(serde_json::from_str(&run.out).expect("JSON"))
}

fn warned(result: &Value, code: &str) -> Option<String> {
    let warnings = result["warnings"].as_array().expect("warnings").iter();
    let mut found = warnings
        .filter(|warning| warning["code"] == code)
        .map(|warning| warning["text"].to_string());
    found.next_back()
}

#[test]
fn a_user_without_rights_records_own_programs_or_is_told_what_is_lost_and_why() {
    let Some(own) = as_nobody(&["placement", "record", "--json", "--", "sleep", "0.1"]) else {
        return;
    };
    let is_recorded = own["data"]["method"] == "switch-records";
    assert_eq!(warned(&own, "no-switch-records").is_none(), is_recorded, "{own}");
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let level: Option<i64> = level.map(|level| level.trim().parse().expect("a number"));
    assert_eq!(
        own["data"]["perf_event_paranoid"],
        level.map_or(Value::Null, Value::from)
    );
    let pid = std::process::id().to_string();
    let Some(other) = as_nobody(&["placement", "record", "--json", "--pid", &pid, "--for", "100ms"]) else {
        return;
    };
    let reason = if is_recorded { "other-user" } else { "not-permitted" };
    assert_eq!(
        (&other["data"]["method"], &other["data"]["no_records"]),
        (&"procfs".into(), &reason.into())
    );
    let text = warned(&other, "no-switch-records").expect("a warning");
    assert!(
        text.contains("lower bound") && (!is_recorded || text.contains("another user's")),
        "{text}"
    );
}
