//! The process part of a capture: accounts and limits of all, arguments and mappings of those that rules know.

use std::collections::BTreeSet;

use model::{Bytes, PageKind, Reading};

use super::keep::Kept;
use super::mappings::{LARGEST_FILE, MOST_COUNTED, has_more_mappings, is_affordable};
use super::recorder::Recorder;
use super::table::{memory_mounts, whole};
use super::{accounts, secrets, settings, threads};
use crate::config::postgres::Configuration;
use crate::packages::STATUS;
use crate::vms;
use crate::{self as programs, Area, Kind, Program, areas, glibc, is_tunable, jvm, locks, postgres, zero_ended};
use host::Membership;
use host::snapshot::Cgroup;
use host::tree::Node;

/// Files of every process with memory of its own that are kept whole.
const FILES: [&str; 6] = ["status", "stat", "comm", "limits", "cgroup", "oom_score_adj"];
/// A C library, of which one sentence is kept.
const LARGEST_LIBRARY: Bytes = Bytes::mib(16);
/// Arguments of one process; class paths are long.
const LARGEST_ARGUMENTS: usize = 64 << 10;
/// Files of the control groups in which processes run.
const CGROUP: &str = "{hugetlb.*,memory.max,memory.current,cpuset.cpus,cpuset.cpus.effective}";

pub(super) fn record(recorder: &mut Recorder<'_>) {
    recorder.file("/proc/sysvipc/shm", LARGEST_FILE, whole);
    let Reading::Known(candidates) = programs::candidates(recorder.source) else {
        return;
    };
    let before = threads::Before::read(recorder.source, &candidates.programs);
    recorder.each(&candidates.programs, |recorder, program| {
        for name in FILES {
            recorder.file(&program.file(name), LARGEST_FILE, whole);
        }
        record_open_files(recorder, program.pid());
        record_words(recorder, program);
        record_sum(recorder, program);
    });
    for &at in &candidates.closer {
        record_closely(recorder, &candidates.programs[at]);
    }
    record_groups(recorder, &candidates.programs);
    accounts::record(recorder, &candidates.programs);
    threads::record(recorder, &candidates.programs, &before);
}

/// The sum over all mappings. That of a large process was counted in steps already, and is written as the kernel would.
fn record_sum(recorder: &mut Recorder<'_>, program: &Program) {
    let path = program.file("smaps_rollup");
    let counted = program.pages.rss.known().zip(program.pages.backing.known());
    match counted {
        Some((rss, backing)) if !is_affordable(recorder, program) => {
            let (rss, thp) = (rss.0 / 1024, backing.of(PageKind::Thp).0 / 1024);
            recorder.leave_out(
                &path,
                "all but Rss and AnonHugePages, because reading it would hold up so large a process",
            );
            let text = format!(
                "00000000-ffffffff ---p 00000000 00:00 0    [rollup]\nRss: {rss} kB\nAnonHugePages: {thp} kB\n"
            );
            recorder.tree.insert(&path, Node::File(text.into_bytes()));
        }
        _ if !is_affordable(recorder, program) => {
            recorder.leave_out(&path, "all of it, because it would hold up so large a process");
        }
        _ => recorder.file(&path, LARGEST_FILE, whole),
    }
}

/// Arguments and environment, of which most stay out.
fn record_words(recorder: &mut Recorder<'_>, program: &Program) {
    let kind = program.kind.known().copied().flatten();
    let told = program.arguments.as_ref().map(|told| arguments(told, kind));
    recorder.put(&program.file("cmdline"), told);
    recorder.file(&program.file("environ"), LARGEST_FILE, environment);
}

/// The program's own name, and for programs that rules know their arguments, without secrets. Titles such as
/// `postgres: USER DATABASE ADDRESS` end at the colon.
fn arguments(arguments: &[String], kind: Option<Kind>) -> Kept {
    let Some(first) = arguments.first() else {
        return Kept::default();
    };
    let program = first
        .split_once(": ")
        .map_or_else(|| first.clone(), |(title, _)| format!("{title}:"));
    let told: Vec<String> = match kind {
        None => locks::words_of(&arguments[1..]),
        // Options of the machine only: what follows is the application's own.
        Some(Kind::Jvm) => {
            let own: Vec<String> = jvm::options(arguments).cloned().collect();
            let rest = locks::words_of(&arguments[1 + own.len()..]);
            [own, rest].concat()
        }
        Some(_) => arguments[1..].to_vec(),
    };
    let dropped = arguments.len() - 1 - told.len();
    let (kept, redacted) = secrets::arguments(&[vec![program], told].concat());
    let mut bytes: Vec<u8> = kept.iter().flat_map(|text| text.bytes().chain([0])).collect();
    let cut = bytes.len().saturating_sub(LARGEST_ARGUMENTS);
    bytes.truncate(LARGEST_ARGUMENTS);
    let mut part = Kept::part(bytes, dropped, "arguments that decide nothing about pages");
    part.left_out
        .extend(redacted.into_iter().map(|option| format!("the value of {option}")));
    if cut > 0 {
        part.left_out.push(format!("its last {}", Bytes(cut as u64)));
    }
    part
}

