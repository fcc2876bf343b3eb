//! A comparison is killed or interrupted at any moment: pools are as before, finished runs are kept, and no process is left behind.

mod common;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::stall::{Reference, assert_gone};
use common::{hugewise, left_behind, skipped, told};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const KILLS: u64 = 50;
const INTERRUPTS: u64 = 10;
/// Comparisons that may end before the signal arrives, where others use the CPUs.
const ATTEMPTS: u64 = 10;
/// The same moments every time, as shares of a whole comparison.
const SEED: u64 = 20;
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// Fills a buffer of 8 MiB again and again for some 30 ms.
const FILLS: [&str; 6] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=8M", "count=25", "status=none"];
/// How long loans of other programs may take to end.
const OTHERS: Duration = Duration::from_secs(2);
/// Where this is set, what is left after a kill has a second to end.
const ASKED: &str = "HUGEWISE_TEST_KILLS";

/// The tests here borrow from the same pool, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Who belongs to this test carries this variable, descendants included.
const MARK: &str = "HUGEWISE_TEST_COMPARED";

/// A place for comparisons with a state directory and logs of their own.
struct Bench {
    folder: TempDir,
    arms: &'static str,
    before: Pool,
    reference: Option<Reference>,
}

/// What a comparison may change of a pool. Surplus pages come and go with the programs that use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pool {
    persistent: u64,
    overcommit: u64,
}

impl Pool {
    fn now() -> Self {
        let number = |file: &str| -> u64 {
            fs::read_to_string(format!("{POOL}/{file}")).map_or(0, |text| text.trim().parse().unwrap_or(0))
        };
        Self {
            persistent: number("nr_hugepages").saturating_sub(number("surplus_hugepages")),
            overcommit: number("nr_overcommit_hugepages"),
        }
    }
}

/// How many pages these tests borrow: seldom as many as others would.
fn ours() -> u64 {
    11 + u64::from(std::process::id()) % 50
}

