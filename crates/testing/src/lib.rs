//! How a test says that it was not made here: because of the machine, or because a program is missing.
#![allow(clippy::print_stderr)]

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// The machine, its kernel or its load does not let this test be made: no PMU, no free huge page, another program at the
/// same pool. That is no failure anywhere.
pub fn skipped(why: &str) {
    record("machine", why);
}

/// A program or library is not installed. Where `CI` is `true` that is a failure: `.ci/run` installs all of them.
///
/// # Panics
/// In CI.
pub fn missing(what: &str) {
    record("missing", what);
    assert_ne!(
        env::var("CI").as_deref(),
        Ok("true"),
        "in CI no test is skipped because {what} is missing: `.ci/run` installs it"
    );
}

/// Standard error is shown of failed tests only, so the line goes to a file, too, where one is named.
fn record(sort: &str, why: &str) {
    let thread = std::thread::current();
    let why = why.trim().replace('\n', " ");
    eprintln!("skipped: {sort}: {why}");
    let Some(path) = env::var_os("HUGEWISE_TEST_SKIPPED") else {
        return;
    };
    let line = format!("{sort}: {why}\t{}\n", thread.name().unwrap_or("a test"));
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "HUGEWISE_TEST_SKIPPED: {written:?}");
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// This test started again by itself, with other surroundings.
    const ROLE: &str = "HUGEWISE_TEST_ROLE";

    #[test]
    fn a_missing_program_fails_in_ci_alone_and_every_reason_is_recorded() {
        match std::env::var(ROLE).as_deref() {
            Ok("missing") => return super::missing("a program"),
            Ok("machine") => return super::skipped("this machine has\nno PMU"),
            _ => {}
        }
        let folder = std::env::temp_dir().join(format!("hugewise-testing-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let file = folder.join("skipped");
        let run = |role: &str, ci: &str| {
            let mut command = Command::new(std::env::current_exe().expect("this test"));
            command.arg("a_missing_program").env(ROLE, role).env("CI", ci);
            let output = command.env("HUGEWISE_TEST_SKIPPED", &file).output();
            output.expect("runs").status.success()
        };
        let ended = [("missing", "true"), ("missing", ""), ("machine", "true")].map(|(role, ci)| run(role, ci));
        let lines = std::fs::read_to_string(&file).expect("lines");
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(ended, [false, true, true]);
        let reasons: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(
            reasons,
            [
                "missing: a program",
                "missing: a program",
                "machine: this machine has no PMU"
            ]
        );
        assert!(
            lines.contains("\ttests::a_missing_program_fails_in_ci_alone"),
            "{lines}"
        );
    }
}
