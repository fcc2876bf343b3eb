//! Programs under the preload library: one small C program per situation, each of which checks itself, and real ones.
//!
//! The hugetlb pages are those that the machine has to spare: without any, the programs run on the fallback.

#[path = "preload/armed.rs"]
mod armed;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use compare::preload::Report;
use model::{Bytes, PageKind};
use settings::{LiveSink, Writer};

use self::armed::{armed, bytes, missing, run, skipped};

const LAYOUTS: [&str; 5] = [
    "thp",
    "thp,min=64K",
    "hugetlb-2M",
    "hugetlb-2M,min=64K",
    "base,1M-7M=hugetlb-2M,12M-=thp",
];

/// Compiles a situation; `None` where there is no C compiler.
fn program(name: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/preload")
        .join(format!("{name}.c"));
    let own = std::thread::current().name().unwrap_or_default().to_owned();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
    fs::create_dir_all(&folder).expect("a folder");
    let built = folder.join(name);
    let compiled = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&built)
        .arg(&source)
        .args(options)
        .output();
    let Ok(output) = compiled else {
        missing("a C compiler");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(built)
}

fn assert_success(output: &Output, what: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.is_empty(),
        "{what}: {}: {text}",
        output.status
    );
}

/// Runs a situation under every layout, and looks at what was counted.
fn situation(name: &str, look: impl Fn(&str, &Report)) {
    let Some(built) = program(name, &[]) else { return };
    for layout in LAYOUTS {
        let (output, report) = run(&mut Command::new(&built), layout);
        assert_success(&output, layout);
        assert_eq!(report.refused, 0, "{layout}: {report:?}");
        look(layout, &report);
    }
}

/// Everything that was asked for was given, or there is an error number for it.
fn served_or_told(layout: &str, report: &Report, least: Bytes) {
    match layout {
        "thp" => assert!(bytes(report, PageKind::Thp) >= least, "{report:?}"),
        "hugetlb-2M" => assert!(
            bytes(report, PageKind::HUGETLB_2M) >= least || !report.fallbacks.is_empty(),
            "{report:?}"
        ),
        _ => {}
    }
}

#[test]
fn parts_of_a_region_are_unmapped() {
    situation("unmap", |layout, report| {
        served_or_told(layout, report, Bytes::mib(8));
        assert_eq!(report.kept, 0, "one thread: every page can give way: {report:?}");
    });
}

#[test]
fn guard_pages_stand_inside_of_a_region() {
    situation("protect", |_, _| {});
}

#[test]
fn advice_on_parts_of_pages_does_what_it_says() {
    situation("advise", |_, _| {});
}

#[test]
fn regions_grow_shrink_and_move() {
    situation("remap", |_, _| {});
}

#[test]
fn mappings_replace_parts_of_a_region() {
    situation("fixed", |_, _| {});
}

#[test]
fn reserved_address_space_is_left_alone() {
    situation("reserve", |_, report| {
        assert!(report.served.is_empty() && report.fallbacks.is_empty(), "{report:?}");
    });
}

#[test]
fn a_forked_child_is_counted_beside_its_parent() {
    situation("forks", |layout, report| {
        served_or_told(layout, report, Bytes::mib(8));
    });
}

#[test]
fn a_program_that_closes_everything_and_starts_another_stays_covered() {
    let Some(built) = program("execs", &[]) else { return };
    let (output, report) = run(&mut Command::new(&built), "thp");
    assert_success(&output, "what the loader says is in the output, too");
    assert_eq!(bytes(&report, PageKind::Thp), Bytes::mib(8), "{report:?}");
}

#[test]
fn a_program_with_address_sanitizer_runs_as_ever() {
    let probe = Command::new("cc")
        .args(["-fsanitize=address", "-xc", "-", "-o", "/dev/null"])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut probe) = probe else {
        return missing("a C compiler");
    };
    let source = probe.stdin.take().expect("a pipe");
    (&source).write_all(b"int main(void) { return 0; }").expect("written");
    drop(source);
    if !probe.wait().expect("it ends").success() {
        return missing("AddressSanitizer of the C compiler");
    }
    let Some(built) = program("unmap", &["-fsanitize=address"]) else {
        return;
    };
    let (output, _) = run(&mut Command::new(&built), "thp");
    assert_success(&output, "AddressSanitizer");
}

#[test]
fn threads_map_and_unmap_at_the_same_time() {
    situation("threads", |layout, report| {
        served_or_told(layout, report, Bytes::mib(2 * 4 * 150));
    });
}