/// The known tunables. Java's hold options like those on a command line.
fn environment(bytes: &[u8]) -> Kept {
    let all = zero_ended(bytes);
    let (known, others): (Vec<&String>, Vec<&String>) = all
        .iter()
        .partition(|entry| entry.split_once('=').is_some_and(|(name, _)| is_tunable(name)));
    let mut kept = Vec::new();
    let mut redacted = Vec::new();
    for entry in known {
        let (words, taken) = secrets::arguments(&entry.split(' ').map(str::to_owned).collect::<Vec<_>>());
        redacted.extend(taken.into_iter().map(|option| format!("the value of {option}")));
        kept.extend(words.join(" ").bytes().chain([0]));
    }
    let mut part = Kept::part(kept, others.len(), "variables that are no known tunables");
    part.left_out.extend(redacted);
    part
}

/// Only that a process holds a machine of KVM.
fn record_open_files(recorder: &mut Recorder<'_>, pid: u32) {
    let Reading::Known(found) = vms::kvm_descriptors(recorder.source, pid) else {
        return;
    };
    for path in &found.kvm {
        recorder.tree.insert(path, Node::Link(vms::KVM.to_owned()));
    }
    if found.left_out > 0 {
        let what = format!("the last {} of its open files, which were not read", found.left_out);
        recorder.leave_out(&format!("/proc/{pid}/fd"), &what);
    }
}

/// One process that deserves a closer look.
fn record_closely(recorder: &mut Recorder<'_>, program: &Program) {
    let areas = record_mappings(recorder, program);
    recorder.file(&program.file("mounts"), LARGEST_FILE, memory_mounts);
    let membership = Membership::read(recorder.source, program.pid());
    if let Some(service) = membership.known().and_then(Membership::service) {
        settings::record_unit(recorder, &service);
    }
    record_own_files(recorder, program, &areas);
}

/// With counts where that stalls no process, otherwise the names of what is mapped.
fn record_mappings(recorder: &mut Recorder<'_>, program: &Program) -> Vec<Area> {
    let [smaps, numa, maps] = ["smaps", "numa_maps", "maps"].map(|name| program.file(name));
    if !is_affordable(recorder, program) {
        recorder.leave_out(&smaps, "all of it, because reading it would hold up so large a process");
    } else if has_more_mappings(recorder.source, &maps, MOST_COUNTED) {
        let why = format!("all of it, because the process has more than {MOST_COUNTED} mappings");
        recorder.leave_out(&smaps, &why);
        recorder.leave_out(&numa, &why);
    } else {
        recorder.file(&smaps, LARGEST_FILE, counts_that_count);
        recorder.file(&numa, LARGEST_FILE, whole);
    }
    if !recorder.tree.is_file(&smaps) {
        recorder.file(&maps, LARGEST_FILE, whole);
    }
    let areas = areas::of_files(recorder.source, program.pid());
    areas.into_result().unwrap_or_default()
}

/// Files in its own root: configuration, and files that hold versions.
fn record_own_files(recorder: &mut Recorder<'_>, program: &Program, areas: &[Area]) {
    let root = program.file("root");
    let arguments = program.arguments.known().map_or(&[][..], Vec::as_slice);
    if program.is(Kind::Postgres) == Ok(true) {
        // Where it takes connections.
        let cwd = program.file("cwd");
        if let Reading::Known(directory) = recorder.source.link(&cwd) {
            recorder.file(&format!("{root}{directory}/postmaster.pid"), LARGEST_FILE, whole);
            recorder.tree.insert(&cwd, Node::Link(directory));
        }
        // A plan looks for the files of a server that runs in no container where the machine has them.
        let membership = Membership::read(recorder.source, program.pid());
        let is_container = membership.known().is_none_or(Membership::is_container);
        for path in postgres::files(arguments) {
            let read = Configuration::read(recorder.source, &root, &path);
            let read = read.unwrap_or_default().files.into_iter().skip(1);
            for path in std::iter::once(path).chain(read) {
                let own = format!("{root}{path}");
                settings::record_postgres(recorder, &own);
                // Not read once more: what a process names is read with its rights alone.
                if let Some(kept) = recorder.tree.bytes(&own).ok().filter(|_| !is_container) {
                    recorder.tree.insert(&path, Node::File(kept));
                }
            }
        }
    }
    for path in jvm::release_files(recorder.source, program.pid(), areas).unwrap_or_default() {
        recorder.file(&path, LARGEST_FILE, settings::java_version);
    }
    if let Some(path) = locks::file(arguments) {
        recorder.file(&format!("{root}{path}"), LARGEST_FILE, settings::about_locks);
    }
    if let Some(path) = glibc::library(areas) {
        let version = |bytes: &[u8]| Kept::whole(&glibc::telling_part(bytes));
        recorder.file(&format!("{root}{path}"), LARGEST_LIBRARY, version);
    }
    if [Kind::Mongo, Kind::Mysql]
        .iter()
        .any(|kind| program.is(*kind) == Ok(true))
    {
        recorder.file(STATUS, Bytes::mib(16), settings::packages);
    }
}

