//! Sweeps as a user meets them: killed and gone on with, spread over shards and merged, and refused with the place of a mistake.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{done, hugewise, refused, sent, valid};

const SWEEP: &str = "
machines = ['8452y', 'mine.toml']
patterns = ['chase']
traces = ['loads.u64']
working_sets = ['1M', '64M']
modes = ['native', 'nested']
guest_pages = ['4K', '2M']
host_pages = ['4K', '2M']
accesses = 20000
";

/// A directory with a sweep, a machine and a trace.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let words: Vec<u8> = (0..5000_u64)
        .flat_map(|at| ((1_u64 << 40) + at * 4096).to_le_bytes())
        .collect();
    fs::write(folder.path().join("loads.u64"), words).expect("written");
    fs::write(folder.path().join("mine.toml"), "like = 'epyc-9654'\nnested_tlb = 64\n").expect("written");
    let file = folder.path().join("sweep.toml");
    fs::write(&file, SWEEP).expect("written");
    let name = file.to_str().expect("text").to_owned();
    (folder, name)
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a file")
}

#[test]
fn a_sweep_fits_its_schema_and_is_shown_in_every_form() {
    let (folder, file) = folder();
    let out = done(&["simulate", "sweep", &file, "--json"]).out;
    let result = valid(&out);
    let points = result["data"]["points"].as_array().expect("points");
    // Two machines, a pattern in two sizes and a trace, two native settings and four nested ones.
    assert_eq!(points.len(), 2 * 3 * 6);
    assert_eq!(
        (result["seed"].as_u64(), points[0]["seed"].as_u64()),
        (Some(1), Some(1))
    );
    let of_trace = points
        .iter()
        .find(|point| point["input"] == "loads.u64")
        .expect("a trace");
    assert_eq!(
        (&of_trace["accesses"], &of_trace["working_set"]),
        (&5000.into(), &serde_json::Value::Null)
    );
    let lines = text(folder.path().join("sweep.jsonl"));
    assert_eq!(lines.lines().count(), 1 + points.len());
    let saved = folder.path().join("result.json");
    fs::write(&saved, &out).expect("written");
    let saved = saved.to_str().expect("text");
    for (form, holds) in [
        ("csv", "cycles_high"),
        ("markdown", "nested:2M/4K"),
        ("svg", "<svg"),
        ("text", "time relative to native:4K"),
    ] {
        assert!(done(&["report", saved, "--format", form]).out.contains(holds), "{form}");
    }
}

#[test]
fn shards_together_are_the_whole_sweep_byte_for_byte() {
    let (folder, file) = folder();
    done(&["simulate", "sweep", &file, "--threads", "1"]);
    let path = folder.path().join("sweep.jsonl");
    let whole = text(&path);
    let shards = ["1/3", "2/3", "3/3"].map(|shard| {
        done(&["simulate", "sweep", &file, "--shard", shard, "--threads", "3"]);
        folder
            .path()
            .join(format!("sweep.{}.jsonl", shard.replace('/', "-of-")))
    });
    fs::remove_file(&path).expect("removed");
    let names: Vec<&str> = shards.iter().map(|path| path.to_str().expect("text")).collect();
    let words = [&["simulate", "sweep", &file, "--merge"], names.as_slice()].concat();
    done(&words);
    assert_eq!(text(&path), whole);
    let why = refused(&words[..words.len() - 1]);
    assert!(why.contains("of 36 points are in none of the files"), "{why}");
    assert_eq!(text(&path), whole, "a merge that is refused changes nothing");
}

