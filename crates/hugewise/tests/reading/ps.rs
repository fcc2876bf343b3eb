//! Choices, sums and watching of processes, on captured machines and on this one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{done, has_processes, hugewise, machine, machines, refused, sent, text, told, unread, valid};
use serde_json::Value;

fn root(name: &str) -> String {
    text(&machine(name)).to_owned()
}

fn ps(machine: &str, words: &[&str]) -> Value {
    valid(&done(&[&["--root", machine, "ps", "--json"], words].concat()).out)["data"].take()
}

fn names(data: &Value) -> Vec<&str> {
    let processes = data["processes"].as_array().expect("processes").iter();
    processes
        .map(|process| process["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn processes_are_chosen_by_name_user_and_control_group() {
    let root = root("cgroup-v2");
    assert_eq!(names(&ps(&root, &["--name", "java"])), ["java"]);
    assert_eq!(names(&ps(&root, &["--name", "post*"])), ["postgres"]);
    assert!(names(&ps(&root, &["--name", "nothing"])).is_empty());
    let all = ps(&root, &[]);
    let uid = all["processes"][0]["uid"].to_string();
    let of_user = ps(&root, &["--user", &uid]);
    let uids = of_user["processes"].as_array().expect("processes").iter();
    assert!(uids.clone().count() > 0 && uids.clone().all(|row| row["uid"] == all["processes"][0]["uid"]));
    assert_eq!(of_user["totals"]["processes"], uids.count());
    assert_eq!(of_user["filter"], format!("user {uid}"));
    assert_eq!(names(&ps(&root, &["--cgroup", "/"])).len(), names(&all).len());
    assert!(names(&ps(&root, &["--cgroup", "/nowhere"])).is_empty());
    let why = refused(&["--root", &root, "ps", "--user", "nobody-at-all"]);
    assert!(
        why.contains("--user nobody-at-all") && why.contains("write the id"),
        "{why}"
    );
}

#[test]
fn sums_by_anything_count_every_process() {
    for (name, path) in machines().into_iter().filter(|(_, path)| has_processes(path)) {
        let root = path.to_str().expect("a plain path");
        for by in ["user", "container", "unit", "vm"] {
            let data = ps(root, &["--by", by]);
            let groups = data["groups"]["groups"].as_array().expect("groups");
            let sum: u64 = groups
                .iter()
                .map(|group| group["totals"]["processes"].as_u64().expect("a count"))
                .sum();
            assert_eq!(data["totals"]["processes"], sum, "{name} by {by}");
            assert!(names(&data).is_empty(), "{name} by {by}");
            let csv = done(&["--root", root, "ps", "--by", by, "--format", "csv"]).out;
            assert_eq!(csv.lines().count(), groups.len() + 1, "{name} by {by}");
        }
    }
}

#[test]
fn control_groups_count_those_below_them() {
    let root = root("kubernetes-node");
    let data = ps(&root, &["--by", "cgroup"]);
    let groups = data["groups"]["groups"].as_array().expect("groups");
    let count = |path: &str| {
        let group = groups.iter().find(|group| group["name"] == path);
        group.and_then(|group| group["totals"]["processes"].as_u64())
    };
    assert_eq!(count("/"), data["totals"]["processes"].as_u64());
    for group in groups {
        let name = group["name"].as_str().expect("a path");
        if let Some((above, _)) = name.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
            assert!(count(above) >= count(name), "{name}");
        }
    }
}

#[test]
fn what_could_be_large_is_told_with_its_reason_if_asked_for() {
    let root = root("cgroup-v2");
    let data = ps(&root, &["--why", "--sort", "missed"]);
    assert_eq!(names(&data)[0], "java");
    let missed = &data["processes"][0]["missed"];
    assert!(
        missed["bytes"].as_u64() > Some(0) && missed["eligible"].as_u64() > Some(0),
        "{missed}"
    );
    assert!(missed["why"]["not-given"].is_u64(), "{missed}");
    assert!(ps(&root, &[])["processes"][0]["missed"].is_null());
    let small = data["processes"]
        .as_array()
        .expect("processes")
        .last()
        .expect("systemd");
    assert!(small["missed"].is_null(), "{small}");
    let text = done(&["--root", &root, "ps", "--why"]).out;
    assert!(
        text.contains("could be huge") && text.contains("not allocated"),
        "{text}"
    );
}

/// One process always has its reasons and its nodes, and asking for them is no error.
#[test]
fn what_one_process_has_anyway_may_be_asked_for() {
    let root = root("cgroup-v2");
    let run = |more: &[&str]| done(&[&["--root", &root, "ps", "2377"], more].concat()).out;
    let plain = run(&[]);
    assert_eq!((run(&["--why"]), run(&["--numa"])), (plain.clone(), plain.clone()));
    assert!(plain.contains("could be huge"), "{plain}");
}

/// The table of reasons is where a reader looks up what the column says.
#[test]
fn every_reason_for_base_pages_is_in_the_guide() {
    use host::processes::Reason;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/processes.md");
    let page = std::fs::read_to_string(page).expect("the page");
    for reason in Reason::ALL {
        let row = format!("| {} |", reason.short());
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn pool_pages_that_no_process_maps_are_listed_with_their_owner() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let archive = format!(
        "hugewise tree 1\nline {pool}/nr_hugepages 8\nline {pool}/free_hugepages 4\n\
         line /hugewise/hugetlb_files file 2097152 8388608 00:2e 8 26 0 /dev/hugepages/left-over\n\
         file /proc/1/status\n|Name:\tinit\n|VmRSS:\t9 kB\n|VmPTE:\t9 kB\nend\n"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("held.tree");
    std::fs::write(&file, archive).expect("written");
    let root = file.to_str().expect("a plain path");
    let holder = ps(root, &[])["held_by_nobody"]["holders"][0].take();
    assert_eq!(
        (&holder["bytes"], &holder["uid"]),
        (&Value::from(8 << 20), &Value::from(26))
    );
    let text = done(&["--root", root, "ps"]).out;
    assert!(
        text.contains("Pool pages that no process maps") && text.contains("/dev/hugepages/left-over"),
        "{text}"
    );
    assert!(text.contains("8M of 8M in use in pools"), "{text}");
}

#[test]
fn every_mapping_of_this_process_says_why_it_is_on_base_pages() {
    let pid = std::process::id().to_string();
    let data = valid(&done(&["ps", &pid, "--vmas", "--json"]).out)["data"].take();
    let mappings = data["mappings"].as_array().expect("mappings");
    let reasons = mappings.iter().filter(|mapping| mapping["backing"]["base"].is_u64());
    assert!(reasons.clone().count() > 5);
    for mapping in reasons {
        assert!(mapping["why_base"].is_string(), "{mapping}");
    }
    // Private memory, shared memory and files are all of it, but for pages that two mappings of a file show.
    let bytes = |kinds: &Value| -> u64 {
        let kinds = kinds.as_object().expect("kinds").values();
        kinds.map(|bytes| bytes.as_u64().expect("bytes")).sum()
    };
    let all: u64 = mappings.iter().map(|mapping| bytes(&mapping["backing"])).sum();
    let sum: u64 = ["private", "shared", "file"]
        .iter()
        .map(|sort| bytes(&data["coverage"][sort]))
        .sum();
    assert!(sum <= all && sum as f64 >= 0.98 * all as f64, "{sum} of {all}: {data}");
    let text = done(&["ps", &pid, "--vmas"]).out;
    assert!(text.contains("on huge pages: private"), "{text}");
    assert!(text.contains("why base") && text.contains(" file "), "{text}");
}

#[test]
fn a_watch_appends_to_a_pipe_and_ends_well_with_ctrl_c() {
    let root = root("cgroup-v2");
    let mut child = hugewise(&["--root", &root, "ps", "--watch", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut titles = 0;
    while titles < 3 {
        let line = lines.next().expect("more").expect("a line");
        assert!(!line.contains('\u{1b}'), "{line}");
        titles += usize::from(line == "Page kinds behind processes");
    }
    sent("-INT", &child);
    for line in lines {
        line.expect("the rest");
    }
    let run = told(child.wait_with_output().expect("ends"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

#[test]
fn a_watch_whose_reader_goes_away_ends() {
    let root = root("cgroup-v2");
    unread(&["--root", &root, "ps", "--watch", "0.1"]);
}

#[test]
fn words_that_mean_nothing_together_are_refused() {
    for (words, part) in [
        (&["ps", "1", "--by", "user"][..], "cannot be used with"),
        (&["ps", "--watch", "0"], "0.1 to 86400"),
        (&["ps", "--watch", "--output", "/tmp/x"], "cannot be used with"),
        (&["ps", "--by", "colour"], "cgroup, container, unit, vm, user"),
    ] {
        let why = refused(words);
        assert!(why.contains(part), "{words:?}: {why}");
    }
}

/// What a watch prints until it is ended, line by line.
fn watched(format: &str, lines: usize) -> Vec<String> {
    let mut command = hugewise(&["ps", "--top", "1", "--watch", "0.1", "--format", format]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let read = out.lines().take(lines).collect::<Result<_, _>>().expect("lines");
    sent("-INT", &child);
    child.wait().expect("ends");
    read
}

#[test]
fn a_watch_is_a_series_with_times() {
    let csv = watched("csv", 3);
    assert!(csv[0].starts_with("time,pid,name,"), "{csv:?}");
    for line in &csv[1..] {
        let time = line.split(',').next().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    }
    for line in watched("json", 2) {
        let result: Value = serde_json::from_str(&line).expect("a result in a line");
        assert!(result["started"].is_string());
    }
}
