//! No circles of files: two files that use each other, straight or through others, cannot be read one after the other.

#[path = "circles/modules.rs"]
mod modules;
#[path = "circles/names.rs"]
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use modules::Modules;

/// Which files each file uses, and the names that it takes.
type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn no_files_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut circles = Vec::new();
    for folder in std::fs::read_dir(crates).expect("the crates").flatten() {
        let arrows = arrows(&folder.path().join("src"));
        for circle in circles_of(&arrows) {
            let name = folder.file_name();
            circles.push(format!("{}:\n{}", name.to_string_lossy(), told(&circle, &arrows)));
        }
    }
    assert!(
        circles.is_empty(),
        "{} circles of files (let what both need have a file below them):\n{}",
        circles.len(),
        circles.join("\n")
    );
}

#[test]
fn a_circle_is_found_and_re_exports_and_tests_make_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write(
        "lib.rs",
        "mod a;\nmod b;\npub use a::First;\n#[cfg(test)]\nmod checks;\n",
    );
    write("a/mod.rs", "mod below;\nuse below::Inner;\npub struct First(Inner);\n");
    write(
        "a/below.rs",
        "pub struct Inner;\n#[cfg(test)]\nmod tests { use crate::a::First; }\n",
    );
    write("b.rs", "fn take(_: crate::First) {}\npub struct Second;\n");
    write("checks.rs", "use crate::b::Second;\n");
    assert_eq!(circles_of(&arrows(folder.path())), Vec::<Vec<String>>::new());
    write("a/below.rs", "pub struct Inner(Box<crate::b::Second>);\n");
    let circle = ["a/below.rs", "a/mod.rs", "b.rs"].map(str::to_owned).to_vec();
    assert_eq!(circles_of(&arrows(folder.path())), [circle]);
}

fn arrows(source: &Path) -> Arrows {
    let modules = Modules::of_crate(source);
    let mut arrows = Arrows::new();
    for module in modules.all() {
        for (file, name) in names::used(module, &modules) {
            if file != module.file {
                let of = arrows.entry(module.file.clone()).or_default();
                of.entry(file).or_default().insert(name);
            }
        }
    }
    arrows
}

/// Sets of files of which each reaches each.
fn circles_of(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|file| (file, reached(file, arrows))).collect();
    let is_both = |a: &String, b: &String| reached[a].contains(b) && reached.get(b).is_some_and(|of| of.contains(a));
    let mut circles: Vec<Vec<String>> = Vec::new();
    for file in arrows.keys() {
        let circle: Vec<String> = arrows.keys().filter(|other| is_both(file, other)).cloned().collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reached<'a>(file: &String, arrows: &'a Arrows) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = arrows[file].keys().collect();
    while let Some(file) = next.pop() {
        if found.insert(file) {
            next.extend(arrows.get(file).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

fn told(circle: &[String], arrows: &Arrows) -> String {
    let lines = circle.iter().flat_map(|file| {
        let inside = arrows[file].iter().filter(|(other, _)| circle.contains(other));
        inside.map(move |(other, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("  {file} -> {other}: {}", names.join(", "))
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}
