//! Which directories are believed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use host::writers::changed_only_by;

use super::{Use, directory};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("metadata").permissions().mode() & 0o7777
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn without_a_home_there_is_no_directory_and_no_other_place() {
    let error = directory(Use::Cache, None, None).expect_err("none").to_string();
    assert!(
        error.contains("XDG_CACHE_HOME") && error.contains("HOME=/root"),
        "{error}"
    );
}

#[test]
fn a_directory_is_made_for_this_user_alone() {
    let temp = tempfile::tempdir().expect("a directory");
    for (what, below) in [(Use::Cache, ".cache/hugewise"), (Use::State, ".local/state/hugewise")] {
        let made = directory(what, None, Some(temp.path().to_owned())).expect("made");
        assert_eq!(made, temp.path().canonicalize().expect("a path").join(below));
        assert_eq!(mode(&made), 0o700);
        allow(&made, 0o755);
        directory(what, None, Some(temp.path().to_owned())).expect("there");
        assert_eq!(mode(&made), 0o700);
    }
}

#[test]
fn a_directory_that_others_may_change_is_refused_at_any_height() {
    let temp = tempfile::tempdir().expect("a directory");
    let home = temp.path().join("home");
    fs::create_dir_all(home.join(".cache/hugewise")).expect("a cache");
    for open in ["home", "home/.cache", "home/.cache/hugewise"] {
        let open = temp.path().join(open);
        for bad in [0o777, 0o757] {
            allow(&open, bad);
            let error = directory(Use::Cache, None, Some(home.clone())).expect_err("refused");
            let error = format!("{error:#}");
            assert!(
                error.contains("may be changed by other users") && error.contains("set HOME"),
                "{error}"
            );
        }
        allow(&open, 0o755);
    }
    directory(Use::Cache, None, Some(home)).expect("safe again");
}

#[test]
fn a_sticky_directory_above_is_no_danger_but_a_sticky_one_of_one_s_own_is() {
    let temp = tempfile::tempdir().expect("a directory");
    allow(temp.path(), 0o1777);
    let inside = temp.path().join("inside");
    fs::create_dir(&inside).expect("a directory");
    assert!(changed_only_by(&inside, &[own()]).is_ok());
    assert!(changed_only_by(temp.path(), &[own()]).is_err());
}

#[test]
fn another_user_s_home_and_links_are_refused() {
    if own() != 0 {
        return testing::skipped("giving files to another user needs root");
    }
    let temp = tempfile::tempdir().expect("a directory");
    allow(temp.path(), 0o755);
    // sudo that keeps HOME.
    let home = temp.path().join("home");
    fs::create_dir(&home).expect("a home");
    chown(&home, Some(65534), Some(65534)).expect("chown");
    let error = format!(
        "{:#}",
        directory(Use::Cache, None, Some(home.clone())).expect_err("refused")
    );
    assert!(error.contains("belongs to user 65534"), "{error}");
    assert!(!home.join(".cache").exists(), "nothing was made in it");
    // A link to a directory of root's, planted in a shared one.
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).expect("a directory");
    allow(&shared, 0o777);
    symlink(&home, shared.join("hugewise")).expect("a link");
    assert!(directory(Use::State, Some(shared), None).is_err());
}
