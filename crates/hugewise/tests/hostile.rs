//! Beside processes that are unpleasant to look at, every command that looks at processes ends by itself or within a second of a
//! signal, with a sane exit code. HUGEWISE_TEST_HOSTILE says how many runs; the usual number is small.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{compiled, hugewise, noted, skipped};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Runs of the usual test: each command twice.
const RUNS: u64 = 12;
/// The same moments every time.
const SEED: u64 = 41;
/// A command that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(60);
/// What a signal may take to end a command, where HUGEWISE_TEST_HOSTILE asks for many: quiet machines only.
const PROMPT: Duration = Duration::from_secs(1);
/// Some moment before that a command gets a signal.
const WITHIN: Duration = Duration::from_millis(1500);
const CGROUPS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"];

/// The commands that look at other processes; FILE is a new file, PID one of the hostile processes.
const COMMANDS: [&[&str]; 6] = [
    &["doctor", "--json"],
    &["ps", "--json"],
    &["ps", "PID", "--vmas", "--json"],
    &["snapshot", "FILE"],
    &["vm", "--json"],
    &[
        "checkup",
        "--quick",
        "--skip",
        "latency,tlb,guest",
        "--report",
        "REPORT",
    ],
];

/// Hostile processes, which go when this does.
struct Crowd {
    folder: TempDir,
    children: Vec<Child>,
    groups: Vec<PathBuf>,
}

