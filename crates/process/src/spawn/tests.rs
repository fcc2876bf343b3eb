//! Programs that are found or not, and what a child has of its parent.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

use chase::counters::program::{Countable, Event};

use super::{Failure, Order, Outputs, Step, wait};
use crate::syscall::ThpSwitch;

/// How a program is started here.
#[derive(Default)]
struct With<'a> {
    thp: ThpSwitch,
    events: &'a [Countable],
    env: &'a [(OsString, OsString)],
    unset: &'a [String],
}

/// Starts words and waits; gives what was written.
fn output(words: &[&str], with: &With<'_>) -> Result<String, Failure> {
    let outputs = Outputs::new().expect("files");
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let order = Order {
        env: with.env,
        unset: with.unset,
        thp: with.thp,
        events: with.events,
        ..Order::plain(&words)
    };
    let started = order.start(&outputs, None, false)?;
    wait(started.pid).expect("ends");
    let counted = started.recorders.counters.map(|mut counters| counters.read().len());
    assert_eq!(counted, Some(with.events.len()));
    Ok(outputs.all())
}

fn status() -> String {
    fs::read_to_string("/proc/self/status").expect("status")
}

fn line<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find(|line| line.starts_with(name)).expect("the line")
}

fn mask(status: &str, name: &str) -> u64 {
    let digits = line(status, name).rsplit('\t').next().expect("digits");
    u64::from_str_radix(digits, 16).expect("a mask")
}

#[test]
fn a_child_has_no_signal_blocked_handled_or_newly_ignored_a_group_of_its_own_and_no_file_of_its_parents() {
    let told = output(&["cat", "/proc/self/status"], &With::default()).expect("runs");
    assert_eq!([mask(&told, "SigBlk:"), mask(&told, "SigCgt:")], [0, 0]);
    // The parent of this process may have had one ignored; Rust's runtime adds one.
    assert_eq!(
        mask(&told, "SigIgn:"),
        mask(&status(), "SigIgn:") & !(1 << (libc::SIGPIPE - 1))
    );
    let stat = output(&["cat", "/proc/self/stat"], &With::default()).expect("runs");
    let numbers: Vec<&str> = stat.split(' ').collect();
    assert_eq!(numbers[0], numbers[4], "{stat}");
    let _more = File::open("/dev/zero").expect("a file");
    let listed = output(&["ls", "-l", "/proc/self/fd"], &With::default()).expect("runs");
    assert!(
        listed.contains("/dev/null") && !listed.contains("/dev/zero"),
        "{listed}"
    );
}

#[test]
fn the_switch_is_the_childs_alone_even_of_one_that_never_runs() {
    let off = With {
        thp: ThpSwitch::Off,
        ..With::default()
    };
    let told = output(&["cat", "/proc/self/status"], &off).expect("runs");
    assert_eq!(line(&told, "THP_enabled"), "THP_enabled:\t0");
    assert!(output(&["/no/such/program"], &off).is_err());
    let left = output(&["cat", "/proc/self/status"], &With::default()).expect("runs");
    assert_eq!(line(&left, "THP_enabled"), line(&status(), "THP_enabled"));
}

#[test]
fn what_cannot_be_executed_says_why_and_a_script_without_a_first_line_is_the_shells() {
    let refused = |words: &[&str]| {
        let Failure { step, error } = output(words, &With::default()).expect_err("no program");
        (step, error.kind())
    };
    use std::io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
    assert_eq!(refused(&["no-such-program"]), (Step::Program, NotFound));
    assert_eq!(refused(&["true\0"]), (Step::Program, InvalidInput));
    let script = std::env::temp_dir().join(format!("hugewise-script-{}", std::process::id()));
    fs::write(&script, "echo \"$0 $1\"\n").expect("written");
    let name = script.to_str().expect("a name");
    assert_eq!(refused(&[name]), (Step::Program, PermissionDenied));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
    let told = output(&[name, "word"], &With::default());
    fs::remove_file(&script).expect("removed");
    assert_eq!(told.expect("runs"), format!("{name} word\n"));
}

#[test]
fn counters_come_with_the_child_or_not_at_all() {
    let events: Vec<Countable> = Countable::probe(Event::Migrations).into_iter().collect();
    let with = With {
        events: &events,
        ..With::default()
    };
    output(&["true"], &with).expect("runs");
    assert!(output(&["/no/such/program"], &with).is_err());
}

#[test]
fn a_child_in_this_processs_memory_changes_none_of_its_standard_files() {
    let files = || [0, 1, 2].map(|number| fs::read_link(format!("/proc/self/fd/{number}")).expect("open"));
    let before = files();
    assert_eq!(output(&["echo", "text"], &With::default()).expect("runs"), "text\n");
    assert_eq!(files(), before);
}

#[test]
fn a_name_is_looked_for_where_the_childs_path_says() {
    let folder = tempfile::tempdir().expect("a directory");
    let script = folder.path().join("hugewise-only-here");
    fs::write(&script, "#!/bin/sh\necho found\n").expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = |folder: &OsStr| [(OsString::from("PATH"), folder.to_owned())];
    let found = |env: &[(OsString, OsString)]| {
        let with = With { env, ..With::default() };
        output(&["hugewise-only-here"], &with).map_err(|failure| failure.step)
    };
    assert_eq!(found(&path(folder.path().as_os_str())), Ok("found\n".to_owned()));
    assert_eq!(found(&[]), Err(Step::Program));
}

#[test]
fn of_a_variable_that_is_set_twice_the_last_counts_and_one_that_is_unset_is_not_set() {
    let env = [("A", "1"), ("A", "2"), ("B", "3")];
    let env = env.map(|(name, value)| (format!("HUGEWISE_{name}").into(), value.into()));
    let with = With {
        env: &env,
        unset: &["HUGEWISE_B".to_owned(), "HOME".to_owned()],
        ..With::default()
    };
    let told = output(&["sh", "-c", "echo $HUGEWISE_A-$HUGEWISE_B-$HOME"], &with);
    assert_eq!(told.expect("runs"), "2--\n");
}
