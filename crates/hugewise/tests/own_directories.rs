//! Where a comparison keeps what it builds and what it finished: in this user's own directories, or nowhere.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use common::{Run, hugewise, skipped, told};

const NOBODY: u32 = 65534;

/// Without a home, as in a service, and with a shared directory for temporary files.
fn compare(shared: &Path, home: Option<&Path>, what: &[&str]) -> Run {
    let mut command: Command = hugewise(&["compare", "--arms", "base,thp", "--runs", "2", "--no-pool"]);
    command
        .args(what)
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .env("TMPDIR", shared);
    if let Some(home) = home {
        command.env("HOME", home);
    }
    told(command.output().expect("it starts"))
}

/// What another user put there to be run: `memtest`, with the marker that earlier versions believed.
fn planted(cache: &Path, spoor: &Path) {
    let folder = cache.join(format!("hugewise/workloads/memtest-{}", env!("CARGO_PKG_VERSION")));
    fs::create_dir_all(&folder).expect("a directory");
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/memtest/memtest.c");
    let source = fs::read_to_string(recipe).expect("the recipe's source");
    fs::write(folder.join("built"), source + "cc -O2 -o memtest memtest.c").expect("a marker");
    let script = format!("#!/bin/sh\ntouch {}\necho 'latency: 1.0 ns'\n", spoor.display());
    fs::write(folder.join("memtest"), script).expect("a program");
    fs::set_permissions(folder.join("memtest"), Permissions::from_mode(0o755)).expect("chmod");
}

#[test]
fn without_a_home_nothing_is_kept_in_a_shared_directory() {
    let shared = tempfile::tempdir().expect("a directory");
    fs::set_permissions(shared.path(), Permissions::from_mode(0o1777)).expect("chmod");
    let spoor = shared.path().join("spoor");
    planted(shared.path(), &spoor);
    let run = compare(shared.path(), None, &["--workload", "memtest"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("set one of them, as in HOME=/root"), "{}", run.err);
    assert!(!spoor.exists(), "another user's program was run");
    fs::remove_dir_all(shared.path().join("hugewise")).expect("removed");
    // The log of finished runs, through a link.
    let target = shared.path().join("target");
    fs::create_dir(&target).expect("a directory");
    symlink(&target, shared.path().join("hugewise")).expect("a link");
    let run = compare(shared.path(), None, &["--", "true"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("--log FILE"), "{}", run.err);
    assert_eq!(fs::read_dir(target).expect("a list").count(), 0);
    let log = shared.path().join("log");
    let run = compare(
        shared.path(),
        None,
        &["--log", log.to_str().expect("plain"), "--", "true"],
    );
    assert_eq!(run.code, Some(0), "--log needs no home: {}", run.err);
}

#[test]
fn the_log_of_a_killed_comparison_is_named_to_the_same_command_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let state = home.path().join(".local/state/hugewise");
    fs::create_dir_all(&state).expect("a directory");
    let run = |words: &[&str]| {
        let run = compare(home.path(), Some(home.path()), words);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.err
    };
    // No process has this number.
    let log = state.join("compare-0-1.jsonl");
    let name = log.to_str().expect("plain");
    run(&["--log", name, "--", "true"]);
    let said = format!("--resume {name} goes on with it");
    let same = run(&["--", "true"]);
    assert!(
        same.contains("of this command was ended after")
            && same.contains("with the same arms and options")
            && same.contains(&said),
        "{same}"
    );
    let other = run(&["--", "sleep", "0"]);
    assert!(!other.contains(name) && log.exists(), "{other}");
}

#[test]
fn root_keeps_and_runs_nothing_in_another_user_s_home() {
    if !rustix::process::geteuid().is_root() {
        skipped("another user's home needs root");
        return;
    }
    let temp = tempfile::tempdir().expect("a directory");
    let home = temp.path().join("home");
    let spoor = temp.path().join("spoor");
    planted(&home.join(".cache"), &spoor);
    let given = Command::new("chown")
        .args(["-R", &NOBODY.to_string()])
        .arg(&home)
        .status();
    assert!(given.expect("chown").success());
    for what in [&["--workload", "memtest"][..], &["--", "true"]] {
        let run = compare(temp.path(), Some(&home), what);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(
            run.err.contains("belongs to user 65534") && run.err.contains("set HOME"),
            "{}",
            run.err
        );
    }
    assert!(!spoor.exists() && !home.join(".local").exists());
}
