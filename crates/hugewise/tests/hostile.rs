//! Beside processes that are unpleasant to look at, every command that looks at processes ends by itself or by a signal,
//! with a sane exit code. HUGEWISE_TEST_HOSTILE says how many runs, and has a signal end each within a second; the usual
//! number is small.

mod common;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::stall::{Ending, HANGS, PROMPT, Reference, Took, assert_gone, interrupt};
use common::{compiled, hugewise, left_behind, noted, skipped};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Runs of the usual test: each command twice.
const RUNS: u64 = 12;
/// The same moments every time.
const SEED: u64 = 41;
/// What belongs to a run carries this variable, descendants included.
const MARK: &str = "HUGEWISE_TEST_BESIDE";
const MOST_MAPPINGS: &str = "/proc/sys/vm/max_map_count";
/// Of the process with many mappings, and what the kernel must allow for that; it allows 65,530 by default.
const MAPPINGS: u64 = 100_000;
const ALLOWED: u64 = MAPPINGS + 1000;
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
    fn gather(is_asked: bool) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a directory");
        compiled("hostile/hostile.c", &folder.path().join("plain"))?;
        let mut crowd = Self {
            folder,
            children: Vec::new(),
            groups: Vec::new(),
        };
        for mode in ["name", "no-thp", "vanish", "zombie", "stopped"] {
            crowd.start("plain", mode, &[]);
        }
        crowd.many_mappings(is_asked);
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

    /// A process with as many mappings as the kernel lets it have, or with all of them: the limit is for making them, so it is
    /// put back as soon as they are there.
    fn many_mappings(&mut self, all: bool) {
        let before = fs::read_to_string(MOST_MAPPINGS).expect("a setting");
        let is_raised = all && before.trim().parse().is_ok_and(|most: u64| most < ALLOWED);
        if is_raised && let Err(error) = fs::write(MOST_MAPPINGS, ALLOWED.to_string()) {
            skipped(&format!(
                "this machine gives fewer than {MAPPINGS} mappings: {MOST_MAPPINGS}: {error}"
            ));
        }
        let maps = format!("/proc/{}/maps", self.start("plain", "mappings", &[]));
        let count = || fs::read_to_string(&maps).unwrap_or_default().lines().count();
        let mut latest = 0;
        for _ in 0..200 {
            thread::sleep(Duration::from_millis(300));
            let now = count();
            if now == latest && now > 1000 {
                break;
            }
            latest = now;
        }
        if is_raised {
            fs::write(MOST_MAPPINGS, before).expect("put back");
        }
        noted(&format!("one process has {latest} mappings"));
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
    fn run(&self, round: u64, reference: &Reference) -> Done {
        let signal = [None, Some(interrupt()), Some(Signal::TERM)][(round / COMMANDS.len() as u64 % 3) as usize];
        let words = self.words(round);
        let what = format!("round {round}, {signal:?} to {words:?}");
        let mut command = hugewise(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command.env(MARK, std::process::id().to_string());
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let (mut child, began) = (started.expect("starts"), Instant::now());
        let strikes_at = WITHIN.mul_f64(share(round));
        let mut ending = None;
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                let took = ending.map(|ending: Ending| ending.over(reference));
                let code = status.code();
                return Done { what, code, took };
            }
            if let (Some(signal), None) = (signal, &ending)
                && began.elapsed() > strikes_at
            {
                ending = Some(Ending::begin(child.id()));
                kill_process(Pid::from_child(&child), signal).expect("struck");
            }
            if let Some(ending) = &mut ending {
                ending.look(child.id());
            }
            if began.elapsed() > HANGS {
                child.kill().expect("killed");
                child.wait().expect("ended");
                panic!("{what}: it does not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn words(&self, round: u64) -> Vec<String> {
        let nth = round as usize / COMMANDS.len();
        let pid = self.children[nth % self.children.len()].id().to_string();
        let folder = tempfile::tempdir_in(self.folder.path()).expect("a directory").keep();
        let file = |name: &str| folder.join(name).display().to_string();
        let word = |word: &&'static str| match *word {
            "PID" => pid.clone(),
            "FILE" => file("machine.tree"),
            "REPORT" => file("report.html"),
            word => word.to_owned(),
        };
        COMMANDS[round as usize % COMMANDS.len()].iter().map(word).collect()
    }
}

/// A run that is over.
struct Done {
    what: String,
    code: Option<i32>,
    /// From the signal on; `None` if it ended by itself.
    took: Option<Took>,
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
    let asked = std::env::var("HUGEWISE_TEST_HOSTILE")
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    let Some(crowd) = Crowd::gather(asked.is_some()) else {
        return;
    };
    let reference = Reference::start();
    noted(&format!("beside {} hostile processes", crowd.children.len()));
    let mut slowest = (Took::default(), String::new());
    let (mut runs, mut struck) = ([0; COMMANDS.len()], [0; COMMANDS.len()]);
    for round in 0..asked.unwrap_or(RUNS) {
        let done = crowd.run(round, &reference);
        let (what, code) = (done.what, done.code);
        // Ended by the signal itself, before or after the program watched for it; or findings, or not all could be read.
        assert!(
            code.is_none_or(|code| matches!(code, 0..=3 | 130 | 143)),
            "{what}: {code:?}"
        );
        assert_gone(&what, asked.map(|_| &reference), || left_behind(MARK));
        let nth = round as usize % COMMANDS.len();
        runs[nth] += 1;
        struck[nth] += u64::from(done.took.is_some());
        if let Some(took) = done.took.filter(|took| took.own() >= slowest.0.own()) {
            slowest = (took, what);
        }
    }
    for (nth, words) in COMMANDS.iter().enumerate() {
        noted(&format!(
            "{}: {} of {} ended by a signal",
            words.join(" "),
            struck[nth],
            runs[nth]
        ));
    }
    let Took { wall, held_up, .. } = slowest.0;
    noted(&format!(
        "the slowest end after a signal took {wall:?}, of which the machine kept it waiting {held_up:?} ({})",
        slowest.1
    ));
    assert!(asked.is_none() || slowest.0.own() < PROMPT, "{slowest:?}");
}
