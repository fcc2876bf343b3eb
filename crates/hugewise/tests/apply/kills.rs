//! Every command that changes or occupies something is struck at any moment: settings are as before, nothing lives on, and no
//! journal stays. HUGEWISE_TEST_KILLS says how often in all; the usual run is short.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::stall::{Ending, HANGS, PROMPT, Reference, Took, assert_gone, interrupt};
use crate::common::{left_behind, noted, skipped};
use crate::machine::Bench;

/// Strikes of the usual run: each command once by SIGKILL, and once by SIGINT or SIGTERM.
const STRIKES: u64 = 20;
/// The same moments every time.
const SEED: u64 = 14;
/// What belongs to this test carries this variable, descendants included.
const MARK: &str = "HUGEWISE_TEST_STRUCK";
/// How long loans of other programs may take to end.
const OTHERS: Duration = Duration::from_secs(2);
const POOLS: &str = "/sys/kernel/mm/hugepages";

/// A command that is struck.
#[derive(Clone, Copy, Debug)]
struct Victim {
    words: &'static [&'static str],
    /// Some moment before that.
    within: Duration,
    /// Does it take pages of 1 GiB? While the kernel zeroes one it hears no signal, not even SIGKILL: 2.7 s where the host had to bring
    /// the memory in. So system time does not count.
    is_gigantic: bool,
}

const fn victim(words: &'static [&'static str], milliseconds: u64) -> Victim {
    let within = Duration::from_millis(milliseconds);
    Victim {
        words,
        within,
        is_gigantic: false,
    }
}

impl Victim {
    const fn with_gigantic_pages(self) -> Self {
        Self {
            is_gigantic: true,
            ..self
        }
    }
}

const VICTIMS: [Victim; 10] = [
    // The first two get a plan in place of PLAN, and the second one finds it applied.
    victim(&["apply", "PLAN", "--yes"], 120),
    victim(&["undo"], 120),
    victim(&["measure", "latency", "--sizes", "16K,8M,32M", "--budget", "2s"], 3000),
    victim(&["measure", "guest", "--sizes", "1M,16M", "--budget", "1s"], 3000).with_gigantic_pages(),
    victim(
        &[
            "measure",
            "guest",
            "--sizes",
            "1M,16M",
            "--budget",
            "1s",
            "--pages",
            "base,thp,hugetlb-2M",
        ],
        3000,
    ),
    victim(
        &[
            "measure",
            "guest",
            "--guest-pages",
            "4K",
            "--sizes",
            "1M",
            "--budget",
            "1s",
        ],
        3000,
    ),
    victim(&["measure", "tlb", "--quick"], 3000),
    victim(
        &[
            "compare",
            "--arms",
            "base,thp,hugetlb-2M",
            "--runs",
            "2",
            "--warm-up",
            "0",
            "--",
            "dd",
            "if=/dev/zero",
            "of=/dev/null",
            "bs=8M",
            "count=25",
            "status=none",
        ],
        1000,
    ),
    victim(&["checkup", "--quick", "--report", "REPORT"], 6000),
    victim(&["checkup", "--skip", "doctor,ps,latency", "--report", "REPORT"], 6000),
];

/// SIGKILL for all commands in turn, then SIGINT for every other one and SIGTERM for the rest, which they exchange the next time.
fn signal(round: u64) -> Signal {
    let (pass, nth) = (round / VICTIMS.len() as u64, round % VICTIMS.len() as u64);
    match (pass % 4, nth % 2) {
        (0 | 2, _) => Signal::KILL,
        (1, 0) | (3, 1) => interrupt(),
        _ => Signal::TERM,
    }
}

fn strikes() -> (u64, bool) {
    let asked = std::env::var("HUGEWISE_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse().ok());
    (asked.unwrap_or(STRIKES), asked.is_some())
}

/// A share of a whole, the same for each round every time.
fn share(round: u64) -> f64 {
    let mut moment = DefaultHasher::new();
    moment.write_u64(SEED + round);
    (moment.finish() % 1000) as f64 / 1000.0
}

/// Persistent pages and the limit of surplus pages of every pool.
fn pools() -> Vec<(String, u64, u64)> {
    let pools = fs::read_dir(POOLS).into_iter().flatten().flatten();
    let pool = |path: &Path| {
        let number = |file: &str| fs::read_to_string(path.join(file)).ok()?.trim().parse::<u64>().ok();
        let persistent = number("nr_hugepages")?.saturating_sub(number("surplus_hugepages")?);
        Some((
            path.display().to_string(),
            persistent,
            number("nr_overcommit_hugepages")?,
        ))
    };
    let mut pools: Vec<_> = pools.filter_map(|entry| pool(&entry.path())).collect();
    pools.sort();
    pools
}

fn within(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// How it ended, and how long that took; a command that hangs is killed, and the test fails.
fn ended(child: &mut Child, reference: &Reference, what: &str) -> (ExitStatus, Took) {
    let mut ending = Ending::begin(child.id());
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return (status, ending.over(reference));
        }
        if ending.elapsed() > HANGS {
            child.kill().expect("killed");
            panic!("{what}: it does not end");
        }
        ending.look(child.id());
        thread::sleep(Duration::from_millis(2));
    }
}

/// What became of one command's strikes.
#[derive(Default)]
struct Tally {
    started: u64,
    struck: u64,
    slowest: Took,
    what: String,
}

