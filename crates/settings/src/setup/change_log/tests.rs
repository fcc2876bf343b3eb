//! Journals of plans as they are found: whole, torn, garbled.

use proptest::prelude::*;

use super::super::scene::{plan, pool};
use super::{Head, Record, parse};
use crate::place::{Place, State};

fn text(value: &str) -> State {
    State::Text(value.to_owned())
}

/// A journal of one pool that grew and went back.
fn lines() -> Vec<u8> {
    let place = Place::Setting(pool(0));
    let set = |from, to| Record::Set {
        place: place.clone(),
        from: text(from),
        to: text(to),
    };
    let now = |value| Record::Now {
        place: place.clone(),
        state: text(value),
    };
    let records = [
        Record::Plan(Head::new("boot".to_owned(), plan())),
        set("5", "16"),
        now("12"),
        Record::Complete,
        set("12", "5"),
        now("5"),
    ];
    let lines = records
        .iter()
        .map(|record| serde_json::to_string(record).expect("JSON") + "\n");
    lines.collect::<String>().into_bytes()
}

#[test]
fn cut_anywhere_it_says_what_its_whole_lines_say() {
    let bytes = lines();
    for end in 0..=bytes.len() {
        let story = parse(&bytes[..end], "j").expect("torn, not garbled");
        let whole = bytes[..end].iter().filter(|&&byte| byte == b'\n').count();
        let Some(story) = story else {
            assert_eq!(whole, 0);
            continue;
        };
        assert_eq!(story.complete, whole >= 4);
        let entry = story
            .entries
            .first()
            .map(|entry| (entry.before.clone(), entry.ours.clone(), entry.pending.clone()));
        let expected = match whole {
            2 => Some((text("5"), text("5"), Some(text("16")))),
            3 | 4 => Some((text("5"), text("12"), None)),
            5 => Some((text("5"), text("12"), Some(text("5")))),
            _ => None,
        };
        assert_eq!(entry, expected, "{end}");
    }
}

#[test]
fn a_change_in_doubt_owns_what_lies_on_its_way() {
    let bytes = lines();
    let second = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(1)
        .expect("two lines")
        .0;
    let story = parse(&bytes[..=second], "j").expect("whole").expect("a head");
    let owns = |value| story.entries[0].owns(&text(value));
    assert_eq!(
        [owns("4"), owns("5"), owns("9"), owns("16"), owns("17")],
        [false, true, true, true, false]
    );
}

#[test]
fn a_place_that_the_plan_does_not_change_is_refused() {
    for path in [
        "/etc/passwd",
        "/etc/sysctl.d/other.conf",
        "/proc/sys/kernel/core_pattern",
    ] {
        let mut bytes = lines();
        let set = Record::Set {
            place: Place::File(path.to_owned()),
            from: State::Absent,
            to: State::Absent,
        };
        bytes.extend(serde_json::to_vec(&set).expect("JSON"));
        bytes.push(b'\n');
        let error = parse(&bytes, "/x.jsonl").expect_err("refused").to_string();
        assert!(
            error.starts_with("garbled: /x.jsonl:7: ") && error.contains("plan"),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_are_too_strange(noise in prop::collection::vec(any::<u8>(), 0..40), at in 0..9000usize) {
        let mut bytes = lines();
        let at = at.min(bytes.len());
        bytes.splice(at..(at + noise.len()).min(bytes.len()), noise);
        if let Err(error) = parse(&bytes, "j") {
            prop_assert!(error.place.starts_with("j:"), "{}", error);
        }
    }
}
