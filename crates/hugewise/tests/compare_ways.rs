//! Real programs get their pages by the way that reaches their memory: the proof is the coverage, not the speed.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{hugewise, run, skipped, told, valid};
use serde_json::Value;

/// Fills so many MiB from malloc, from mmap, from mmap in parts of 1 MiB, or so by the system call itself, and walks them for so
/// many seconds.
const HOLDS: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static char *map(size_t len) { return mmap(NULL, len, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static char *direct(size_t len) { return (char *)syscall(SYS_mmap, NULL, len, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t count = atol(argv[2]);
    double until = atof(argv[3]);
    char **parts = malloc(count * sizeof *parts);
    char *all = *argv[1] == 'm' ? strcmp(argv[1], "malloc") ? map(count << 20) : malloc(count << 20) : NULL;
    for (size_t i = 0; i < count; i++) {
        parts[i] = all ? all + (i << 20) : *argv[1] == 'd' ? direct(1 << 20) : map(1 << 20);
        memset(parts[i], 1, 1 << 20);
    }
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    volatile unsigned long sum = 0;
    do {
        for (size_t i = 0; i < count; i++) sum += parts[i][i];
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < until);
    return 0;
}
"#;

/// The same for a static program without a C library.
const HOLDS_GO: &str = r#"
package main

import "time"

func main() {
	block := make([]byte, 96<<20)
	for begin := time.Now(); time.Since(begin) < time.Second; {
		for at := 0; at < len(block); at += 4096 {
			block[at]++
		}
	}
}
"#;

/// Compiles the program; `None` where the compiler is not here or cannot.
fn compiled(folder: &Path, compiler: &str, source: (&str, &str), options: &[&str]) -> Option<PathBuf> {
    let (file, program) = (folder.join(source.0), folder.join("holds"));
    std::fs::write(&file, source.1).expect("written");
    let mut command = Command::new(compiler);
    command.args(options).arg("-o").arg(&program).arg(&file);
    let made = command
        .env("GOCACHE", folder.join("cache"))
        .env("GO111MODULE", "off")
        .output();
    match made {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            skipped(&format!(
                "it does not compile here with {compiler}: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
            None
        }
        Err(error) => {
            common::missing(&format!("{compiler} ({error})"));
            None
        }
    }
}

/// Compares base with other arms once, and gives the arms with what was said.
fn compared(options: &[&str], program: &Path, arguments: &[&str]) -> (Value, String) {
    let once = ["compare", "--runs", "1", "--warm-up", "0", "--no-pool", "--json"];
    let program = program.to_str().expect("a name");
    let words = [&once[..], options, &["--", program], arguments].concat();
    // On a busy machine a run may be over before it is looked at.
    for _ in 0..5 {
        let run = run(&words);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let arms = valid(&run.out)["data"]["arms"].clone();
        if !arms[1]["coverage"]["median"].is_null() {
            return (arms, run.err);
        }
    }
    panic!("{words:?}: no run of five was looked at");
}

fn thp_mode() -> String {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default()
}

fn is_thp_given() -> bool {
    let given = !thp_mode().is_empty() && !thp_mode().contains("[never]");
    if !given {
        skipped("this machine gives no THP");
    }
    given
}

/// Under `always` no technique is tried that the program as it is does without.
fn are_techniques_tried() -> bool {
    let given = is_thp_given();
    let is_always = thp_mode().contains("[always]");
    if is_always {
        skipped("the THP mode is always, which gives huge pages without a technique");
    }
    given && !is_always
}

/// The share of the second arm's memory that its page kind backs, and how it came about.
#[track_caller]
fn assert_covered(arms: &Value, by: &str) {
    let (technique, coverage) = (&arms[1]["technique"], &arms[1]["coverage"]["median"]);
    assert!(
        technique.as_str().is_some_and(|technique| technique.starts_with(by)),
        "{technique}"
    );
    assert!(
        coverage.as_f64().is_some_and(|share| share > 0.9),
        "{technique}: {coverage}"
    );
    assert_eq!(arms[1]["took_effect"], true, "{technique}");
}

/// The share of memory, in percent, that huge pages backed when a technique was tried.
#[track_caller]
fn share_tried(technique: &str, said: &str) -> f64 {
    let (_, after) = said
        .split_once(&format!("{technique}: "))
        .expect("the technique was tried");
    let (share, _) = after.split_once(" %").expect("a share");
    share.parse().expect("a number")
}

#[test]
fn malloc_is_reached_by_tunables_and_mmap_by_the_library_in_front() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    if thp_mode().contains("[always]") {
        let (arms, _) = compared(&["--arms", "base,thp"], &program, &["mmap", "96", "0.6"]);
        return assert_covered(&arms, "as the machine's mode gives them");
    }
    if !is_thp_given() {
        return;
    }
    let (arms, said) = compared(&["--arms", "base,thp"], &program, &["malloc", "96", "0.6"]);
    // Of glibc 2.36 the tunable takes effect by chance, and the library is tried first.
    let by = match said.contains("arm thp: glibc's tunables") {
        true => "glibc's tunables",
        false => "an LD_PRELOAD library that backs the program's own mappings, and for malloc glibc's tunables",
    };
    assert_covered(&arms, by);
    let (arms, said) = compared(&["--arms", "base,thp"], &program, &["mmap", "96", "0.6"]);
    assert_covered(&arms, "an LD_PRELOAD library");
    // Of some 96 MiB: what malloc itself holds is two huge pages at most.
    if by == "glibc's tunables" {
        assert!(share_tried(by, &said) < 5.0, "{said}");
    }
    let (arms, _) = compared(
        &["--arms", "base,thp", "--technique", "preload"],
        &program,
        &["mmap", "96", "0.6"],
    );
    assert_covered(&arms, "an LD_PRELOAD library");
}

#[test]
fn parts_are_cut_from_large_pages_and_what_the_library_cannot_see_is_collapsed_from_outside() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    if !are_techniques_tried() {
        return;
    }
    let (arms, _) = compared(&["--arms", "base,thp"], &program, &["parts", "96", "1"]);
    assert_covered(&arms, "an LD_PRELOAD library");
    let (arms, _) = compared(&["--arms", "base,thp"], &program, &["direct", "96", "1"]);
    assert_collapsed(&arms, "chosen by trial");
}

#[test]
fn static_programs_are_collapsed_from_outside_and_have_no_way_to_a_pool() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "musl-gcc", ("holds.c", HOLDS), &["-O1", "-static"]) else {
        return;
    };
    let name = program.to_str().expect("a name");
    let error = common::refused(&["compare", "--arms", "base,hugetlb-2M", "--", name, "malloc", "8", "0"]);
    assert!(
        error.contains("a static program takes no pages of a pool from outside"),
        "{error}"
    );
    without_glibc(name, "a static program");
    if !are_techniques_tried() {
        return;
    }
    let (arms, _) = compared(&["--arms", "base,thp"], &program, &["malloc", "96", "1"]);
    assert_collapsed(&arms, "collapsed from outside");
}