impl Crowd {
    /// `None` where there is no compiler for them.
    fn gather() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a directory");
        compiled("hostile/hostile.c", &folder.path().join("plain"))?;
        let mut crowd = Self {
            folder,
            children: Vec::new(),
            groups: Vec::new(),
        };
        for mode in ["name", "mappings", "no-thp", "vanish", "zombie", "stopped"] {
            crowd.start("plain", mode, &[]);
        }
        for name in [
            "\u{1b}]0;x\u{7}\u{1b}[31m",
            "a\nb: c",
            "=cmd|' /C x'!A0",
            "<script>alert(1)</script>",
            "(x) S 1 (y",
        ] {
            crowd.start(name, "", &["\u{1b}[2J", "a\nb", "-Xmx1\u{7}g", "--", "%n"]);
        }
        crowd.servers();
        crowd.deep_group();
        Some(crowd)
    }

    /// Database servers whose files are a FIFO, devices, and links that lead elsewhere or in a circle.
    fn servers(&mut self) {
        for (nth, link) in [
            "",
            "/dev/tty",
            "/proc/kmsg",
            "/dev/zero",
            "postgresql.conf",
            "/proc/self/root/etc/shadow",
        ]
        .iter()
        .enumerate()
        {
            let data = self.folder.path().join(format!("data-{nth}"));
            fs::create_dir(&data).expect("a directory");
            for file in [
                "postgresql.conf",
                "postgresql.auto.conf",
                "PG_VERSION",
                "postmaster.pid",
                "my.cnf",
            ] {
                let file = data.join(file);
                match *link {
                    "" => fifo(&file),
                    link => symlink(link, &file).expect("a link"),
                }
            }
            let data = data.to_str().expect("plain").to_owned();
            self.start("postgres", "", &["-D", &data]);
            self.start(
                "mysqld",
                "",
                &[&format!("--defaults-file={data}/my.cnf"), &format!("--datadir={data}")],
            );
            self.start(
                "qemu-system-x86_64",
                "",
                &["-m", "1G", "-mem-path", &data, "-readconfig", &format!("{data}/my.cnf")],
            );
            self.start(
                "java",
                "",
                &[
                    &format!("@{data}/my.cnf"),
                    "-Xmx1g",
                    &format!("-XX:Flags={data}/my.cnf"),
                ],
            );
            self.start("firecracker", "", &["--config-file", &format!("{data}/my.cnf")]);
        }
    }

    /// A process far down in the tree of control groups.
    fn deep_group(&mut self) {
        let Some(root) = CGROUPS
            .map(Path::new)
            .into_iter()
            .find(|root| root.join("cgroup.procs").exists())
        else {
            return skipped("no control groups can be made here: deep ones are left out");
        };
        let mut path = root.to_owned();
        for depth in 0..24 {
            path = path.join(format!("hugewise-test-{}-{depth}-\u{1b}[1m", std::process::id()));
            if fs::create_dir(&path).is_err() {
                break;
            }
            self.groups.push(path.clone());
        }
        let Some(deepest) = self.groups.last().cloned() else {
            return skipped("no control groups can be made here: deep ones are left out");
        };
        let pid = self.start("plain", "", &[]);
        fs::write(deepest.join("cgroup.procs"), pid.to_string()).expect("moved");
    }

    /// A copy of the program under a name of its own.
    fn start(&mut self, name: &str, mode: &str, arguments: &[&str]) -> u32 {
        let program = self.folder.path().join(name.replace('/', "\u{2215}"));
        if name != "plain" && !program.exists() {
            fs::copy(self.folder.path().join("plain"), &program).expect("copied");
        }
        let mut command = Command::new(&program);
        command.args(arguments).env("HOSTILE", mode);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        self.children.push(child);
        self.children.last().expect("one").id()
    }

    /// A run of a command, struck or not: its exit code, and how long it took to end after the signal.
    fn run(&self, round: u64) -> (String, Option<i32>, Duration) {
        let words = COMMANDS[(round % COMMANDS.len() as u64) as usize];
        let pid = self.children[(round as usize / COMMANDS.len()) % self.children.len()]
            .id()
            .to_string();
        let file = |ending: &str| {
            self.folder
                .path()
                .join(format!("{round}.{ending}"))
                .display()
                .to_string()
        };
        let folder = tempfile::tempdir_in(self.folder.path()).expect("a directory").keep();
        let (tree, report) = (file("tree"), folder.join("report.html").display().to_string());
        let word = |word: &&'static str| match *word {
            "PID" => pid.clone(),
            "FILE" => tree.clone(),
            "REPORT" => report.clone(),
            word => word.to_owned(),
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let signal = [None, Some(Signal::INT), Some(Signal::TERM)][(round / COMMANDS.len() as u64 % 3) as usize];
        let what = format!("round {round}, {signal:?} to {words:?}");
        let mut command = hugewise(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let began = Instant::now();
        let strikes_at = WITHIN.mul_f64(share(round));
        let mut struck = None;
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                return (
                    what,
                    status.code(),
                    struck.map_or(Duration::ZERO, |struck: Instant| struck.elapsed()),
                );
            }
            if let (Some(signal), None) = (signal, struck)
                && began.elapsed() > strikes_at
            {
                kill_process(Pid::from_child(&child), signal).expect("struck");
                struck = Some(Instant::now());
            }
            if began.elapsed() > HANGS {
                child.kill().expect("killed");
                child.wait().expect("ended");
                panic!("{what}: it does not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for group in self.groups.iter().rev() {
            let _ = fs::remove_dir(group);
        }
    }
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

fn share(round: u64) -> f64 {
    let mut moment = DefaultHasher::new();
    moment.write_u64(SEED + round);
    (moment.finish() % 1000) as f64 / 1000.0
}

#[test]
fn beside_hostile_processes_every_command_ends_well() {
    let Some(crowd) = Crowd::gather() else { return };
    let asked = std::env::var("HUGEWISE_TEST_HOSTILE")
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    let mut slowest = (Duration::ZERO, String::new());
    for round in 0..asked.unwrap_or(RUNS) {
        let (what, code, took) = crowd.run(round);
        // Ended by the signal itself, before or after the program watched for it; or findings, or not all could be read.
        assert!(
            code.is_none_or(|code| matches!(code, 0..=3 | 130 | 143)),
            "{what}: {code:?}"
        );
        if took > slowest.0 {
            slowest = (took, what);
        }
    }
    noted(&format!(
        "the slowest end after a signal took {:?} ({})",
        slowest.0, slowest.1
    ));
    assert!(asked.is_none() || slowest.0 < PROMPT, "{slowest:?}");
}
