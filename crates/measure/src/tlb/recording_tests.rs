//! Discovery replayed on what real machines answered (`fixtures/tlb`), and the text that recordings are kept in.

use std::path::PathBuf;

use crate::tlb::simulated_tlb::Array;
use model::tlb::{Entries, Ways};
use proptest::prelude::*;

use super::{Layout, Probe, Recorded, Sweep, line, read_line, record};
use crate::tlb::simulated::{PAGE, QUIET, Simulated};

fn machines() -> Vec<(String, Recorded)> {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/tlb"));
    let files = std::fs::read_dir(directory).expect("fixtures/tlb");
    let machine = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.expect("an entry").path();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).expect("text");
        let recorded = Recorded::parse(&text).unwrap_or_else(|| panic!("{name} cannot be read"));
        (name, recorded)
    };
    files.map(machine).collect()
}

#[test]
fn recorded_machines_get_no_wrong_name_and_their_first_level_in_most() {
    let (mut exact, mut all) = (0, 0);
    for (name, mut recorded) in machines() {
        let found = recorded.replay();
        for ((entries, ways), level) in recorded.truth.iter().zip(&found) {
            let told = format!("{name}: {level:?} of {entries} {ways:?}");
            assert!(
                level
                    .entries
                    .is_none_or(|told| (told.low..=told.high).contains(entries)),
                "{told}"
            );
            assert!(level.ways.zip(*ways).is_none_or(|(told, ways)| told == ways), "{told}");
        }
        assert!(found.len() <= recorded.truth.len(), "{name}: {} levels", found.len());
        all += 1;
        exact += usize::from(found.first().is_some_and(|level| level.ways.is_some()));
    }
    assert!(all > 0 && 2 * exact > all, "{exact} of {all} first levels");
}

#[test]
fn a_line_of_a_recording_reads_back_as_written() {
    let probe = Probe {
        sweep: Sweep::Far,
        layout: Layout::drawn(14, 3),
        pages: 2048,
    };
    let answers = vec![Some(52), None, Some(1000)];
    let line = line(probe, &answers);
    assert_eq!(line, "far 14 0 3 2048: 52 - 1000\n");
    assert_eq!(read_line(line.trim_end()), Some((probe, answers)));
    assert_eq!(read_line("far 14 0 x 2048: 52"), None);
}

#[test]
fn what_is_recorded_is_found_again_by_its_replay() {
    let arrays = [Array::new(1, PAGE, 16, 4, 0.0)];
    let text = record(Simulated::new(&arrays, 30.0, QUIET, 1).small(600));
    let found = Recorded::parse(&text).expect("reads back").replay();
    let told: Vec<_> = found.iter().map(|level| (level.entries, level.ways)).collect();
    assert_eq!(told, [(Some(Entries::exactly(64)), Some(Ways::Count(4)))]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(level|limits|near|far|[0-9:? -]|\n){0,60}") {
        let _ = Recorded::parse(&text);
    }
}
