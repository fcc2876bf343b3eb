//! Every target over its seeds and over the inputs that fuzzing found worth keeping.

mod plans;
mod targets;

use std::path::PathBuf;

use targets::TARGETS;

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name)
}

#[test]
fn every_target_holds_over_its_seeds_and_its_corpus() {
    for target in TARGETS {
        let kept = std::fs::read_dir(corpus(target.name)).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        let kept = kept.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("an input"));
        let inputs: Vec<Vec<u8>> = (target.seeds)().into_iter().chain(kept).collect();
        assert!(!inputs.is_empty(), "{}", target.name);
        inputs.iter().for_each(|input| (target.check)(input));
    }
}

#[test]
fn targets_and_folders_of_the_corpus_have_the_same_names() {
    let folders = std::fs::read_dir(corpus(""))
        .expect("fuzz/corpus")
        .map(|entry| entry.expect("an entry").file_name());
    let mut folders: Vec<String> = folders.map(|name| name.to_string_lossy().into_owned()).collect();
    let mut names = TARGETS.map(|target| target.name.to_owned()).to_vec();
    folders.sort();
    names.sort();
    assert_eq!(folders, names);
}