#[test]
fn a_killed_sweep_goes_on_and_ends_as_if_it_had_not_been() {
    let (folder, file) = folder();
    let longer = SWEEP
        .replace("20000", "300000")
        .replace("'64M'", "'8M', '64M', '256M', '512M', '1G', '2G'");
    fs::write(&file, longer).expect("written");
    let whole = folder.path().join("whole.jsonl");
    done(&["simulate", "sweep", &file, "--points", whole.to_str().expect("text")]);
    let path = folder.path().join("sweep.jsonl");
    let mut command = hugewise(&["simulate", "sweep", &file, "--threads", "1"]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("starts");
    while common::lines(&path) < 4 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    sent("-KILL", &child);
    child.wait().expect("ends");
    let killed = text(&path);
    // As a crash of the machine may leave it.
    fs::write(&path, &killed[..killed.len() - 20]).expect("torn");
    let run = done(&["simulate", "sweep", &file]);
    assert!(run.err.contains("the end of its last line is missing"), "{}", run.err);
    assert!(run.err.contains("are in"), "{}", run.err);
    assert_eq!(text(&path), text(&whole));
    let again = done(&["simulate", "sweep", &file]);
    assert!(again.err.contains("96 of 96 points are in"), "{}", again.err);
    assert_eq!(text(&path), text(&whole));
}

#[test]
fn what_is_not_this_sweeps_is_refused_and_left_as_it_is() {
    let (folder, file) = folder();
    done(&["simulate", "sweep", &file]);
    let path = folder.path().join("sweep.jsonl");
    let before = text(&path);
    for (from, to, what) in [
        (SWEEP.to_owned(), SWEEP.replace("64M", "32M"), "working_sets"),
        (SWEEP.to_owned(), SWEEP.replace("20000", "30000"), "accesses"),
    ] {
        fs::write(&file, to).expect("written");
        let why = refused(&["simulate", "sweep", &file]);
        assert!(
            why.contains("sweep.jsonl: it holds points of another sweep") && why.contains(what),
            "{why}"
        );
        fs::write(&file, from).expect("written");
    }
    let why = refused(&["simulate", "sweep", &file, "--seed", "9"]);
    assert!(why.contains("its seed: `1`, expected `9`"), "{why}");
    fs::write(folder.path().join("mine.toml"), "like = 'epyc-9654'\nnested_tlb = 65\n").expect("written");
    let why = refused(&["simulate", "sweep", &file]);
    assert!(why.contains("its machines") && why.contains("mine.toml"), "{why}");
    assert_eq!(text(&path), before);
    let why = refused(&["simulate", "sweep", &file, "--points", "/dev/zero"]);
    assert!(why.contains("/dev/zero"), "{why}");
}

#[test]
fn mistakes_name_file_line_or_flag() {
    let (folder, file) = folder();
    for (line, parts) in [
        (
            "machines = ['none.toml']\npatterns = ['chase']\nworking_sets = ['1M']",
            ["line 1", "none.toml"],
        ),
        (
            "machines = ['8452x']\npatterns = ['chase']\nworking_sets = ['1M']",
            ["line 1", "neither a CPU of the table"],
        ),
        (
            "machines = ['8452y']\ntraces = ['none.trace']",
            ["line 2", "none.trace"],
        ),
        (
            "machines = ['8452y']\npatterns = ['chase']\nworking_sets = ['64']",
            ["line 3", "the unit is missing"],
        ),
        ("machines = []", ["line 1", "machines is empty"]),
    ] {
        fs::write(&file, line).expect("written");
        let why = refused(&["simulate", "sweep", &file]);
        assert!(
            why.contains("sweep.toml") && parts.iter().all(|part| why.contains(part)),
            "{why}"
        );
        assert!(!folder.path().join("sweep.jsonl").exists(), "nothing is begun");
    }
    let why = refused(&["simulate", "sweep", &file, "--shard", "3/2"]);
    assert!(why.contains("--shard") && why.contains("`3/2` is no shard"), "{why}");
    let why = refused(&["simulate", "sweep", "/no/such.toml"]);
    assert!(why.contains("/no/such.toml"), "{why}");
}

/// Blocks of a page by their language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let ends = page.split(start.as_str()).skip(1);
    ends.filter_map(|rest| rest.split("```").next()).collect()
}

/// What a script prints that finds the program by its name.
fn shell(folder: &Path, script: &str, variables: &[(&str, &str)]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hugewise"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a directory").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(folder).env("PATH", &path);
    let output = command.envs(variables.iter().copied()).output().expect("sh");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_how_to_page_does_what_it_shows() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = text(root.join("docs/how-to/sweep.md"));
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("sweep.toml"), blocks(&page, "toml")[0]).expect("written");
    let sh = |script: &str, variables: &[(&str, &str)]| shell(folder.path(), script, variables);
    // Shards as Slurm's and Kubernetes's scripts start them.
    let scripts = blocks(&page, "sh");
    let [whole, slurm, kubernetes] = scripts[..] else {
        panic!("three scripts: {scripts:?}")
    };
    sh(whole, &[]);
    let merged = folder.path().join("sweep.jsonl");
    let whole = text(&merged);
    fs::remove_file(&merged).expect("removed");
    for index in ["1", "2", "3", "4"] {
        sh(slurm, &[("SLURM_ARRAY_TASK_ID", index)]);
    }
    let of_slurm = text(folder.path().join("sweep.2-of-4.jsonl"));
    fs::remove_file(folder.path().join("sweep.2-of-4.jsonl")).expect("removed");
    sh(kubernetes, &[("JOB_COMPLETION_INDEX", "1")]);
    assert_eq!(text(folder.path().join("sweep.2-of-4.jsonl")), of_slurm);
    // Then what a reader types, with what it prints.
    let typed = blocks(&page, "text");
    for block in &typed {
        let mut lines = block.lines();
        let command = lines
            .next()
            .and_then(|line| line.strip_prefix("$ "))
            .expect("a command");
        let shown: Vec<&str> = lines.collect();
        let printed = sh(command, &[]);
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        assert!(
            shown.is_empty() || printed == shown,
            "{command}:\n{}",
            printed.join("\n")
        );
    }
    assert_eq!(typed.len(), 3, "merge, whole, compare");
    assert_eq!(text(&merged), whole);
}
