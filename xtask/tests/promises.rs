//! PROMISES.md is short, and each of its proofs exists.

use std::path::Path;

const MOST: usize = 60;

/// The texts of all sources of tests and benches below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source file"));
        }
    }
}

#[test]
fn each_promise_has_a_proof_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("PROMISES.md")).expect("PROMISES.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | "));
    let rows: Vec<(&str, &str)> = rows.filter(|(guarantee, _)| *guarantee != "guarantee").collect();
    assert!((1..=MOST).contains(&rows.len()), "{} promises", rows.len());
    let mut text = String::new();
    sources(&root.join("crates"), &mut text);
    for (guarantee, proofs) in rows {
        assert!(guarantee.ends_with('.'), "no sentence: {guarantee}");
        for proof in proofs.split(", ") {
            let name = proof.trim_matches('`');
            let is_test = text.contains(&format!("fn {name}(")) || text.contains(&format!("trial(\"{name}\""));
            let is_file = name.contains('/') && root.join(name).is_file();
            assert!(is_test || is_file, "{guarantee}: no test or bench is called {name}");
        }
    }
}
