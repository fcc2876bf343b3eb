//! Each reason for which a test is skipped is known to `.ci/skips`: a new machine brings no surprise.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where each call in the sources below a folder stands, and its reason where that is written out: `skipped("not root")`.
fn reasons(folder: &Path, call: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            reasons(&path, call, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let calls = text.split(call).skip(1).map(str::trim_start);
            let written = calls.filter_map(|call| {
                let call = call.strip_prefix("&format!(").unwrap_or(call);
                let call = call.strip_prefix("format!(").unwrap_or(call).trim_start();
                call.strip_prefix('"')?.split('"').next()
            });
            found.extend(written.map(|reason| (path.display().to_string(), reason.to_owned())));
        }
    }
}

#[test]
fn every_reason_has_its_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    reasons(&root.join("crates"), "skipped(", &mut found);
    assert!(found.len() > 100, "{found:?}");
    let found: Vec<String> = found.iter().map(|(file, reason)| format!("{file}: {reason}")).collect();
    let skips = std::fs::read_to_string(root.join(".ci/skips")).expect("the list");
    let lines = skips.lines().filter(|line| !line.starts_with('#'));
    let mut search = Command::new("grep");
    search.args(["-v", "-E"]);
    for line in lines {
        let (_, reason) = line.split_once(" | ").expect("a condition and a reason");
        search.arg("-e").arg(format!("^[^ ]*: *({reason})"));
    }
    let mut search = search
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("grep");
    let mut input = search.stdin.take().expect("its input");
    input.write_all(found.join("\n").as_bytes()).expect("read");
    drop(input);
    let unknown = String::from_utf8_lossy(&search.wait_with_output().expect("it ends").stdout).into_owned();
    assert_eq!(unknown, "", "not in .ci/skips");
}

#[test]
fn every_program_that_a_test_needs_is_installed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    reasons(&root.join("crates"), "testing::missing(", &mut found);
    assert!(found.len() > 5, "{found:?}");
    let run = std::fs::read_to_string(root.join(".ci/run")).expect("the script");
    let installed: Vec<&str> = run.lines().filter(|line| line.starts_with("need ")).collect();
    for (file, program) in found {
        let name = program.split_whitespace().next().unwrap_or_default();
        let known = installed.iter().any(|line| line.contains(name));
        assert!(known, "{file}: .ci/run does not install {program}");
    }
}
