//! Rules find in a capture what they find on its machine, and it keeps no secret.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{done, machines, run, skipped, text, valid};

/// Ids of findings, and of rules that could not be judged.
type Ids = (BTreeSet<String>, BTreeSet<String>);

fn diagnosis(root: Option<&Path>) -> Ids {
    let at = root.map(|root| ["--root", text(root)]);
    let words: Vec<&str> = at.iter().flatten().copied().chain(["doctor", "--json"]).collect();
    let data = valid(&run(&words).out)["data"].take();
    let ids = |list: &str| -> BTreeSet<String> {
        let items = data[list].as_array().expect("a list").iter();
        items
            .map(|item| item["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    (ids("findings"), ids("not_judged"))
}

/// What needs hugewise's own journal, which is no part of a capture.
const FROM_THE_JOURNAL: &str = "D24";

/// A capture is read without haste, so that rules may be judged for which there was no time on the machine; all others
/// say the same.
fn agrees(captured: &Ids, live: &Ids) -> bool {
    let more: BTreeSet<&String> = captured.0.difference(&live.0).collect();
    let mut unjudged = captured.1.difference(&live.1);
    live.0.is_subset(&captured.0)
        && more.iter().all(|id| live.1.contains(*id))
        && unjudged.all(|id| id == FROM_THE_JOURNAL)
}

#[test]
fn the_doctor_finds_in_a_capture_what_it_found_on_the_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("here.tree");
    // Others may work on this machine: it must have stood still around the capture for the two to be compared, and a program of theirs
    // may have lived during the capture alone.
    let mut differ = None;
    for _ in 0..5 {
        let before = diagnosis(None);
        done(&["snapshot", text(&file), "--yes"]);
        let captured = diagnosis(Some(&file));
        let after = diagnosis(None);
        if before == after {
            if agrees(&captured, &before) {
                return;
            }
            let now = Some(format!("captured {captured:?}, live {before:?}"));
            assert_ne!(now, differ, "twice alike");
            differ = now;
        }
    }
    skipped("what the doctor finds here changes from one moment to the next");
}

#[test]
fn the_doctor_finds_in_a_capture_of_a_capture_what_it_found_in_the_first() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, machine) in machines() {
        let again = directory.path().join(format!("{name}.tree"));
        done(&["--root", text(&machine), "snapshot", text(&again)]);
        assert_eq!(diagnosis(Some(&again)), diagnosis(Some(&machine)), "{name}");
    }
}

#[test]
fn what_was_denied_stays_denied() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = (directory.path().join("1.tree"), directory.path().join("2.tree"));
    let dark = [
        "/proc/buddyinfo",
        "/sys/kernel/mm/hugepages",
        "/sys/kernel/mm/transparent_hugepage/khugepaged",
        "/etc/sysctl.d",
        "/sys/devices/system/cpu/cpu0/cache",
    ];
    let lines: String = dark.iter().map(|path| format!("denied {path}\n")).collect();
    let archive = format!(
        "hugewise tree 1\n{lines}line /proc/sys/vm/nr_hugepages 0\nline /sys/devices/system/cpu/cpu0/online 1\nend\n"
    );
    std::fs::write(&first, archive).expect("written");
    done(&["--root", text(&first), "snapshot", text(&second)]);
    let captured = std::fs::read_to_string(&second).expect("an archive");
    for path in dark {
        assert!(captured.contains(&format!("denied {path}\n")), "{path} in\n{captured}");
    }
}

/// A shell that calls itself a database and has a password among its arguments.
struct Keeper(Child);

impl Keeper {
    fn start() -> Self {
        let child = Command::new("/bin/sh")
            .arg0("/usr/bin/redis-server")
            .args([
                "-c",
                "read line",
                "redis",
                "--requirepass",
                "hunter2",
                "redis://me:hunter2@db",
            ])
            .env("DB_PASSWORD", "hunter2")
            .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=7")
            .env("JAVA_TOOL_OPTIONS", "-Xmx1g -Dkey.password=hunter2")
            .stdin(Stdio::piped())
            .spawn();
        Self(child.expect("a shell"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn secrets_stay_out_and_the_list_says_which() {
    let keeper = Keeper::start();
    let pid = keeper.0.id();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("here.tree");
    let told = done(&["snapshot", text(&file)]);
    let captured = std::fs::read_to_string(&file).expect("an archive");
    assert!(!captured.contains("hunter2"), "a password is in the capture");
    for kept in [
        "glibc.malloc.tcache_count=7",
        "-Xmx1g -Dkey.password=<redacted>",
        "redis://me:<redacted>@db",
    ] {
        assert!(captured.contains(kept), "no {kept}");
    }
    for line in [
        format!("/proc/{pid}/cmdline: the value of --requirepass"),
        format!("/proc/{pid}/environ: the value of -Dkey.password"),
    ] {
        assert!(captured.contains(&format!("|{line}\n")), "no {line} in the list");
        assert!(
            told.err.contains(&line) || told.err.contains("more like these"),
            "{}",
            told.err
        );
    }
}

#[test]
fn without_processes_nothing_of_them_is_captured() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("here.tree");
    done(&["snapshot", text(&file), "--no-processes"]);
    let captured = std::fs::read_to_string(&file).expect("an archive");
    let of_processes = captured.lines().filter(|line| {
        let path = line.split(' ').nth(1).unwrap_or_default();
        !line.starts_with('|')
            && path
                .strip_prefix("/proc/")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    assert_eq!(of_processes.count(), 0);
    assert!(captured.contains("/proc/meminfo"));
}
