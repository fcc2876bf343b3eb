//! Each reason for which a test is skipped is known to `.ci/skips`: a new machine brings no surprise.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The lines of all sources below a folder that begin with a reason, where it is written out: `skipped("not root")`.
fn reasons(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            reasons(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let calls = text.split("skipped(").skip(1).map(str::trim_start);
            let written = calls.filter_map(|call| {
                let call = call.strip_prefix("&format!(").unwrap_or(call);
                let call = call.strip_prefix("format!(").unwrap_or(call).trim_start();
                call.strip_prefix('"')?.split('"').next()
            });
            found.extend(written.map(|reason| format!("{}: {reason}", path.display())));
        }
    }
}

#[test]
fn every_reason_has_its_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    reasons(&root.join("crates"), &mut found);
    assert!(found.len() > 100, "{found:?}");
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
