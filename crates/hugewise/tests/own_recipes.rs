//! Recipes and experiments of one's own: they run as the built-in ones do, and never if another user can change them.

#[allow(dead_code)]
#[path = "../build.rs"]
mod build;
mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use common::{hugewise, skipped, told, valid};
use tempfile::TempDir;

/// What another user would have run; it leaves a file.
const RECIPE: &str = "\
about = 'Sorts'
needs = [{ program = 'sort', install = 'coreutils' }]
build = ['seq 1 {lines} > numbers', './mark.sh {marked}']
command = ['sort', '{dir}/numbers', '-o', '{scratch}/sorted']
metrics = ['cpu']
parameters = { lines = '1000', marked = '/nonexistent' }
";
const EXPERIMENTS: &str = "\
[[experiment]]
name = 'sort'
title = 'Sorting'
workload = './mine:marked=MARKED'
arms = ['base', 'system']
time = '1m'
memory = '1M'
";

struct Own {
    folder: TempDir,
}

impl Own {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let own = Self { folder };
        fs::create_dir(own.path("mine")).expect("a directory");
        own.put("mine/recipe.toml", RECIPE);
        own.put("mine/mark.sh", "#!/bin/sh\necho built > \"$1\"\n");
        fs::set_permissions(own.path("mine/mark.sh"), Permissions::from_mode(0o755)).expect("chmod");
        let marked = own.path("marked");
        own.put(
            "own.toml",
            &EXPERIMENTS.replace("MARKED", marked.to_str().expect("a name")),
        );
        own
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// What a command prints to standard error, and how it ends.
    fn run(&self, words: &[&str], sudo: Option<&str>) -> common::Run {
        let mut command = hugewise(words);
        command.current_dir(self.folder.path());
        command
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("SUDO_UID");
        sudo.iter().for_each(|uid| {
            command.env("SUDO_UID", uid);
        });
        told(command.output().expect("runs"))
    }

    fn compare(&self, sudo: Option<&str>) -> common::Run {
        let workload = format!("./mine:marked={}", self.path("marked").display());
        let words = [
            "compare",
            "--workload",
            &workload,
            "--arms",
            "base,system",
            "--runs",
            "1",
            "--warm-up",
            "0",
            "--json",
        ];
        self.run(&words, sudo)
    }

    fn assert_refused(&self, sudo: Option<&str>, part: &str) {
        let suite = [
            "suite",
            "--experiments",
            "own.toml",
            "--no-host-page",
            "--budget",
            "10s",
        ];
        for run in [self.compare(sudo), self.run(&suite, sudo)] {
            assert_ne!(run.code, Some(0), "{}", run.err);
            assert!(
                run.err.contains(part) && run.err.contains("only you and root"),
                "{}",
                run.err
            );
            assert!(!self.path("marked").exists(), "something of it ran");
        }
    }
}

fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), None).expect("chown");
}

#[test]
fn a_recipe_of_one_s_own_is_built_in_a_copy_and_runs() {
    let own = Own::new();
    let run = own.compare(None);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let runs = valid(&run.out)["data"]["arms"][1]["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some(1));
    assert!(own.path("marked").exists());
    assert!(!own.path("mine/numbers").exists(), "its directory stays as it is");
    let listed = own.run(&["suite", "--list", "--experiments", "own.toml", "--json"], None);
    let list = valid(&listed.out);
    let experiments = list["data"]["experiments"].as_array().expect("a list");
    assert_eq!(experiments.len(), 1, "the built-in ones are not in it");
    assert_eq!(experiments[0]["experiment"]["name"], "sort");
}

#[test]
fn what_others_may_change_is_refused_before_anything_of_it_runs() {
    for (changed, mode) in [("mine/recipe.toml", 0o666), ("mine", 0o777), ("mine/mark.sh", 0o777)] {
        let own = Own::new();
        fs::set_permissions(own.path(changed), Permissions::from_mode(mode)).expect("chmod");
        own.assert_refused(None, "may be changed by other users");
    }
    let own = Own::new();
    fs::set_permissions(own.path("own.toml"), Permissions::from_mode(0o666)).expect("chmod");
    let run = own.run(&["suite", "--list", "--experiments", "own.toml"], None);
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("own.toml may be changed by other users"),
        "{}",
        run.err
    );
}

/// An access list by which the owner and user 61001 read and write, and the group reads.
fn access_list() -> Vec<u8> {
    let none = u32::MAX;
    let entries = [
        (1_u16, 6_u16, none),
        (2, 6, 61_001),
        (4, 4, none),
        (16, 6, none),
        (32, 4, none),
    ];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat()
}

