//! Files that are named on the command line: whatever they turn out to be, they are read within bounds or refused by name.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{hugewise, refused, sent};

/// Every way to name a file, with its limit. `{}` stands for the file.
const WAYS: [(&str, &str); 11] = [
    ("diff {} {}", "256M"),
    ("report {}", "256M"),
    ("apply {} --yes", "16M"),
    ("verify {}", "16M"),
    ("doctor --root {}", "256M"),
    ("doctor --file {} --as sysctl", "4M"),
    ("size postgres {}", "4M"),
    ("plan --for {}", "1M"),
    ("simulate translation --machine {}", "4M"),
    ("compare --arms-file {} --arms a,b -- true", "1M"),
    ("compare --resume {} --arms base,thp -- true", "256M"),
];

fn words(way: &str, file: &Path) -> Vec<String> {
    let file = file.to_str().expect("text");
    way.split(' ').map(|word| word.replace("{}", file)).collect()
}

fn refusal(way: &str, file: &Path) -> String {
    let words = words(way, file);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let why = refused(&words);
    let name = file.to_str().expect("text");
    let named = match way
        .split(' ')
        .find(|word| word.starts_with("--") && way.contains(&format!("{word} {{}}")))
    {
        Some(flag) => format!("{flag} {name}"),
        None => name.to_owned(),
    };
    assert!(why.contains(&named), "{way} names its file: {why}");
    why
}

/// A link, so that every way takes its name for that of a file.
fn link(folder: &Path, to: &str) -> std::path::PathBuf {
    let link = folder.join("link.toml");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(to, &link).expect("a link");
    link
}

#[test]
fn devices_and_directories_are_refused_by_every_way_to_name_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (way, _) in WAYS {
        for device in ["/dev/zero", "/dev/tty"] {
            let why = refusal(way, &link(folder.path(), device));
            assert!(why.contains("it is a device, expected a regular file"), "{way}: {why}");
        }
        let why = refusal(way, &link(folder.path(), "/tmp"));
        let of_root = way.contains("--root") && why.contains("holds neither proc/ nor sys/");
        let of_data = way.contains("size postgres") && why.contains("holds no postgresql.conf");
        assert!(
            of_root || of_data || why.contains("it is a directory, expected"),
            "{way}: {why}"
        );
    }
}

#[test]
fn a_setting_in_place_of_a_file_is_answered_with_what_to_write() {
    for (typed, write) in [
        ("shared_buffers=8GB", "(write --shared-buffers 8GB)"),
        ("huge_page_size = 1GB", "(write --pages 1GB)"),
        (
            "max_connections=500",
            "(write it to a file such as postgresql.conf, and give that)",
        ),
    ] {
        let why = refused(&["size", "postgres", typed]);
        assert!(
            why.contains("expected a file, got a setting") && why.contains(write),
            "{why}"
        );
    }
}

#[test]
fn a_sparse_file_of_a_terabyte_is_refused_with_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse.toml");
    let sparse = File::create(&path).expect("a file");
    sparse.set_len(1 << 40).expect("a sparse file");
    for (way, limit) in WAYS {
        let why = refusal(way, &path);
        let expected = format!("it is larger than {limit}, the limit for a");
        assert!(
            why.contains(&expected) && why.contains("check that it is the right file"),
            "{way}: {why}"
        );
    }
}

