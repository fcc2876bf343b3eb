//! Changes of the running machine that undo themselves, and doctor's answer.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Run, hugewise, run, told};
use crate::programs::Planted;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Only one test at a time touches the machine, in this program and in others.
pub(crate) struct Alone {
    _others: Option<File>,
    _here: MutexGuard<'static, ()>,
}

impl Alone {
    pub(crate) fn here() -> Self {
        let here = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let file = File::create(std::env::temp_dir().join("hugewise-live-tests.lock")).ok();
        let others = file.filter(|file| file.lock().is_ok());
        Self {
            _others: others,
            _here: here,
        }
    }
}

/// What doctor says as JSON.
pub(crate) struct Diagnosis(pub(crate) Value);

impl Diagnosis {
    pub(crate) fn told(run: &Run) -> Self {
        assert!(matches!(run.code, Some(0 | 1)), "{:?}: {}", run.code, run.err);
        let mut result: Value = serde_json::from_str(&run.out).expect("JSON");
        Self(result["data"].take())
    }

    /// The first finding of a rule that has this text.
    pub(crate) fn of(&self, id: &str, text: &str) -> Option<Value> {
        let findings = self.0["findings"].as_array().expect("findings");
        let mut ours = findings.iter().filter(|finding| finding["id"] == id);
        ours.find(|finding| finding.to_string().contains(text)).cloned()
    }

    /// A finding of a rule about a program.
    pub(crate) fn about(&self, id: &str, program: &Planted) -> Option<Value> {
        self.of(id, &program.title())
    }

    /// Why the rule could not look, if it could not.
    fn unjudged(&self, id: &str) -> Option<&str> {
        let not = self.0["not_judged"].as_array().expect("a list");
        let reason = not.iter().find(|not| not["id"] == id)?;
        reason["reason"].as_str()
    }
}

/// The finding of a rule about a program. On a busy machine doctor runs out of the time that it takes for mappings, and says
/// so; then it is asked again.
pub(crate) fn found_about(id: &str, program: &Planted) -> Result<Value, String> {
    let mut why = String::new();
    for _ in 0..8 {
        let told = doctor();
        if let Some(finding) = told.about(id, program) {
            return Ok(finding);
        }
        let Some(reason) = told.unjudged(id) else {
            panic!("{id} looked and did not find {}: {:#}", program.title(), told.0);
        };
        reason.clone_into(&mut why);
        std::thread::sleep(Duration::from_millis(300));
    }
    Err(why)
}

pub(crate) fn doctor() -> Diagnosis {
    Diagnosis::told(&run(&["doctor", "--json"]))
}

/// Doctor in a mount namespace of its own, after these commands; `None` where there can be no such namespace.
pub(crate) fn doctor_after(commands: &str) -> Option<Diagnosis> {
    let program = hugewise(&[]).get_program().to_owned();
    let script = format!("{commands}\nexec \"$0\" doctor --json");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", &script]);
    let run = told(command.arg(program).stdin(Stdio::null()).output().ok()?);
    matches!(run.code, Some(0 | 1)).then_some(())?;
    run.out.starts_with('{').then(|| Diagnosis::told(&run))
}

/// A command that is carried out when the value goes, or when this process ends in whatever way: it waits for its input
/// to end.
pub(crate) struct Undo(Child);

impl Drop for Undo {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Undo {
    /// There is nothing to undo.
    fn forget(mut self) {
        let _ = self.0.kill();
    }
}

/// Undone by this command of the shell, in which `$1` and so on are the words.
pub(crate) fn undone_by(command: &str, words: &[&str]) -> Undo {
    let script = format!("trap '' INT TERM HUP; cat >/dev/null; {command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "undo"]).args(words);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Undo(shell.spawn().expect("a shell"))
}

/// A setting with another value for a while.
pub(crate) struct Setting {
    _undo: Undo,
}

impl Setting {
    pub(crate) fn change(path: &str, to: &str) -> Option<Self> {
        File::options().write(true).open(path).ok()?;
        let before = fs::read_to_string(path).ok()?;
        let chosen = before
            .split_whitespace()
            .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        let undo = undone_by("echo \"$1\" >\"$2\"", &[chosen.unwrap_or(before.trim()), path]);
        fs::write(path, to).ok()?;
        Some(Self { _undo: undo })
    }
}

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// The pool of 2M pages with some more of them for a while. Others may grow and shrink it at the same time.
pub(crate) struct Pool {
    _undo: Undo,
}

impl Pool {
    /// `None` where that many are not available; then none is kept.
    pub(crate) fn grow(pages: u64) -> Option<Self> {
        File::options().write(true).open(format!("{POOL}/nr_hugepages")).ok()?;
        let persistent = || read("nr_hugepages") - read("surplus_hugepages");
        let before = persistent();
        let undo = undone_by(
            "cd \"$1\" && echo $(($(cat nr_hugepages) - $(cat surplus_hugepages) - $2)) >nr_hugepages",
            &[POOL, &pages.to_string()],
        );
        let grown = fs::write(format!("{POOL}/nr_hugepages"), (before + pages).to_string());
        if grown.is_ok() && persistent() >= before + pages {
            return Some(Self { _undo: undo });
        }
        // Less than asked for goes back at once: the undoing would take all of it from others.
        let _ = fs::write(format!("{POOL}/nr_hugepages"), before.to_string());
        undo.forget();
        None
    }

    pub(crate) fn read(&self, name: &str) -> u64 {
        read(name)
    }
}

fn read(name: &str) -> u64 {
    let text = fs::read_to_string(format!("{POOL}/{name}")).expect("a count");
    text.trim().parse().expect("a number")
}

/// A Python program that prints a line and then sleeps.
pub(crate) fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    let whole = format!("{script}\nprint('ready', flush=True)\nimport sys, time\nsys.stdin.read()\n");
    command.args(["-c", &whole]);
    command
}
