//! Text fits the terminal that it is shown on: every command on every captured machine and every result, at several widths.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::common::{hugewise, machines, told};

const WIDTHS: [u16; 3] = [60, 80, 120];

/// So wide that nothing is wrapped.
const UNBROKEN: u16 = 10_000;

/// What commands read of a machine; `PID` is a process of it.
const READING: [&[&str]; 19] = [
    &["checkup", "--report", "REPORT"],
    &["doctor"],
    &["doctor", "--verbose"],
    &["ps"],
    &["ps", "--why", "--numa"],
    &["ps", "--by", "user"],
    &["ps", "PID"],
    &["ps", "PID", "--vmas"],
    &["explain", "PID"],
    &["vm"],
    &["plan", "--for", "pool:2M=16"],
    &["plan", "--for", "pool:1G=2"],
    &["plan", "--for", "thp=madvise"],
    &["plan", "--for", "jvm:heap=3.5g,user=jboss"],
    &["plan", "--for", "vm:64G,pages=1G"],
    &["plan", "--for", "mysql:buffer_pool=8G"],
    &["size", "vm", "--memory", "64G", "--count", "3"],
    &["size", "jvm", "--heap", "2G"],
    &["size", "reach"],
];

/// What commands say without a machine.
const SAYING: [&[&str]; 19] = [
    &["--help"],
    &["doctor", "--help"],
    &["doctor", "--rules"],
    &["doctor", "--explain", "A01"],
    &["compare", "--help"],
    &["measure", "latency", "--help"],
    &["help", "options"],
    &["schema"],
    &["size", "pages", "6G"],
    &["size", "memlock", "6G"],
    &["size", "shmmax", "6G"],
    &["size", "oracle", "--sga", "20G"],
    &["size", "innodb", "--buffer-pool", "20G"],
    &["size", "redis", "--maxmemory", "20G"],
    &["size", "dpdk", "--socket-mem", "1G,1G"],
    &["size", "esx-memory", "--total", "512", "--reserved", "30"],
    &["size", "esx-minfree", "512G"],
    &["size", "ksm"],
    &[
        "simulate",
        "translation",
        "--machine",
        "8452y",
        "--working-sets",
        "64M",
        "--accesses",
        "20000",
    ],
];

/// Where a line holds what is to be copied as it is: a command, a setting, or lines of a file.
const COPIED: [&str; 27] = [
    "sync; ",
    "w /sys/",
    "+ w /sys/",
    "-XX:",
    "- ",
    "hugewise ",
    "sudo ",
    "echo ",
    "cat ",
    "grep ",
    "sysctl ",
    "systemctl ",
    "numactl ",
    "for ",
    "kubectl ",
    "mount ",
    "virsh ",
    "prlimit ",
    "kill ",
    "/bin/sh ",
    "ExecStart=",
    "test ",
    "esxcli ",
    "Usage: ",
    "hugeadm ",
    "java ",
    "ALTER ",
];

fn text(args: &[&str], width: u16) -> String {
    let output = hugewise(args)
        .args(["--seed", "1"])
        .env("COLUMNS", width.to_string())
        .output();
    let run = told(output.expect("runs"));
    assert!(run.code.is_some_and(|code| code < 3), "{args:?}: {}", run.err);
    run.out
}

/// Lines that are too long, and words that the unbroken text does not have: broken numbers, names or paths.
fn faults(args: &[&str]) -> Vec<String> {
    let whole = text(args, UNBROKEN);
    let known: HashSet<&str> = whole.split_whitespace().collect();
    let of_width = |width: u16| {
        let shown = text(args, width);
        let long = shown.lines().filter(|line| !fits(line, width.into()));
        let broken = shown
            .lines()
            .filter(|line| !line.starts_with("no room here for:"))
            .flat_map(str::split_whitespace)
            .filter(|word| !word.starts_with('─') && !known.contains(word));
        let faults = long.chain(broken);
        faults
            .map(|fault| format!("{args:?} at {width}: `{fault}`"))
            .collect::<Vec<_>>()
    };
    WIDTHS.into_iter().flat_map(of_width).collect()
}

#[track_caller]
fn are_none(faults: impl Iterator<Item = String>) {
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Only what must not be broken may be longer: one word behind its label, or a line to be copied.
fn fits(line: &str, width: usize) -> bool {
    let is_labelled = || line.trim_start().split("  ").filter(|part| !part.is_empty()).count() <= 2;
    let last = || line.trim_start().rsplit("  ").next().unwrap_or_default().trim();
    let is_copied = || COPIED.iter().any(|start| last().starts_with(start)) || last().contains('=');
    line.chars().count() <= width || is_labelled() && (!last().contains(' ') || is_copied())
}

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(folder);
    let entries = std::fs::read_dir(folder).expect("fixtures");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// A process of a captured machine.
fn process(root: &str) -> Option<String> {
    let csv = text(&["--root", root, "ps", "--format", "csv"], 80);
    let row = csv.lines().nth(1)?;
    Some(row.split(',').next()?.to_owned())
}

#[test]
fn every_reading_command_fits_on_every_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let report = report.to_str().expect("plain");
    let of_machine = |(_, machine): (String, PathBuf)| {
        let root = machine.to_str().expect("plain");
        let pid = process(root);
        let words = |command: &[&'static str]| -> Option<Vec<String>> {
            let word = |&word: &&'static str| match word {
                "PID" => pid.clone(),
                "REPORT" => Some(report.to_owned()),
                word => Some(word.to_owned()),
            };
            command.iter().map(word).collect()
        };
        let commands = READING.into_iter().filter_map(words);
        let of_command = |words: Vec<String>| {
            let words = words.iter().map(String::as_str);
            faults(&["--root", root].into_iter().chain(words).collect::<Vec<_>>())
        };
        commands.flat_map(of_command).collect::<Vec<_>>()
    };
    are_none(machines().into_iter().flat_map(of_machine));
}

#[test]
fn every_result_fits() {
    let is_result = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "json");
    let results = fixtures("results").into_iter().filter(is_result);
    are_none(results.flat_map(|result| faults(&["report", result.to_str().expect("plain"), "--format", "text"])));
}

#[test]
fn what_differs_fits() {
    let mut results = fixtures("results");
    results.retain(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        ["latency", "compare"].contains(&&*name)
    });
    let mut machines: Vec<PathBuf> = machines().into_iter().map(|(_, path)| path).collect();
    machines.sort();
    let pairs = results.iter().map(|result| [result, result]);
    let pairs = pairs.chain(machines.windows(2).map(|pair| [&pair[0], &pair[1]]));
    are_none(pairs.flat_map(|pair| {
        let [a, b] = pair.map(|path| path.to_str().expect("plain"));
        faults(&["diff", a, b])
    }));
}

#[test]
fn what_is_said_of_files_fits() {
    let files = fixtures("files")
        .into_iter()
        .filter(|path| !path.ends_with("README.md"));
    are_none(files.flat_map(|file| faults(&["doctor", "--file", file.to_str().expect("plain")])));
}

#[test]
fn help_rules_and_sums_fit() {
    are_none(SAYING.into_iter().flat_map(faults));
}

#[test]
fn what_is_too_long_is_found() {
    for line in [
        "a sentence of many words that ends beyond the sixtieth column",
        " label   and a sentence of words that ends beyond the sixtieth column",
    ] {
        assert!(!fits(line, 60), "{line}");
    }
    for line in [
        " what   /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages-and-more",
        "  sudo hugewise apply /home/somebody/a/plan/with/a/rather/long/name.json",
    ] {
        assert!(fits(line, 60), "{line}");
    }
}
