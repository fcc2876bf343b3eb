//! Every fix that is shown is one that the machine can take: over all fixtures, all public cases, and mutations of both.
//!
//! `HUGEWISE_TEST_MACHINES=20000` sets how many mutated machines there are.

#[path = "common/cases.rs"]
#[allow(dead_code, unreachable_pub)]
mod cases;
#[path = "fixes/mutation.rs"]
mod mutation;
#[path = "fixes/oracle.rs"]
mod oracle;

use std::collections::BTreeSet;

use cases::{Inputs, fixtures, tree};
use mutation::mutated;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg as Pcg64;

/// Mutated machines without the environment variable.
const MACHINES: u64 = 300;

/// Every captured machine, and the inputs of every case.
fn originals() -> Vec<Inputs> {
    let mut machines = Vec::new();
    for entry in std::fs::read_dir(fixtures().join("machines")).expect("fixtures/machines") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "tree") {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            machines.push(Inputs {
                tree: Some(tree(&name, &std::fs::read(&path).expect("a fixture"))),
                files: Vec::new(),
                name,
            });
        }
    }
    machines.sort_by(|one, other| one.name.cmp(&other.name));
    machines.extend(cases::all().iter().map(cases::Expected::inputs));
    machines
}

#[test]
fn no_fix_for_a_known_machine_is_one_that_it_cannot_take() {
    let violations: Vec<String> = originals().iter().flat_map(oracle::violations).collect();
    assert!(
        violations.is_empty(),
        "{} violations:\n{}",
        violations.len(),
        violations.join("\n")
    );
}

/// Each file that a finding quotes is taken away in turn.
#[test]
fn without_a_file_no_finding_quotes_it_or_needs_it() {
    let mut violations = Vec::new();
    for original in originals() {
        let Some(tree) = &original.tree else { continue };
        let findings = original.diagnosis().diagnosis.findings;
        let proofs = findings.iter().flat_map(|finding| &finding.evidence);
        let quoted: BTreeSet<&str> = proofs.map(oracle::file_of).collect();
        for path in quoted.into_iter().filter(|path| tree.iter().any(|(at, _)| at == *path)) {
            let inputs = Inputs {
                name: format!("{} without {path}", original.name),
                tree: Some(tree.clone().without(path)),
                files: original.files.clone(),
            };
            violations.extend(oracle::violations(&inputs));
        }
    }
    assert!(
        violations.is_empty(),
        "{} violations:\n{}",
        violations.len(),
        violations.join("\n")
    );
}

#[test]
fn no_fix_for_a_mutated_machine_is_one_that_it_cannot_take() {
    let machines = std::env::var("HUGEWISE_TEST_MACHINES").ok();
    let machines = machines.map_or(MACHINES, |number| number.parse().expect("a number of machines"));
    let seed = std::env::var("HUGEWISE_TEST_SEED").ok();
    let seed: u64 = seed.map_or(1, |seed| seed.parse().expect("a seed"));
    let originals = originals();
    let mut violations = Vec::new();
    for number in 0..machines {
        let mut random = Pcg64::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let original = &originals[random.random_range(0..originals.len())];
        let inputs = mutated(original, &originals, number, &mut random);
        violations.extend(oracle::violations(&inputs));
        if violations.len() > 20 {
            break;
        }
    }
    assert!(
        violations.is_empty(),
        "{} violations:\n{}",
        violations.len(),
        violations.join("\n")
    );
}