/// A technique for glibc is refused before any run of such a program, and taken for what starts it.
fn without_glibc(name: &str, title: &str) {
    for technique in ["tunables", "preload"] {
        let options = [
            "compare",
            "--arms",
            "base,thp",
            "--technique",
            technique,
            "--runs",
            "1",
            "--warm-up",
            "0",
            "--",
        ];
        let error = common::refused(&[&options[..], &[name, "malloc", "8", "0"]].concat());
        let says = format!("`{technique}` ");
        assert!(
            error.contains(&says) && error.contains(title) && error.contains("leave the technique out"),
            "{error}"
        );
        let behind = run(&[&options[..], &["timeout", "9", name, "malloc", "8", "0"]].concat());
        assert_eq!(behind.code, Some(0), "{}", behind.err);
    }
}

#[test]
fn malloc_of_a_static_program_with_glibc_is_reached_by_its_tunables() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1", "-static"]) else {
        return;
    };
    let name = program.to_str().expect("a name");
    let pool = [
        "compare",
        "--arms",
        "base,hugetlb-2M",
        "--runs",
        "1",
        "--warm-up",
        "0",
        "--json",
        "--",
        name,
    ];
    let mut compare = hugewise(&[&pool[..], &["malloc", "32", "0.6"]].concat());
    let state = folder.path().join("state");
    let run = told(compare.env("HUGEWISE_STATE_DIR", state).output().expect("starts"));
    if run.err.contains("a static program takes no pages of a pool") {
        return skipped(&format!("needs a glibc with the tunable: {}", run.err));
    }
    assert_eq!(run.code, Some(0), "{}", run.err);
    let arms = &valid(&run.out)["data"]["arms"];
    let technique = arms[1]["technique"].as_str().expect("words");
    assert!(
        technique.starts_with("glibc's tunables (GLIBC_TUNABLES=glibc.malloc.hugetlb=2097152"),
        "{technique}"
    );
    if technique.contains("pages of 2M could not be borrowed") {
        return skipped(&format!("no hugetlb pages to spare: {technique}"));
    }
    assert!(arms[1]["coverage"]["median"].as_f64() > Some(0.9), "{arms}");
}

