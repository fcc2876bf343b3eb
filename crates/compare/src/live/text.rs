//! Texts that metrics are looked for in, beside a program's own output. None of them is waited for without end.

use std::sync::Arc;
use std::time::Duration;

use host::Input;
use process::rights::{ShutIn, User};

use super::arm::Arm;
use super::shell::{command, ended};
use crate::metric::From;

/// A command that does not answer for this long will not.
const TIMEOUT: Duration = Duration::from_secs(10);

impl From {
    /// Its text now, read with no more than these rights, waited for within a limit and until the user has had enough.
    ///
    /// # Errors
    /// Why there is none, with the place.
    pub fn text(&self, shut_in: Option<&ShutIn>, stop: &dyn Fn() -> bool) -> Result<String, String> {
        match self {
            Self::File(path) => of_file(path, shut_in.and_then(|shut_in| shut_in.user)),
            Self::Command(line) => of_command(line, shut_in, TIMEOUT, stop),
        }
    }
}

/// A file's text; where it is in a folder of another user, that user's own. A pipe or a device is no file of results: reading it may have no end.
fn of_file(path: &str, user: Option<User>) -> Result<String, String> {
    if let Some(user) = user {
        let text = Input::Metrics.text_of_user(path.as_ref(), user.uid);
        return text.map_err(|error| format!("{path}: {error}"));
    }
    let is_file = std::fs::metadata(path).map(|about| about.is_file());
    if !is_file.map_err(|error| format!("{path}: {error}"))? {
        return Err(format!("{path}: it is not a regular file"));
    }
    let bytes = Input::Metrics.read(path.as_ref());
    let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a command of the shell prints within the time; then its process group is ended.
fn of_command(line: &str, shut_in: Option<&ShutIn>, time: Duration, stop: &dyn Fn() -> bool) -> Result<String, String> {
    let arm = Arm {
        shut_in: shut_in.cloned().map(Arc::new),
        ..Arm::default()
    };
    let done = command(&arm, line, Some(time), stop);
    let done = done.map_err(|error| format!("from=cmd: `{line}`: {error}"))?;
    let Some(done) = done else {
        return Err(format!(
            "from=cmd: `{line}` was still running after {} s (its process group is ended)",
            time.as_secs_f64()
        ));
    };
    if done.ended.status.success() {
        return Ok(done.outputs.output());
    }
    Err(ended(line, &done))
}

#[cfg(test)]
mod tests {
    use super::{TIMEOUT, of_command, of_file};
    use std::time::Duration;

    #[test]
    fn errors_name_the_place() {
        assert!(
            of_command("echo why >&2; exit 3", None, TIMEOUT, &|| false)
                .expect_err("fails")
                .contains("exit status: 3, what ends with `why`")
        );
        assert!(
            of_file("/nonexistent/x", None)
                .expect_err("nowhere")
                .contains("/nonexistent/x")
        );
    }

    #[test]
    fn what_never_answers_ends_with_all_that_it_started_and_is_named() {
        // The sleep is a child of the shell, in its group.
        let mark = format!("3600.{}", std::process::id());
        let line = format!(": hangs; sleep {mark}; :");
        let error = of_command(&line, None, Duration::from_millis(100), &|| false).expect_err("it hangs");
        assert!(
            error.contains("from=cmd") && error.contains("still running after 0.1 s"),
            "{error}"
        );
        let left = || {
            let all = std::fs::read_dir("/proc").expect("/proc").flatten();
            let arguments = all.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
            arguments
                .filter(|arguments| String::from_utf8_lossy(arguments).contains(&mark))
                .count()
        };
        // The sleep is no child of this process: it ends when the kernel next runs it.
        let began = std::time::Instant::now();
        while left() > 0 && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(left(), 0);
        assert!(
            of_command("sleep 3600", None, TIMEOUT, &|| true).is_err(),
            "the user has had enough"
        );
    }

    #[test]
    fn of_an_output_without_end_the_last_part_is_searched() {
        let long = of_command(
            "echo first 1; head -c 40000000 /dev/zero; echo last 2",
            None,
            TIMEOUT,
            &|| false,
        )
        .expect("an output");
        let find = |name: &str| crate::metric::find(&format!("{name} ([0-9])").parse().expect("a pattern"), &long);
        assert_eq!(find("last"), Ok(2.0));
        let why = find("first").expect_err("not kept");
        assert!(why.ends_with("(of an output only the last 1M is searched)"), "{why}");
    }

    #[test]
    fn only_regular_files_are_read() {
        let pipe = std::env::temp_dir().join(format!("hugewise-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()), "mkfifo");
        let error = of_file(&pipe.display().to_string(), None).expect_err("a pipe");
        std::fs::remove_file(&pipe).expect("removed");
        assert!(error.contains("not a regular file"), "{error}");
        assert!(
            of_file("/dev/zero", None)
                .expect_err("endless")
                .contains("not a regular file")
        );
    }
}