impl Bench {
    fn set_up() -> Self {
        let may_borrow = fs::OpenOptions::new()
            .write(true)
            .open(format!("{POOL}/nr_overcommit_hugepages"));
        if may_borrow.is_err() {
            skipped("the arm of the pool: not root, or no pool of 2M pages");
        }
        Self {
            folder: tempfile::tempdir().expect("a directory"),
            arms: if may_borrow.is_ok() {
                "base,thp,hugetlb-2M"
            } else {
                "base,thp"
            },
            before: Pool::now(),
            reference: reference(),
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn log(&self, round: u64) -> PathBuf {
        self.folder.path().join(format!("{round}.jsonl"))
    }

    fn compare(&self, option: &str, log: &Path) -> Command {
        let pool = format!("{}M", 2 * ours());
        let log = log.to_str().expect("a name");
        let words = [
            "compare",
            "--arms",
            self.arms,
            "--pool",
            &pool,
            "--runs",
            "2",
            "--warm-up",
            "0",
        ];
        let mut command = hugewise(&[&words[..], &["--json", option, log, "--"], &FILLS].concat());
        command.env("HUGEWISE_STATE_DIR", self.state());
        command.env(MARK, std::process::id().to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// How long a whole comparison takes here.
    fn usual(&self) -> Duration {
        let began = Instant::now();
        let whole = self.compare("--log", &self.log(u64::MAX)).status().expect("runs");
        assert_eq!(whole.code(), Some(0));
        began.elapsed()
    }

    /// Starts a comparison and strikes it at some moment. Gives whether pages were on loan then.
    fn strike(&self, usual: Duration, round: u64, signal: Signal) -> (Child, bool) {
        let child = self.compare("--log", &self.log(round)).spawn().expect("starts");
        let mut moment = DefaultHasher::new();
        moment.write_u64(SEED + round);
        thread::sleep(usual.mul_f64((moment.finish() % 1000) as f64 / 1000.0));
        let lends = self.journals() > 0;
        kill_process(Pid::from_child(&child), signal).expect("struck");
        (child, lends)
    }

    fn journals(&self) -> usize {
        let entries = fs::read_dir(self.state()).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "jsonl"))
            .count()
    }

    /// No process lives, the log is whole, and the pool is as before without a further command.
    fn assert_as_before(&self, round: u64) {
        assert_gone(&format!("round {round}"), self.reference.as_ref(), || left_behind(MARK));
        runs(&self.log(round));
        assert_eq!(self.journals(), 0, "round {round}: it did not give back itself");
        let status = hugewise(&["status"]).env("HUGEWISE_STATE_DIR", self.state()).output();
        let status = told(status.expect("runs"));
        assert_eq!(
            (status.code, self.journals()),
            (Some(0), 0),
            "round {round}: {}",
            status.err
        );
        if !within(|| Pool::now() == self.before) {
            let now = Pool::now();
            assert_ne!(
                now.overcommit,
                self.before.overcommit + ours(),
                "round {round}: still on loan"
            );
            assert_ne!(
                now.persistent,
                self.before.persistent + ours(),
                "round {round}: still on loan"
            );
            skipped(&format!(
                "others changed the pool in round {round}: {:?} -> {now:?}",
                self.before
            ));
        }
    }

    /// A comparison that is struck once a first run is finished is gone on with.
    fn assert_gone_on_with(&self, signal: Signal) {
        let whole = runs(&self.log(u64::MAX)).len();
        let (log, kept) = self.cut(signal, whole);
        let resumed = self.compare("--resume", &log).status().expect("runs");
        let after = runs(&log);
        assert_eq!((resumed.code(), after.len()), (Some(0), whole));
        assert_eq!(after[..kept.len()], kept[..], "what was finished is not run again");
    }

    /// A log that was cut between two runs. What it holds says when to strike: no time fits every machine.
    fn cut(&self, signal: Signal, whole: usize) -> (PathBuf, Vec<Value>) {
        for attempt in 0..ATTEMPTS {
            let log = self.log(u64::MAX - 1 - attempt);
            let mut child = self.compare("--log", &log).spawn().expect("starts");
            while runs(&log).is_empty() && child.try_wait().expect("a child").is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            kill_process(Pid::from_child(&child), signal).expect("struck");
            child.wait().expect("ended");
            let kept = runs(&log);
            if (1..whole).contains(&kept.len()) {
                return (log, kept);
            }
        }
        panic!("each of {ATTEMPTS} comparisons had ended before a signal came, though one run of {whole} was finished");
    }
}

/// Waits a while for something to become true.
fn within(is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > OTHERS {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn reference() -> Option<Reference> {
    std::env::var_os(ASKED).map(|_| Reference::start())
}

/// The finished runs of a log, of which only the last line may be cut; none if it was not begun.
fn runs(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {line}: {error}", log.display())))
        .collect()
}

#[test]
fn after_kill_9_at_any_moment_pools_are_as_before_and_finished_runs_are_kept() {
    let _turn = TURN.lock();
    let bench = Bench::set_up();
    let usual = bench.usual();
    let mut lent = 0;
    for round in 0..KILLS {
        let (mut child, lends) = bench.strike(usual, round, Signal::KILL);
        child.wait().expect("ended");
        bench.assert_as_before(round);
        lent += u32::from(lends);
    }
    let has_pool = bench.arms.contains("hugetlb");
    assert!(lent > 0 || !has_pool, "no kill came while pages were on loan");
    bench.assert_gone_on_with(Signal::KILL);
}

#[test]
fn after_ctrl_c_at_any_moment_nothing_is_left_to_mend() {
    let _turn = TURN.lock();
    let bench = Bench::set_up();
    let usual = bench.usual();
    for round in 0..INTERRUPTS {
        let (mut child, _) = bench.strike(usual, round, Signal::INT);
        match child.wait().expect("ended").code() {
            // It came to its end first, or was ended before it watched for the signal and changed anything.
            Some(0 | 130) | None => {}
            other => panic!("round {round}: {other:?}"),
        }
        bench.assert_as_before(round);
    }
    bench.assert_gone_on_with(Signal::INT);
}

/// The kernel kills a child with its parent, but not a grandchild.
#[test]
fn after_kill_9_a_program_and_what_it_started_end() {
    let folder = tempfile::tempdir().expect("a directory");
    let line = "sleep 64.25 & sh -c 'sleep 64.25; true'";
    assert_gone_after_kill_9(hugewise(&words_for(folder.path(), line).each_ref().map(String::as_str)));
}

/// Forked twice, in a session of its own: only its cgroup shows where it came from.
#[test]
fn after_kill_9_a_daemon_and_its_cgroup_are_gone() {
    if cgroup_of_ours().is_none() {
        return skipped("no cgroup v2 that this test may change");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let line = "sh -c 'setsid sleep 64.25 &'; sleep 64.25; true";
    let command = hugewise(&words_for(folder.path(), line).each_ref().map(String::as_str));
    let pid = assert_gone_after_kill_9(command);
    let base = cgroup_of_ours().expect("as before");
    let left = || {
        let names = fs::read_dir(&base).expect("a cgroup").flatten();
        let prefix = format!("hugewise-{pid}-");
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with(&prefix))
    };
    assert!(within(|| !left()), "{}", base.display());
}

/// Where no cgroup can be made, as in most containers.
#[test]
fn without_a_cgroup_a_program_and_what_it_started_end_after_kill_9() {
    let unmount = "umount -a -t cgroup2 && exec \"$@\"";
    let may = Command::new("unshare")
        .args(["-m", "sh", "-c", unmount, "sh", "true"])
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skipped("mount namespaces are not permitted");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let line = "sleep 64.25 & setsid -w sh -c 'sleep 64.25; true'";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", unmount, "sh", env!("CARGO_BIN_EXE_hugewise")]);
    command.args(words_for(folder.path(), line));
    assert_gone_after_kill_9(command);
}

/// The cgroup v2 that this process is in, if it may make others below it.
fn cgroup_of_ours() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let base = Path::new(mount.split(' ').nth(1)?).join(own);
    let probe = base.join(format!("test-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    fs::remove_dir(&probe).ok()?;
    Some(base)
}

fn words_for(folder: &Path, line: &str) -> [String; 11] {
    let log = folder.join("log.jsonl").display().to_string();
    let words = [
        "compare",
        "--arms",
        "base,system",
        "--runs",
        "2",
        "--log",
        &log,
        "--",
        "sh",
        "-c",
        line,
    ];
    words.map(str::to_owned)
}

/// Kills a comparison whose program has two sleeps; gives the id that it had.
fn assert_gone_after_kill_9(mut command: Command) -> u32 {
    let _turn = TURN.lock();
    let reference = reference();
    command.env(MARK, std::process::id().to_string());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let sleeps = || {
        left_behind(MARK)
            .iter()
            .filter(|line| line.contains(": sleep 64.25"))
            .count()
    };
    let began = Instant::now();
    while sleeps() < 2 && began.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(sleeps(), 2);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("struck");
    child.wait().expect("ended");
    assert_gone("after kill -9", reference.as_ref(), || left_behind(MARK));
    child.id()
}

#[test]
fn a_log_that_was_killed_before_its_first_line_is_gone_on_with() {
    let _turn = TURN.lock();
    let bench = Bench::set_up();
    let log = bench.log(0);
    fs::write(&log, "").expect("written");
    assert!(bench.compare("--resume", &log).status().expect("runs").success());
    let first = fs::read_to_string(&log).expect("a log");
    assert!(first.starts_with("{\"schema\":\"hugewise/compare-runs/4\""), "{first}");
    assert!(!runs(&log).is_empty());
}