#[test]
fn a_go_program_is_collapsed_from_outside() {
    let folder = tempfile::tempdir().expect("a directory");
    let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| {
        let version = Command::new(go).arg("version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let Some(go) = go else { return common::missing("go") };
    let Some(program) = compiled(folder.path(), go, ("holds.go", HOLDS_GO), &["build"]) else {
        return;
    };
    without_glibc(program.to_str().expect("a name"), "a Go program");
    if !are_techniques_tried() {
        return;
    }
    let (arms, said) = compared(&["--arms", "base,thp"], &program, &[]);
    assert!(said.contains("is a Go program"), "{said}");
    assert_collapsed(&arms, "collapsed from outside");
}

/// Collapsing takes the right to (CAP_SYS_NICE) and free memory in large pieces; without them the arm says so.
#[track_caller]
fn assert_collapsed(arms: &Value, by: &str) {
    let arm = &arms[1];
    let technique = arm["technique"].as_str().unwrap_or_default();
    if technique.contains("collapsed from outside while it runs: 0.0 %") && !rustix::process::geteuid().is_root() {
        return skipped("not root: this user may not collapse memory of another process");
    }
    assert!(
        technique.starts_with("collapsed from outside") && technique.contains(by),
        "{technique}"
    );
    let notes = arm["runs"][0]["notes"].to_string();
    assert!(notes.contains("collapsed from outside"), "{notes}");
    if arm["took_effect"] == true {
        assert!(
            arm["coverage"]["median"].as_f64().is_some_and(|share| share > 0.5),
            "{arm}"
        );
    } else {
        skipped(&format!("the kernel did not collapse enough: {notes}"));
    }
}

/// The run that shows how large a pool has to be is on the first way, which need not be the one taken.
#[test]
fn a_reference_on_huge_pages_is_reached_by_a_later_way_where_another_arm_needs_a_pool() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    if !are_techniques_tried() {
        return;
    }
    let program = program.to_str().expect("a name");
    let once = ["compare", "--runs", "1", "--warm-up", "0", "--json", "--pool", "96M"];
    let what = ["--arms", "thp,hugetlb-2M", "--", program, "mmap", "48", "0.6"];
    let mut compare = hugewise(&[&once[..], &what].concat());
    let state = folder.path().join("state");
    let run = told(compare.env("HUGEWISE_STATE_DIR", state).output().expect("starts"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("a first run shows"), "{}", run.err);
    let reference = valid(&run.out)["data"]["arms"][0].clone();
    assert_eq!(reference["took_effect"], true, "{reference}");
    let technique = reference["technique"].as_str().unwrap_or_default();
    assert!(technique.starts_with("an LD_PRELOAD library"), "{technique}");
}

#[test]
fn a_layout_of_ones_own_gives_a_part_of_the_mappings_its_kind() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    if !is_thp_given() {
        return;
    }
    let file = folder.path().join("arms.toml");
    std::fs::write(&file, "[half]\nlayout = \"base,0-48M=thp\"\n").expect("written");
    let file = file.to_str().expect("a name");
    let options = ["--arms", "base,half", "--arms-file", file, "--least-coverage", "40%"];
    let (arms, _) = compared(&options, &program, &["mmap", "96", "0.6"]);
    let half = &arms[1];
    let share = half["coverage"]["median"].as_f64().unwrap_or(0.0);
    assert!((0.4..0.6).contains(&share), "{half}");
    assert!(half["technique"].to_string().contains("base,0-48M=thp"), "{half}");
    std::fs::write(Path::new(file), "[half]\nlayout = \"base,0-48M=thp,48M-=hugetlb-2M\"\n").expect("written");
    let refused = common::refused(&[&["compare"], &options[..], &["--", "/bin/true"]].concat());
    assert!(refused.contains("several kinds of huge pages"), "{refused}");
}

#[test]
fn an_allocator_in_front_of_the_program_is_seen_and_reached() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
    if !library.exists() {
        return common::missing("libjemalloc");
    }
    if !are_techniques_tried() {
        return;
    }
    let file = folder.path().join("arms.toml");
    let own = format!("env = {{ LD_PRELOAD = \"{}\" }}\n", library.display());
    let text = format!("[plain]\nlike = \"base\"\n{own}[large]\nlike = \"thp\"\n{own}");
    std::fs::write(&file, text).expect("written");
    let options = ["--arms", "plain,large", "--arms-file", file.to_str().expect("a name")];
    let (arms, _) = compared(&options, &program, &["malloc", "96", "0.6"]);
    assert_covered(&arms, "jemalloc's options");
}