/// smaps without the counts that are zero; every mapping keeps its Rss.
fn counts_that_count(bytes: &[u8]) -> Kept {
    let counts = |line: &&[u8]| !line.ends_with(b" 0 kB\n") || line.starts_with(b"Rss:");
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter(counts);
    Kept::whole(&lines.collect::<Vec<_>>().concat())
}

/// The limits of every control group that holds a process, and of those above it.
fn record_groups(recorder: &mut Recorder<'_>, programs: &[Program]) {
    let Reading::Known(root) = Cgroup::read(recorder.source).root else {
        return;
    };
    let memberships = programs
        .iter()
        .map(|program| Membership::read(recorder.source, program.pid()));
    let groups: BTreeSet<String> = memberships
        .filter_map(|membership| membership.known().map(Membership::with_parents))
        .flatten()
        // A name with pattern letters in it cannot be looked up by pattern.
        .filter(|path| !path.contains(['*', '{', '}']))
        .collect();
    for group in groups {
        recorder.pattern(
            &format!("{root}{}/{CGROUP}", group.trim_end_matches('/')),
            LARGEST_FILE,
            whole,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, arguments, counts_that_count, environment};

    fn texts(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\0', "|")
    }

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    #[test]
    fn only_programs_that_rules_know_keep_their_arguments() {
        let kept = arguments(&words("/usr/bin/thing|--password|x|--mode=y"), None);
        assert_eq!(texts(&kept.bytes), "/usr/bin/thing|");
        assert_eq!(kept.left_out, ["arguments that decide nothing about pages (3)"]);
        let java = words("java|-Xmx4g|-Ddb.password=x|-jar|app.jar|--secret-of-the-app|x");
        let kept = arguments(&java, Some(Kind::Jvm));
        assert_eq!(texts(&kept.bytes), "java|-Xmx4g|-Ddb.password=<redacted>|-jar|");
        let model = arguments(&words("llama-server|-m|x.gguf|--mlock|--api-key|x"), None);
        assert_eq!(texts(&model.bytes), "llama-server|--mlock|");
        let off = arguments(&words("python3|-m|llama_cpp.server|--use_mlock|false|--port|0"), None);
        assert_eq!(texts(&off.bytes), "python3|--use_mlock|false|");
        let node = arguments(
            &words("java|-Xmx4g|org.Node|-Ebootstrap.memory_lock=true|-Ekey=x"),
            Some(Kind::Jvm),
        );
        assert_eq!(texts(&node.bytes), "java|-Xmx4g|-Ebootstrap.memory_lock=true|");
        let title = arguments(
            &words("postgres: alice payroll 10.0.0.7(5433) SELECT"),
            Some(Kind::Postgres),
        );
        assert_eq!(texts(&title.bytes), "postgres:|");
    }

    #[test]
    fn long_arguments_are_cut_and_say_so() {
        let long = vec!["java".to_owned(), "-cp".to_owned(), "/x".repeat(50_000)];
        let kept = arguments(&long, Some(Kind::Jvm));
        assert_eq!(kept.bytes.len(), 64 << 10);
        assert!(kept.left_out[0].starts_with("its last "), "{:?}", kept.left_out);
    }

    #[test]
    fn only_known_variables_are_kept_and_without_their_secrets() {
        let bytes = b"HOME=/x\0JAVA_TOOL_OPTIONS=-Xmx1g -Dapi_key=x\0DB_PASSWORD=x\0MIMALLOC_VERBOSE=1\0";
        let kept = environment(bytes);
        assert_eq!(
            texts(&kept.bytes),
            "JAVA_TOOL_OPTIONS=-Xmx1g -Dapi_key=<redacted>|MIMALLOC_VERBOSE=1|"
        );
        assert_eq!(
            kept.left_out,
            ["variables that are no known tunables (2)", "the value of -Dapi_key"]
        );
    }

    #[test]
    fn counts_of_zero_go_and_every_mapping_keeps_its_rss() {
        let smaps =
            b"1000-2000 r--p 0 00:00 0 \nRss:                   0 kB\nPss:                   0 kB\nSize: 4 kB\n";
        assert_eq!(
            counts_that_count(smaps).bytes,
            b"1000-2000 r--p 0 00:00 0 \nRss:                   0 kB\nSize: 4 kB\n"
        );
    }
}
