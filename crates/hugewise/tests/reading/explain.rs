//! `explain`: every form, on captured machines and on this one.

use crate::common::{done, hugewise, machines, refused, told, valid};

#[test]
fn a_captured_database_is_explained_in_every_form() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "postgres-good")
        .expect("it");
    let root = machine.to_str().expect("a plain path");
    let text = done(&["--root", root, "explain", "postgres"]).out;
    let first: Vec<&str> = text.lines().take(5).collect();
    assert!(first[0].starts_with("PostgreSQL, postgres (812)"), "{text}");
    assert!(
        first[1].contains("yes: shared memory is backed by hugetlb-2M pages"),
        "{text}"
    );
    assert!(first[2].contains("970 pages: 600 touched + 370 reserved"), "{text}");
    let csv = done(&["--root", root, "explain", "postgres", "--format", "csv"]).out;
    assert!(csv.contains(",shared memory,"), "{csv}");
    let result = valid(&done(&["--root", root, "explain", "postgres", "--json"]).out);
    assert_eq!(result["data"]["programs"][0]["in_use"], "yes", "{result}");
    for form in ["markdown", "html"] {
        assert!(
            done(&["--root", root, "explain", "postgres", "--format", form])
                .out
                .contains("970 pages"),
            "{form}"
        );
    }
}

#[test]
fn a_server_in_a_container_is_planned_for_as_plan_accepts_it() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "cgroup-v2")
        .expect("it");
    let tree = std::fs::read_to_string(machine).expect("an archive");
    // Its shared memory, on base pages.
    let on_base = tree
        .replacen("/anon_hugepage (deleted)", "/SYSV00000000 (deleted)", 1)
        .replace("|Shared_Hugetlb:  1048576 kB", "|Shared_Hugetlb:        0 kB")
        .replacen(r"me ms de ht\x20", r"me ms\x20", 1)
        .replacen("|KernelPageSize:     2048 kB", "|KernelPageSize:        4 kB", 1)
        .replacen("|Rss:                   0 kB", "|Rss:             1048576 kB", 1)
        .replacen(r"|postgres\x00\", r"|postgres\x00-c\x00huge_pages=off\x00\", 1);
    let temp = tempfile::tempdir().expect("a folder");
    let path = temp.path().join("made.tree");
    std::fs::write(&path, on_base).expect("written");
    let root = path.to_str().expect("a plain path");
    let text = done(&["--root", root, "explain", "postgres"]).out;
    // It needs 512, and 512 of the pool's 2048 are in use: the goal keeps all.
    assert!(text.contains("plan --for pool:2M=2048 --output"), "{text}");
    let why = refused(&["--root", root, "plan", "--for", "postgres:pid=2210"]);
    let all = "--for pool:2M=2048, for 1G of shared memory beside 512 pages in use";
    assert!(why.contains(all), "{why}");
    done(&["--root", root, "plan", "--for", "pool:2M=2048"]);
}

#[test]
fn the_session_of_a_server_is_explained_as_its_server() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "postgres-good")
        .expect("it");
    let root = machine.to_str().expect("a plain path");
    let explain =
        |word: &str| valid(&done(&["--root", root, "explain", word, "--json"]).out)["data"]["programs"].clone();
    let server = explain("postgres");
    let others = server[0]["others"].as_u64().expect("a number");
    assert_eq!((others, explain("812")[0]["others"].as_u64()), (4, Some(4)));
    let session = "830";
    let asked = explain(session);
    assert_eq!(
        (&asked[0]["pid"], &asked[0]["of_process"]["pid"]),
        (&server[0]["pid"], &session.parse::<u32>().expect("it").into())
    );
    assert_eq!(asked[0]["next"], server[0]["next"]);
    let text = done(&["--root", root, "explain", session]).out;
    assert!(text.contains(&format!("process {session}")), "{text}");
}

#[test]
fn a_word_for_a_program_that_does_not_run_says_which_program() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "postgres-good")
        .expect("it");
    let root = machine.to_str().expect("a plain path");
    let why = refused(&["--root", root, "explain", "innodb"]);
    let expected = "no MySQL or MariaDB process runs here, which is what `innodb` means; running: postgres";
    assert!(why.contains(expected), "{why}");
}