impl Tally {
    fn add(&mut self, is_struck: bool, took: Took, what: &str) {
        self.started += 1;
        self.struck += u64::from(is_struck);
        if took.own() >= self.slowest.own() {
            (self.slowest, self.what) = (took, what.to_owned());
        }
    }

    /// In words; and whether a signal took longer than it may.
    fn told(&self) -> (String, bool) {
        let Took { wall, held_up, .. } = self.slowest;
        let line = format!(
            "{} of {} struck while they ran; the slowest end took {wall:?}, of which the machine kept it waiting {held_up:?} ({})",
            self.struck, self.started, self.what
        );
        (line, self.slowest.own() >= PROMPT)
    }
}

/// Files of a checkup that was struck: each is whole, or not there.
fn assert_whole(report: &Path, what: &str) {
    let is_report = |text: &str| text.trim_end().ends_with("</html>");
    let is_result = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    let result = report.with_file_name("result.json");
    for (file, is_whole) in [(report, &is_report as &dyn Fn(&str) -> bool), (&result, &is_result)] {
        if let Ok(text) = fs::read_to_string(file) {
            assert!(is_whole(&text), "{what}: {} has {} bytes", file.display(), text.len());
        }
    }
}

impl Bench {
    /// The command, ready to be struck.
    fn victim(&self, victim: &Victim, report: &Path) -> Command {
        let plan = self.plan(self.quiet_layers());
        let report = report.to_str().expect("a plain path");
        let word = |word: &&'static str| match *word {
            "PLAN" => plan.clone(),
            "REPORT" => report.to_owned(),
            word => word.to_owned(),
        };
        let words: Vec<String> = victim.words.iter().map(word).collect();
        if victim.words == ["undo"] {
            self.apply(&plan, &[]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.command(&words);
        command
            .env(MARK, std::process::id().to_string())
            .env("HOME", self.directory());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Journals of loans and of plans.
    fn all_journals(&self) -> Vec<String> {
        let folders = ["state", "state/plans"].map(|folder| self.directory().join(folder));
        let entries = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".jsonl")).collect()
    }

    /// The next command mends what a kill left; a command that a signal ended has mended it itself.
    fn mended(&self, victim: &Victim, signal: Signal) {
        let changes = matches!(victim.words[0], "apply" | "undo");
        let own = !changes && signal != Signal::KILL;
        assert!(
            !own || self.all_journals().is_empty(),
            "{:?}: {:?}",
            victim.words,
            self.all_journals()
        );
        self.undo();
        assert_eq!(self.all_journals(), [""; 0], "{:?}", victim.words);
    }
}

/// A signal is answered with its own code, or comes before or after the work.
fn is_sane(status: ExitStatus, signal: Signal) -> bool {
    match status.code() {
        None => true,
        Some(code) => signal != Signal::KILL && matches!(code, 0 | 1 | 2 | 3 | 130 | 143) || code <= 3,
    }
}

/// A command that is refused ends before it can be struck.
#[test]
fn every_command_that_is_struck_is_one_that_there_is() {
    for victim in &VICTIMS {
        let end = victim.words.iter().position(|word| *word == "--");
        let mut words = victim.words[..end.unwrap_or(victim.words.len())].to_vec();
        words.push("--help");
        let run = crate::common::run(&words);
        assert_eq!(run.code, Some(0), "{words:?}: {}", run.err);
    }
}

#[test]
fn whatever_is_struck_at_any_moment_leaves_everything_as_before() {
    let Some(bench) = Bench::set_up() else { return };
    let (strikes, is_asked) = strikes();
    let (before, pools_before) = (bench.picture(), pools());
    let reference = Reference::start();
    let mut tallies: [Tally; VICTIMS.len()] = std::array::from_fn(|_| Tally::default());
    for round in 0..strikes {
        let nth = (round % VICTIMS.len() as u64) as usize;
        let (victim, signal) = (VICTIMS[nth], signal(round));
        let what = format!("round {round}, {signal:?} to {:?}", victim.words);
        let folder = tempfile::tempdir_in(bench.directory()).expect("a directory");
        let report = folder.path().join("report.html");
        let mut child = bench.victim(&victim, &report).spawn().expect("starts");
        thread::sleep(victim.within.mul_f64(share(round)));
        let is_struck = child.try_wait().expect("a child").is_none();
        if is_struck {
            kill_process(Pid::from_child(&child), signal).expect("struck");
        }
        let (status, took) = ended(&mut child, &reference, &what);
        assert!(is_sane(status, signal), "{what}: {status:?}");
        let took = if victim.is_gigantic {
            took.without_system_time()
        } else {
            took
        };
        tallies[nth].add(is_struck, took, &what);
        assert_gone(&what, is_asked.then_some(&reference), || left_behind(MARK));
        assert_whole(&report, &what);
        bench.mended(&victim, signal);
        assert_eq!(bench.changed_since(&before), [""; 0], "{what}");
        if !within(OTHERS, || pools() == pools_before) {
            skipped(&format!(
                "others changed a pool during {what}: {pools_before:?} -> {:?}",
                pools()
            ));
        }
    }
    let told = tallies.each_ref().map(Tally::told);
    for (victim, (line, _)) in VICTIMS.iter().zip(&told) {
        noted(&format!("{}: {line}", victim.words.join(" ")));
    }
    let is_any = tallies.iter().any(|tally| tally.struck > 0);
    assert!(is_any, "every command ended before it was struck");
    assert!(!is_asked || told.iter().all(|(_, is_slow)| !is_slow), "{told:?}");
}