#[test]
fn endless_output_of_a_pipe_is_refused_at_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("link.toml");
    std::os::unix::fs::symlink("/dev/stdin", &path).expect("a link");
    // Those with small limits: 256M of zeros for each of the others would only take longer.
    for (way, limit) in WAYS.iter().filter(|(_, limit)| *limit != "256M") {
        let mut endless = Command::new("cat")
            .arg("/dev/zero")
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat");
        let words = words(way, &path);
        let mut command = hugewise(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let run = command
            .stdin(endless.stdout.take().expect("its output"))
            .output()
            .expect("ends");
        // It holds an end of the pipe, too.
        drop(command);
        endless.wait().expect("cat ends when its reader does");
        let why = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{way}: {why}");
        assert!(why.contains(&format!("it is larger than {limit}")), "{way}: {why}");
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_named_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe.toml");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    for (way, _) in WAYS.iter().filter(|(way, _)| !way.contains("--resume")) {
        let words = words(way, &path);
        let mut command = hugewise(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let mut child = command
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        // Once a writer can open the pipe, its reader has.
        let mut writer = File::options().write(true).open(&path).expect("a writer");
        writer.write_all(b"# nothing yet\n").expect("written");
        sent("-TERM", &child);
        let ended = child.wait().expect("ends");
        assert_eq!(ended.signal(), Some(15), "{way}: {ended}");
        drop(writer);
    }
    assert!(
        refusal("compare --resume {} --arms base,thp -- true", &path).contains("it is a pipe, expected a regular file")
    );
}

#[test]
fn a_mistake_in_toml_is_one_line_that_names_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file.toml");
    std::fs::write(&path, "# a comment\n[host\nmemory = 1\n").expect("written");
    for way in [
        "simulate host {}",
        "simulate scheduler {}",
        "simulate translation --machine {}",
        "compare --workload {} --arms base,thp",
        "suite --experiments {} --list",
        "compare --arms-file {} --arms a,b -- true",
        "plan --for {}",
    ] {
        let words = words(way, &path);
        let why = refused(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            !why.contains("\\n") && why.trim_end().lines().count() == 1,
            "{way}: {why}"
        );
        assert!(why.contains("line 2"), "{way}: {why}");
    }
}

#[test]
fn a_technique_that_would_do_nothing_is_refused_with_its_arm_and_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("arms.toml");
    for (text, line, advice) in [
        ("like = \"thp\"\ntechnique = \"jvm\"", "line 3", "/bin/true is none"),
        ("technique = \"preload\"", "line 2", "write like ="),
        (
            "like = \"base\"\ntechnique = \"tunables\"",
            "line 3",
            "leave technique out",
        ),
        ("like = \"thp\"\ntechnique = \"java\"", "line 3", "is not a technique"),
    ] {
        std::fs::write(&file, format!("[own]\n{text}\n")).expect("written");
        let words = [
            "compare",
            "--arms",
            "base,own",
            "--arms-file",
            file.to_str().expect("a name"),
        ];
        let why = refused(&[&words[..], &["--", "/bin/true"]].concat());
        let is_said = ["the arm own of --arms-file", line, advice]
            .iter()
            .all(|part| why.contains(part));
        assert!(is_said, "{text}: {why}");
    }
    let typed = refused(&["compare", "--technique", "jvm", "--arms", "base,thp", "--", "/bin/true"]);
    assert!(
        typed.contains("--technique: `jvm`") && typed.contains("JAVA_TOOL_OPTIONS"),
        "{typed}"
    );
}

#[test]
fn a_warning_of_another_s_result_steers_no_terminal_by_its_code() {
    let made = hugewise(&["size", "pages", "1G", "--json"]).output().expect("runs");
    let mut result: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    result["warnings"] = serde_json::json!([{"code": "a\u{2028}b\u{202e}c\u{1b}[2J", "text": "d\u{202e}"}]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    std::fs::write(&path, result.to_string()).expect("written");
    for format in ["text", "csv", "markdown", "html", "json"] {
        let mut command = hugewise(&["report", path.to_str().expect("plain"), "--format", format]);
        let run = command.output().expect("runs");
        assert!(run.status.success(), "{format}");
        for shown in [run.stdout, run.stderr] {
            let text = String::from_utf8(shown).expect("text");
            assert!(!text.contains(['\u{2028}', '\u{202e}', '\u{1b}']), "{format}: {text:?}");
        }
    }
}

#[test]
fn a_result_comes_through_a_pipe() {
    let made = hugewise(&["size", "pages", "1G", "--json"]).output().expect("runs");
    let mut command = hugewise(&["report", "/dev/stdin", "--format", "text"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut pipe = child.stdin.take().expect("its input");
    pipe.write_all(&made.stdout).expect("written");
    drop(pipe);
    let shown = child.wait_with_output().expect("ends");
    assert!(shown.status.success());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("1G"), "{shown:?}");
}
