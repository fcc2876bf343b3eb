//! Programs of others that hugewise starts: as whom, how often, and what becomes of them.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{hugewise, lines, sent, skipped, told};

const ORDINARY: u32 = 65534;

/// A `postgres` in PATH that writes down how it runs, and a configuration file of an ordinary user.
struct Stage {
    temp: tempfile::TempDir,
}

impl Stage {
    /// `None` without root. `then` is what the program does after it wrote down how it runs.
    fn set(then: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("a server of another user needs root");
            return None;
        }
        let stage = Self {
            temp: tempfile::tempdir().expect("a directory"),
        };
        stage.open("", 0o755);
        for (name, owner) in [("bin", 0), ("data", ORDINARY), ("log", ORDINARY)] {
            fs::create_dir(stage.path(name)).expect("a directory");
            chown(stage.path(name), Some(owner), Some(owner)).expect("chown");
        }
        let log = stage.path("log/runs");
        // The fields of stat: pid, name, state, parent, group, session, terminal.
        let script = format!(
            "#!/bin/sh\necho \"$(id -u) $$ $(cat /proc/$$/stat | cut -d' ' -f5-7)\" >>{}\n{then}\n",
            log.display()
        );
        fs::write(stage.path("bin/postgres"), script).expect("a script");
        stage.open("bin/postgres", 0o755);
        fs::write(stage.path("data/postgresql.conf"), "shared_buffers = 1GB\n").expect("a file");
        chown(stage.path("data/postgresql.conf"), Some(ORDINARY), Some(ORDINARY)).expect("chown");
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn open(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).expect("chmod");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = hugewise(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command
    }

    fn size(&self) -> (String, String) {
        let file = self.path("data/postgresql.conf");
        let run = told(self.command(&["size", "postgres"]).arg(file).output().expect("starts"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        (run.out, run.err)
    }

    fn runs(&self) -> String {
        fs::read_to_string(self.path("log/runs")).unwrap_or_default()
    }
}

#[test]
fn a_server_is_asked_once_as_its_owner_and_away_from_every_terminal() {
    let Some(stage) = Stage::set("[ \"$(ulimit -c)\" = 0 ] && echo 777") else {
        return;
    };
    let (out, err) = stage.size();
    assert!(out.contains("777") && !err.contains("estimate"), "{out}{err}");
    let runs = stage.runs();
    let fields: Vec<&str> = runs.split_whitespace().collect();
    assert_eq!(fields.len(), 5, "once: {runs}");
    let [uid, pid, group, session, terminal] = fields[..] else {
        return;
    };
    assert_eq!((uid, group, session, terminal), ("65534", pid, pid, "0"), "{runs}");
}

/// A key of root's session, and what exempts root's processes from the kernel's limits.
#[test]
fn a_server_is_asked_without_root_s_keys_score_and_limits() {
    let script = "cd \"$(dirname \"$0\")/../log\" && { grep -c hugewise-secret /proc/keys; cat /proc/self/oom_score_adj; ulimit -Hl; } >asked; echo 777";
    let Some(stage) = Stage::set(script) else { return };
    let Some(()) = common::compiled("keyring.c", &stage.path("keyring")) else {
        return;
    };
    let mut command = Command::new(stage.path("keyring"));
    command
        .arg(env!("CARGO_BIN_EXE_hugewise"))
        .args(["size", "postgres"])
        .arg(stage.path("data/postgresql.conf"));
    command.env("PATH", format!("{}:/usr/bin:/bin", stage.path("bin").display()));
    let run = told(command.output().expect("starts"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let asked = fs::read_to_string(stage.path("log/asked")).expect("it ran");
    let lines: Vec<&str> = asked.lines().collect();
    assert_eq!(lines[..2], ["0", "0"], "{asked}");
    assert!(lines[2].parse().is_ok_and(|kib: u64| kib <= 8192), "{asked}");
}

/// Debian's key is readable by root and a group alone, and a helper has no supplementary groups.
#[test]
fn a_server_is_asked_without_its_tls_key() {
    let script = "case \"$*\" in *' -c ssl=off'*) echo 777;; *) echo 'FATAL: could not access private key file' >&2; exit 1;; esac";
    let Some(stage) = Stage::set(script) else { return };
    let (out, err) = stage.size();
    assert!(out.contains("777") && err.is_empty(), "{out}{err}");
}

#[test]
fn two_goals_about_one_server_ask_it_once() {
    let Some(stage) = Stage::set("echo 777") else { return };
    let goal = format!("postgres:{}", stage.path("data/postgresql.conf").display());
    let run = told(
        stage
            .command(&["plan", "--for", &goal, "--for", &goal])
            .output()
            .expect("starts"),
    );
    assert_eq!(lines(&stage.path("log/runs")), 1, "{}{}", run.out, run.err);
}

#[test]
fn a_server_that_complains_is_not_tried_again_with_another_program() {
    let Some(stage) = Stage::set("echo 'LOG: x' >&2; echo 'FATAL: no' >&2; exit 1") else {
        return;
    };
    let (_, err) = stage.size();
    assert!(err.contains("FATAL: no"), "{err}");
    assert_eq!(lines(&stage.path("log/runs")), 1);
}

#[test]
fn nothing_runs_as_root_nor_with_files_that_others_may_change() {
    let Some(stage) = Stage::set("echo 777") else { return };
    let refused = |why: &str| {
        let (_, err) = stage.size();
        assert!(err.contains(why), "{err}");
        assert_eq!(stage.runs(), "");
    };
    stage.open("data", 0o777);
    refused("may be changed by other users");
    stage.open("data", 0o755);
    stage.open("bin/postgres", 0o777);
    refused("may be changed by other users");
    stage.open("bin/postgres", 0o755);
    // A file of an ordinary user in a directory of another user's.
    chown(stage.path("data"), Some(12345), None).expect("chown");
    refused("different users");
    for name in ["data", "data/postgresql.conf"] {
        chown(stage.path(name), Some(0), Some(0)).expect("chown");
    }
    refused("never run as root");
}

/// Is a process there that is no zombie?
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn a_signal_ends_a_server_that_does_not_answer_and_what_it_started() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let Some(stage) = Stage::set("sleep 600 & echo x y $! >>\"$(dirname \"$0\")\"/../log/runs; wait") else {
            return;
        };
        let file = stage.path("data/postgresql.conf");
        let mut command = stage.command(&["size", "postgres"]);
        let started = command.arg(file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("starts");
        let began = Instant::now();
        while lines(&stage.path("log/runs")) < 2 && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let runs = stage.runs();
        let mut words = runs.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let server = words.next().expect("its line")[1].to_owned();
        let started = words.next().expect("its child's line")[2].to_owned();
        sent(signal, &child);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), None, "by the signal: {status}");
        for pid in [server, started] {
            let began = Instant::now();
            while is_alive(&pid) && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(!is_alive(&pid), "{signal}: {pid}");
        }
    }
}
