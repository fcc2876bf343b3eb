//! Programs that are found or not, and what a child has of its parent.

mod syscall;

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use chase::counters::program::{Countable, Event};

use super::super::syscall::wait;
use super::{Failure, Order, Step, files, variables};
use crate::spawn::Bound;
use crate::spawn::ThpSwitch;

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
    let (mut from, to) = std::io::pipe().expect("a pipe");
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let order = Order {
        words: &words,
        env: with.env,
        unset: with.unset,
        thp: with.thp,
        bound: &Bound::default(),
        outputs: [to.as_fd(), to.as_fd()],
        events: with.events,
    };
    let started = order.start()?;
    assert_eq!(started.counters.as_ref().map(Vec::len), Some(with.events.len()));
    drop(to);
    let mut text = String::new();
    from.read_to_string(&mut text).expect("text");
    wait(started.pid).expect("ends");
    Ok(text)
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
    has_nothing_of_its_parents();
}

#[test]
fn so_it_is_where_a_filter_does_not_know_the_newer_call() {
    let filtered = std::thread::spawn(|| syscall::refuse_clone3().map(|()| has_nothing_of_its_parents()));
    if let Err(why) = filtered.join().expect("no panic") {
        #[allow(clippy::print_stderr)]
        {
            testing::skipped(&format!("no filter of system calls: {why}"));
        }
    }
}

fn has_nothing_of_its_parents() {
    let told = output(&["cat", "/proc/self/status"], &With::default()).expect("runs");
    assert_eq!([mask(&told, "SigBlk:"), mask(&told, "SigCgt:")], [0, 0]);
    // Whoever started this process may have had one ignored; Rust's runtime adds one.
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
fn a_name_is_looked_for_where_the_childs_path_says() {
    let of = |name: &str, path: Option<&str>| files(OsStr::new(name), path.map(OsStr::new)).expect("names");
    let texts =
        |names: &[&str]| -> Vec<CString> { names.iter().map(|name| CString::new(*name).expect("a text")).collect() };
    assert_eq!(of("ls", Some("/a:/b")), texts(&["/a/ls", "/b/ls"]));
    assert_eq!(of("./ls", Some("/a")), texts(&["./ls"]));
    assert_eq!(of("ls", None), texts(&["/bin/ls", "/usr/bin/ls"]));
}

#[test]
fn what_is_set_stands_for_what_was_there_and_what_is_unset_is_not_there() {
    let own = [("A", c"A=1"), ("B", c"B=1"), ("D", c"D=1")];
    let own = own.map(|(name, pair)| (OsString::from(name), pair.to_owned())).into();
    let set = [("B", "2"), ("C", "2")].map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let all = variables(&own, &set.into(), &["D".to_owned()]).expect("texts");
    assert_eq!(all, [c"A=1", c"B=2", c"C=2"]);
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
