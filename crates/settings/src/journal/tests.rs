//! Journals as they are found: whole, torn, garbled.

use proptest::prelude::*;

use super::{Owner, Record, Run, Share, Which, parse};

const PATH: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";

/// A journal of one lease that was given back.
fn lines() -> Vec<u8> {
    let path = || PATH.to_owned();
    let (base, owner) = (2, Owner { pid: 7, start: 70 });
    let records = [
        Record::Run(Run::new("boot".to_owned(), owner)),
        Record::Write {
            path: path(),
            before: 2,
            after: 6,
            base,
        },
        Record::Done { path: path(), share: 4 },
        Record::Write {
            path: path(),
            before: 6,
            after: 2,
            base,
        },
        Record::Done { path: path(), share: 0 },
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
        let setting = crate::pool_setting::PoolSetting::parse(PATH).expect("a setting");
        let share = |pages, pending| Share {
            pages,
            base: 2,
            pending,
        };
        let expected = match whole {
            2 => share(0, Some((2, 6))),
            3 => share(4, None),
            4 => share(4, Some((6, 2))),
            _ => Share::default(),
        };
        assert_eq!(
            (story.run.is_some(), story.ledger.share(setting)),
            (whole > 0, expected),
            "{end}"
        );
        assert_eq!(story.ledger.is_settled(), expected == Share::default());
    }
}

#[test]
fn a_garbled_line_is_named() {
    let mut bytes = lines();
    let second = bytes.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
    bytes[second] = b'x';
    let error = parse(&bytes, "/run/x.jsonl").expect_err("garbled").to_string();
    assert!(error.starts_with("garbled: /run/x.jsonl:2: "), "{error}");
}

#[test]
fn a_write_in_doubt_is_decided_by_the_value() {
    let share = |before, after| Share {
        pages: 4,
        base: 0,
        pending: Some((before, after)),
    };
    // Raised 10 -> 15 or not, or in part; lowered 10 -> 6 or not.
    for (now, up, down) in [
        (10, Some(4), Some(4)),
        (12, Some(6), None),
        (15, Some(9), None),
        (16, None, None),
        (6, None, Some(0)),
        (5, None, None),
    ] {
        assert_eq!(share(10, 15).resolved(now, Which::Pages), up, "{now}");
        assert_eq!(share(10, 6).resolved(now, Which::NodePages(0)), down, "{now}");
        // A limit does not grow in part: an administrator has set 12.
        let up = up.filter(|_| now != 12);
        assert_eq!(share(10, 15).resolved(now, Which::Overcommit), up, "{now}");
    }
    let extreme = Share {
        pages: u64::MAX,
        base: 0,
        pending: Some((0, u64::MAX)),
    };
    assert_eq!(extreme.resolved(5, Which::Pages), Some(u64::MAX));
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(noise in prop::collection::vec(any::<u8>(), 0..40), at in 0..600usize) {
        let mut bytes = lines();
        let at = at.min(bytes.len());
        bytes.splice(at..(at + noise.len()).min(bytes.len()), noise);
        if let Err(error) = parse(&bytes, "j") {
            prop_assert!(error.place.starts_with("j:"), "{}", error);
        }
    }
}