#[test]
fn a_comparison_that_is_gone_on_with_keeps_the_ways_of_its_arms_without_another_trial() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(folder.path(), "cc", ("holds.c", HOLDS), &["-O1"]) else {
        return;
    };
    if !is_thp_given() {
        return;
    }
    let (log, program) = (folder.path().join("log.jsonl"), program.to_str().expect("a name"));
    let log = log.to_str().expect("a name");
    let compare = |options: &[&str]| {
        let all = ["compare", "--arms", "base,thp", "--warm-up", "0", "--json"];
        run(&[&all[..], options, &["--", program, "mmap", "32", "0.2"]].concat())
    };
    // By trial it would be the LD_PRELOAD library.
    let first = compare(&["--technique", "collapse", "--runs", "1", "--log", log]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let other = compare(&["--technique", "tunables", "--resume", log]);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("the arm thp are by collapse"), "{}", other.err);
    let resumed = compare(&["--runs", "2", "--resume", log]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(!resumed.err.contains("arm thp:"), "no trial: {}", resumed.err);
    let thp = &valid(&resumed.out)["data"]["arms"][1];
    let technique = thp["technique"].as_str().unwrap_or_default();
    assert!(technique.starts_with("collapsed from outside"), "{thp}");
    assert!(thp["runs"].as_array().is_some_and(|runs| runs.len() == 2), "{thp}");
}

/// Closes what it inherited, and runs a program.
const CLOSES: &str = r#"
#include <unistd.h>
int main(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    execl("/bin/true", "true", (char *)NULL);
    return 1;
}
"#;

/// Compares by the LD_PRELOAD library what ends with an error if another program in it writes anything.
fn silent(line: &str) -> common::Run {
    let line = format!("said=$({line} 2>&1); test -z \"$said\"");
    let options = "compare --arms base,thp --technique preload --runs 1 --warm-up 0 --no-pool -- sh -c";
    run(&common::words(options, &[line.as_str()]))
}

#[test]
fn programs_that_leave_the_library_behind_write_what_they_write_without_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(closes) = compiled(folder.path(), "cc", ("closes.c", CLOSES), &["-O1"]) else {
        return;
    };
    let ended = silent(closes.to_str().expect("a name"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    if !rustix::process::geteuid().is_root() {
        return skipped("another user's program needs root");
    }
    for line in [
        "setpriv --reuid=61001 --regid=61001 --clear-groups true",
        "unshare --pid --fork --mount-proc true",
        "chroot / true",
    ] {
        if !Command::new("sh")
            .args(["-c", line])
            .output()
            .is_ok_and(|made| made.status.success())
        {
            skipped(&format!("this machine does not permit {line}"));
            continue;
        }
        let ended = silent(line);
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.err);
    }
}

#[test]
fn an_arm_is_refused_where_the_loader_would_write_into_its_output() {
    if !rustix::process::geteuid().is_root() {
        return skipped("another mount in the place of a directory needs root");
    }
    let line = "mount -t tmpfs none /var/cache && ls /";
    let options = "compare --arms base,thp --technique preload --runs 1 --warm-up 0 --no-pool -- unshare -m sh -c";
    if !Command::new("unshare")
        .args(["-m", "true"])
        .output()
        .is_ok_and(|made| made.status.success())
    {
        return skipped("mount namespaces are not permitted");
    }
    let ended = run(&common::words(options, &[line]));
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(
        ended.err.contains("thp") && ended.err.contains("cannot load the LD_PRELOAD library"),
        "{}",
        ended.err
    );
}
