//! The process part of a capture: accounts and limits, no arguments but the program's name, no environment.

use std::collections::BTreeSet;

use model::{Bytes, Reading};

use super::pattern::expand;
use super::table::whole;
use super::{Keep, Recorder};
use crate::Source;
use crate::snapshot::Cgroup;

/// Files of every process, and what of each is kept.
const FILES: [(&str, Keep); 7] = [
    ("status", whole),
    ("stat", whole),
    ("comm", whole),
    ("cmdline", program),
    ("limits", whole),
    ("cgroup", whole),
    ("smaps_rollup", whole),
];

/// Below this, the mappings of a process decide nothing.
const SMAPS_FROM: Bytes = Bytes::mib(64);
/// A file of one process; smaps of a process with 10,000 mappings has about 12 MiB.
const LARGEST_FILE: Bytes = Bytes::mib(16);
/// Files of the control groups in which processes run.
const CGROUP: &str = "{hugetlb.*,memory.max}";

pub(super) fn record(recorder: &mut Recorder<'_>) {
    let source = recorder.source;
    let names = source.list("/proc").into_result().unwrap_or_default();
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    recorder.file("/proc/sysvipc/shm", LARGEST_FILE, whole);
    for &pid in &pids {
        for (name, keep) in FILES {
            recorder.file(&format!("/proc/{pid}/{name}"), LARGEST_FILE, keep);
        }
    }
    for &pid in pids.iter().filter(|pid| resident(source, **pid) >= SMAPS_FROM) {
        recorder.file(&format!("/proc/{pid}/smaps"), LARGEST_FILE, whole);
    }
    record_cgroups(recorder, &pids);
}

/// RSS and hugetlb pages; zero for kernel threads and where it is not told.
fn resident(source: &Source, pid: u32) -> Bytes {
    let status = source
        .text(&format!("/proc/{pid}/status"))
        .into_result()
        .unwrap_or_default();
    let kib = |line: &str| -> Option<u64> {
        let amount = line
            .strip_prefix("VmRSS:")
            .or_else(|| line.strip_prefix("HugetlbPages:"))?;
        amount.trim().strip_suffix(" kB")?.parse().ok()
    };
    Bytes(
        status
            .lines()
            .filter_map(kib)
            .fold(0, |sum, kib| sum.saturating_add(kib.saturating_mul(1024))),
    )
}

/// The limits of every control group that holds a process, and of those above it.
fn record_cgroups(recorder: &mut Recorder<'_>, pids: &[u32]) {
    let source = recorder.source;
    let Reading::Known(root) = Cgroup::read(source).root else {
        return;
    };
    let mut groups = BTreeSet::new();
    for pid in pids {
        let text = source
            .text(&format!("/proc/{pid}/cgroup"))
            .into_result()
            .unwrap_or_default();
        groups.extend(text.lines().filter_map(group).flat_map(with_parents));
    }
    for group in groups {
        for path in expand(source, &format!("{root}{group}/{CGROUP}")) {
            recorder.file(&path, LARGEST_FILE, whole);
        }
    }
}

/// The path in `0::/PATH` (v2) or `N:hugetlb:/PATH` (v1).
fn group(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    // A name with pattern letters in it cannot be looked up by pattern.
    let is_ours = controllers.is_empty() || controllers.split(',').any(|name| name == "hugetlb");
    (is_ours && path.starts_with('/') && !path.contains(['*', '{', '}'])).then(|| path.trim_end_matches('/').to_owned())
}

fn with_parents(path: String) -> Vec<String> {
    let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let mut paths: Vec<String> = slashes.into_iter().map(|at| path[..at].to_owned()).collect();
    paths.push(path);
    paths
}

/// argv[0] alone: arguments can hold passwords.
fn program(content: &[u8]) -> Vec<u8> {
    content
        .split_inclusive(|&byte| byte == 0)
        .next()
        .unwrap_or_default()
        .to_vec()
}