#[test]
fn one_of_several_servers_is_chosen_by_its_directory_or_port() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "postgres-good")
        .expect("it");
    let root = machine.to_str().expect("a plain path");
    let explain = |word: &str| done(&["--root", root, "explain", word]).out;
    let server = explain("postgres");
    for which in [
        "postgres:pid=812",
        "postgres:/etc/postgresql/15/main",
        "postgresql:/etc/postgresql/15/main/postgresql.conf",
    ] {
        assert_eq!(explain(which).lines().next(), server.lines().next(), "{which}");
    }
    for which in ["postgres:port=1", "postgres:/srv/other", "postgres:pid=1"] {
        let error = refused(&["--root", root, "explain", which]);
        assert!(error.contains(&format!("`{which}`")), "{error}");
    }
}

#[test]
fn what_follows_a_restart_names_the_program_and_not_its_old_pid() {
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "kubernetes-node")
        .expect("it");
    let root = machine.to_str().expect("a plain path");
    let pid =
        valid(&done(&["--root", root, "explain", "java", "--json"]).out)["data"]["programs"][0]["pid"].to_string();
    let text = done(&["--root", root, "explain", &pid]).out;
    let next = text.split("\nNext\n").nth(1).expect("steps");
    assert!(
        next.contains("restart") && next.contains("  hugewise explain "),
        "{next}"
    );
    assert!(!next.contains(&format!("hugewise explain {pid}")), "{next}");
}

#[test]
fn an_empty_word_means_no_process() {
    let error = refused(&["explain", ""]);
    assert!(error.contains("is empty"), "{error}");
}

#[test]
fn a_word_without_a_process_is_an_error_that_names_it() {
    let error = refused(&["explain", "no-such-program-anywhere"]);
    assert!(error.contains("`no-such-program-anywhere`"), "{error}");
}

/// The kernel's own accounts of a process are what `explain` reports of it.
#[test]
fn a_process_of_this_machine_is_explained_by_its_number_and_its_numbers_are_the_kernel_s() {
    let mut sleeper = hugewise(&["ps", "--watch", "9"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a process");
    let pid = sleeper.id();
    // It maps what it needs before its first look ends.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let run = told(
        hugewise(&["explain", &pid.to_string(), "--json"])
            .output()
            .expect("a run"),
    );
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its mappings");
    sleeper.kill().expect("its own child");
    sleeper.wait().expect("its own child");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let result = valid(&run.out);
    let program = &result["data"]["programs"][0];
    assert_eq!(program["pid"], pid, "{result}");
    let parts = program["parts"].as_array().expect("parts");
    let touched = parts.iter().find(|part| part["what"] == "private-memory").expect("it");
    let touched = touched["touched"].as_u64().expect("bytes");
    let (mut private, mut all) = (0, 0);
    let mut counts = false;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some(first) if !first.ends_with(':') => {
                counts = !words.nth(4).unwrap_or_default().starts_with('/');
            }
            Some("Rss:") => {
                let kib: u64 = words.next().and_then(|kib| kib.parse().ok()).expect("kB");
                private += if counts { kib << 10 } else { 0 };
                all += kib << 10;
            }
            _ => {}
        }
    }
    assert_eq!(touched, private, "{result}");
    // Private memory, shared memory and files add up, but for pages that two mappings of a file show.
    let sorts = ["private", "shared", "file"].map(|sort| program["resident"][sort].as_object().expect("kinds"));
    let bytes = sorts
        .into_iter()
        .flat_map(|kinds| kinds.values())
        .map(|bytes| bytes.as_u64().expect("bytes"));
    let sum: u64 = bytes.sum();
    assert!(
        sum <= all && sum as f64 >= 0.98 * all as f64,
        "{sum} of {all}: {result}"
    );
}

#[test]
fn settings_in_vain_and_small_shares_are_no_answer() {
    let explained = |case: &str, word: &str| {
        let root = format!("{}/../../fixtures/cases/{case}", env!("CARGO_MANIFEST_DIR"));
        done(&["--root", &root, "explain", word, "--json"]).out + &done(&["--root", &root, "explain", word]).out
    };
    let unread = explained("121-variables-in-vain/rust.tree", "faf-allocator-b");
    assert!(unread.contains("background_thread:true (read by nothing)"), "{unread}");
    let share = explained("120-hugetlb-and-fork/registered.tree", "wave_mpi");
    assert!(
        share.contains("hardly: private memory is backed by hugetlb-2M 2G"),
        "{share}"
    );
    // The evidence is the child's.
    let forked = explained("120-hugetlb-and-fork/heap.tree", "matcher");
    assert!(forked.contains("write to one heap"), "{forked}");
    // Its buffer pool is on THP, which it switched off for what came later.
    let served = explained("118-off-by-itself/mariadb.tree", "mysql");
    assert!(served.contains("2G of private memory: switched off"), "{served}");
    assert!(!served.contains("plan --for"), "{served}");
}