#[test]
fn arenas_smaller_than_a_large_page_are_cut_from_whole_ones() {
    situation("arenas", |layout, report| match layout {
        "thp,min=64K" => assert!(bytes(report, PageKind::Thp) >= Bytes::mib(2 * 4 * 10), "{report:?}"),
        "thp" => assert!(report.served.is_empty(), "too small to be looked at: {report:?}"),
        "hugetlb-2M,min=64K" => {
            let given = bytes(report, PageKind::HUGETLB_2M);
            assert!(given > Bytes(0) || !report.fallbacks.is_empty(), "{report:?}");
        }
        _ => {}
    });
}

#[test]
fn constructors_and_loaded_libraries_are_covered() {
    let Some(library) = program("early", &["-shared", "-fPIC"]) else {
        return;
    };
    let copy = library.with_file_name("copy.so");
    fs::copy(&library, &copy).expect("a copy");
    let path = library.to_str().expect("UTF-8");
    let Some(built) = program("linked", &[path, "-ldl"]) else {
        return;
    };
    for layout in LAYOUTS {
        let (output, report) = run(Command::new(&built).arg(&copy), layout);
        assert_success(&output, layout);
        served_or_told(layout, &report, Bytes::mib(8));
    }
}

#[test]
fn a_malloc_of_the_programs_own_is_covered() {
    situation("allocator", |layout, report| {
        served_or_told(layout, report, Bytes::mib(10));
    });
}

#[test]
fn the_heap_moves_as_ever_and_is_advised() {
    situation("heap", |layout, report| {
        if layout.starts_with("thp") {
            assert!(bytes(report, PageKind::Thp) >= Bytes::mib(15), "{report:?}");
        }
    });
}

#[test]
fn shared_segments_are_seen_by_parent_and_child() {
    situation("segments", |layout, report| {
        served_or_told(layout, report, Bytes::mib(5));
    });
}

#[test]
fn errors_are_the_kernels_and_success_leaves_errno_alone() {
    situation("errors", |_, _| {});
}

#[test]
fn rules_give_stretches_of_one_region_different_pages() {
    let Some(built) = program("layout", &[]) else { return };
    let (output, report) = run(&mut Command::new(&built), "base,8M-16M=thp,24M-32M=hugetlb-2M");
    assert_success(&output, "layout");
    let quarters = String::from_utf8_lossy(&output.stdout);
    let quarters: Vec<(u64, u64)> = quarters
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(thp, pool)| (thp.parse().expect("KiB"), pool.parse().expect("KiB")))
        .collect();
    assert!(
        quarters.len() == 4 && quarters[0] == (0, 0) && quarters[2] == (0, 0),
        "{quarters:?}"
    );
    assert_eq!(bytes(&report, PageKind::Thp), Bytes::mib(8));
    if quarters[1].0 == 0 {
        skipped("this machine gives no transparent huge pages to those that ask");
    }
    if report.fallbacks.is_empty() {
        assert_eq!(quarters[3], (0, 8 << 10));
    } else {
        skipped("no hugetlb pages to spare");
        assert_eq!(quarters[3], (0, 0));
    }
}

#[test]
fn on_pool_pages_every_situation_is_served_and_cut_pages_give_way() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("loan");
    let writer = Writer::new(folder, Box::new(LiveSink));
    let lease = writer
        .recover()
        .ok()
        .and_then(|_| writer.lease_pool(Bytes::mib(2), 100).ok());
    let Some(lease) = lease else {
        return skipped("no pool pages can be had on loan");
    };
    for (name, gives_way) in [
        ("unmap", true),
        ("protect", true),
        ("fixed", true),
        ("forks", true),
        ("advise", false),
        ("remap", true),
        ("allocator", false),
        ("arenas", false),
    ] {
        let Some(built) = program(name, &[]) else { break };
        let (output, report) = run(&mut Command::new(&built), "hugetlb-2M,min=256K");
        assert_success(&output, name);
        if report.fallbacks.is_empty() {
            assert!(
                bytes(&report, PageKind::HUGETLB_2M) >= Bytes::mib(4),
                "{name}: {report:?}"
            );
            assert_eq!(report.demoted > 0, gives_way, "{name}: {report:?}");
        } else {
            skipped(&format!("others took the pages on loan: {name}"));
        }
    }
    lease.give_back().expect("given back");
}

#[test]
fn a_program_without_orders_runs_as_ever() {
    let Some(built) = program("unmap", &[]) else { return };
    let armed = armed("thp");
    let (preload, orders) = (&armed.env[0], &armed.env[1]);
    for orders in [
        "",
        "x",
        "1:2:3",
        orders.1.to_str().expect("text").trim_end_matches(|c: char| c != ':'),
    ] {
        let output = Command::new(&built)
            .env(&preload.0, &preload.1)
            .env("HUGEWISE_PRELOAD", orders)
            .output();
        assert_success(&output.expect("it starts"), orders);
    }
    assert_eq!(armed.report().expect("counts"), Report::default());
}
