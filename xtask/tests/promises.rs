//! PROMISES.md is short, and each of its proofs exists, as do those of SECURITY.md.

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

/// Each guarantee of a page with its proofs.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | "));
    rows.filter(|(guarantee, _)| *guarantee != "guarantee").collect()
}

#[test]
fn each_promise_has_a_proof_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let [promises, security] =
        ["PROMISES.md", "SECURITY.md"].map(|page| std::fs::read_to_string(root.join(page)).expect(page));
    let (promises, security) = (rows(&promises), rows(&security));
    assert!((1..=MOST).contains(&promises.len()), "{} promises", promises.len());
    assert!(!security.is_empty());
    let mut text = String::new();
    sources(&root.join("crates"), &mut text);
    sources(&root.join("xtask/tests"), &mut text);
    for (guarantee, proofs) in promises.into_iter().chain(security) {
        assert!(guarantee.ends_with('.'), "no sentence: {guarantee}");
        for proof in proofs.split(", ") {
            let name = proof.trim_matches('`');
            let is_test = text.contains(&format!("fn {name}(")) || text.contains(&format!("trial(\"{name}\""));
            let is_file = name.contains('/') && root.join(name).is_file();
            assert!(is_test || is_file, "{guarantee}: no test or bench is called {name}");
        }
    }
}
