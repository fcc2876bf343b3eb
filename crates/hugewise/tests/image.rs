//! `explain --image`: executables at rest, against what readelf reads of them.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use common::{done, missing, refused, skipped, valid};

const HUGE: u64 = 2 << 20;

fn images(path: &str) -> Value {
    let run = done(&["explain", "--image", path, "--page-size", "2M", "--json"]);
    valid(&run.out)["data"].take()
}

/// Offset, address, size in the file and alignment of the executable segments, and what the file is for a loader: by readelf.
fn by_readelf(file: &str) -> (String, Vec<[u64; 4]>, u64) {
    let run = Command::new("readelf")
        .args(["-hlW", file])
        .env("LC_ALL", "C")
        .output()
        .expect("readelf");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let kind = match text.lines().find(|line| line.trim_start().starts_with("Type:")) {
        Some(line) if line.contains("EXEC") => "fixed",
        Some(_) if text.lines().any(|line| line.trim_start().starts_with("INTERP")) => "pie",
        _ => "library",
    };
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("hex");
    let (mut segments, mut align) = (Vec::new(), 0);
    for line in text.lines().filter(|line| line.trim_start().starts_with("LOAD")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let own = hex(words[words.len() - 1]);
        align = align.max(own);
        if words[6..words.len() - 1].concat().contains('E') {
            segments.push([hex(words[1]), hex(words[2]), hex(words[4]), own]);
        }
    }
    (kind.to_owned(), segments, align)
}

/// What the loader makes of it, by its own words: a huge page of the file has to lie in it, at an address that fits.
fn fit(kind: &str, [offset, address, size, _]: [u64; 4], align: u64) -> (u64, &'static str) {
    let pages = ((offset + size) / HUGE).saturating_sub(offset.div_ceil(HUGE));
    let fits = pages > 0 && offset % HUGE == address % HUGE;
    let answer = match (size < HUGE, fits, kind) {
        (true, _, _) => "size",
        (_, false, _) => "alignment",
        (_, _, "fixed") => "yes",
        _ if align >= HUGE => "yes",
        (_, _, "library") => "if-mapped-so",
        _ => "alignment",
    };
    (pages, answer)
}

#[test]
fn what_is_read_of_executables_is_what_readelf_reads() {
    if Command::new("readelf").arg("--version").output().is_err() {
        return missing("readelf");
    }
    let jvm = std::fs::read_dir("/usr/lib/jvm").ok().and_then(|mut all| {
        let real = all.find(|one| {
            one.as_ref()
                .is_ok_and(|one| one.file_type().is_ok_and(|kind| kind.is_dir()))
        });
        Some(real?.ok()?.path().display().to_string())
    });
    let own = env!("CARGO_BIN_EXE_hugewise").to_owned();
    let places = [Some("/usr/lib/postgresql".to_owned()), jvm, Some(own)];
    for place in places
        .into_iter()
        .map(|place| place.filter(|place| Path::new(place).exists()))
    {
        let Some(place) = place else {
            skipped("a PostgreSQL or a JVM is not installed");
            continue;
        };
        let images = images(&place);
        let segments = images["segments"].as_array().expect("segments");
        assert!(!segments.is_empty(), "{images}");
        let files: BTreeSet<&str> = segments
            .iter()
            .map(|one| one["file"].as_str().expect("a path"))
            .collect();
        for file in files {
            must_be_as_readelf_says(file, segments);
        }
    }
}

fn must_be_as_readelf_says(file: &str, segments: &[Value]) {
    let (kind, expected, align) = by_readelf(file);
    let hex = |value: &Value| u64::from_str_radix(value.as_str().expect("hex"), 16).expect("hex");
    let own = segments.iter().filter(|one| one["file"] == file);
    let read = own.map(|one| {
        let number = |key: &str| one[key].as_u64().expect("bytes");
        let text = |key: &str| one[key].as_str().expect("a text");
        let place = [
            hex(&one["offset"]),
            hex(&one["address"]),
            number("size"),
            number("align"),
        ];
        (place, number("pages"), text("fit"), text("kind"))
    });
    let expected = expected.into_iter().map(|place| {
        let (pages, fit) = fit(&kind, place, align);
        (place, pages, fit, kind.as_str())
    });
    assert_eq!(
        read.collect::<BTreeSet<_>>(),
        expected.collect::<BTreeSet<_>>(),
        "{file}"
    );
}

#[test]
fn the_summary_names_the_linkers_option_and_every_form_is_there() {
    let own = env!("CARGO_BIN_EXE_hugewise");
    let text = done(&["explain", "--image", own, "--page-size", "2M"]).out;
    assert!(
        text.contains("1 of 1 executable segment") && text.contains(own),
        "{text}"
    );
    assert!(text.contains("-Wl,-z,max-page-size=2097152"), "{text}");
    let small = done(&["explain", "--image", own, "--page-size", "64K"]).out;
    assert!(small.contains("64K"), "{small}");
    for form in ["csv", "markdown", "html"] {
        let out = done(&["explain", "--image", own, "--page-size", "2M", "--format", form]).out;
        assert!(out.contains("hugewise"), "{form}");
    }
}

#[test]
fn what_is_no_executable_is_refused_with_its_name() {
    for (words, part) in [
        (&["explain", "--image", "/no/such/file"][..], "--image /no/such/file"),
        (
            &["explain", "--image", "/proc/self/status", "--page-size", "2M"],
            "no ELF program or library",
        ),
        (&["explain", "--image", "/dev/null", "--page-size", "2M"], "a device"),
        (
            &["explain", "--image", "/bin", "--page-size", "3M"],
            "`3M` is not a page size",
        ),
        (&["explain", "--image", "/bin", "postgres"], "cannot be used with"),
        (&["explain", "postgres", "--page-size", "2M"], "cannot be used with"),
        (&["explain"], "TARGET"),
    ] {
        let why = refused(words);
        assert!(why.contains(part), "{words:?}: {why}");
    }
}