/// A user whose own group, of the same number, is another user's first group, too.
fn shared_group() -> Option<u32> {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let numbers = accounts.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    });
    let numbers: Vec<(u32, u32)> = numbers.collect();
    let is_shared = |(user, group): &&(u32, u32)| {
        user == group && *user != 0 && numbers.iter().any(|(other, theirs)| other != user && theirs == group)
    };
    numbers.iter().find(is_shared).map(|(user, _)| *user)
}

#[test]
fn a_recipe_that_another_user_may_write_by_an_access_list_does_not_run() {
    if !rustix::process::geteuid().is_root() {
        return skipped("giving files to another user needs root");
    }
    let own = Own::new();
    let recipe = own.path("mine/recipe.toml");
    chown(&recipe, Some(1234), Some(1234)).expect("chown");
    let set = rustix::fs::setxattr(
        &recipe,
        "system.posix_acl_access",
        &access_list(),
        rustix::fs::XattrFlags::empty(),
    );
    if set.is_err() {
        return skipped("this kernel has no access lists on this file system");
    }
    own.assert_refused(Some("1234"), "may be changed by other users");
}

#[test]
fn a_recipe_of_a_private_group_with_another_member_does_not_run() {
    if !rustix::process::geteuid().is_root() {
        return skipped("giving files to another user needs root");
    }
    let Some(user) = shared_group() else {
        return skipped("this machine has no user whose group is another's, too");
    };
    let own = Own::new();
    let recipe = own.path("mine/recipe.toml");
    chown(&recipe, Some(user), Some(user)).expect("chown");
    fs::set_permissions(&recipe, Permissions::from_mode(0o664)).expect("chmod");
    own.assert_refused(Some(&user.to_string()), "may have other members");
}

#[test]
fn a_file_of_arms_that_others_may_change_is_not_read() {
    let own = Own::new();
    let marked = own.path("marked");
    own.put(
        "arms.toml",
        &format!("[marked]\nlike = 'base'\nbefore = 'touch {}'\n", marked.display()),
    );
    let words = "compare --arms-file arms.toml --arms base,marked --runs 1 --warm-up 0 --no-pool --log log -- true";
    let words: Vec<&str> = words.split(' ').collect();
    fs::set_permissions(own.path("arms.toml"), Permissions::from_mode(0o666)).expect("chmod");
    let run = own.run(&words, None);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("--arms-file arms.toml") && run.err.contains("only you and root"),
        "{}",
        run.err
    );
    assert!(!marked.exists(), "a command of it ran");
    fs::set_permissions(own.path("arms.toml"), Permissions::from_mode(0o644)).expect("chmod");
    let run = own.run(&words, None);
    assert!(run.code == Some(0) && marked.exists(), "{}", run.err);
}

#[test]
fn as_root_what_belongs_to_another_user_is_refused_unless_that_user_called_sudo() {
    if !rustix::process::geteuid().is_root() {
        return skipped("giving files to another user needs root");
    }
    let own = Own::new();
    give(&own.path("mine/recipe.toml"), 1234);
    own.assert_refused(None, "belongs to user 1234");
    own.assert_refused(Some("1235"), "belongs to user 1234");
    let run = own.compare(Some("1234"));
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn results_of_another_experiment_of_that_name_are_not_taken_for_its_own() {
    let own = Own::new();
    let words = [
        "suite",
        "--experiments",
        "own.toml",
        "--no-host-page",
        "--budget",
        "20s",
    ];
    let run = own.run(&words, None);
    assert!(run.err.contains("sort"), "{}", run.err);
    let kept = own.path("state/hugewise/suite-1");
    if !kept.join("sort.json").exists() {
        return skipped("the machine is too busy for a block of runs in 20 s");
    }
    let changed = fs::read_to_string(own.path("own.toml")).expect("a file");
    own.put("own.toml", &changed.replace("'base', 'system'", "'system', 'base'"));
    let resume = [&words[..], &["--resume", kept.to_str().expect("a name")]].concat();
    let run = own.run(&resume, None);
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("the result of sort is one of") && run.err.contains("base,system"),
        "{}",
        run.err
    );
}

#[test]
fn what_was_built_beside_a_recipe_is_not_carried_along() {
    let folder = tempfile::tempdir().expect("a directory");
    let put = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, b"\xff").expect("a file");
    };
    for name in [
        "a/recipe.toml",
        "a/app/A.java",
        "a/target/A.class",
        "a/__pycache__/a.pyc",
        "none/x",
    ] {
        put(name);
    }
    let recipes = build::recipes(folder.path()).expect("folders");
    let a = folder.path().join("a");
    let files = vec![a.join("app/A.java"), a.join("recipe.toml")];
    assert_eq!(recipes, [(a, files)]);
}
