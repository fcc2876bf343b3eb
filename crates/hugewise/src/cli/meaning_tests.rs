//! Command lines mean what the help says, and wrong ones are refused with what to write.

use std::time::Duration;

use clap::Parser;
use model::Bytes;

use super::duration;
use crate::cli::typed::{Cli, Command, Format, Latency, Measure};

fn latency(words: &str) -> Latency {
    let line = format!("hugewise measure latency {words}");
    match Cli::try_parse_from(line.split_whitespace()).expect(words).command {
        Command::Measure(Measure::Latency(latency)) => latency,
        other => panic!("{other:?}"),
    }
}

fn refused(words: &str) -> String {
    let line = format!("hugewise {words}");
    Cli::try_parse_from(line.split_whitespace())
        .expect_err(words)
        .to_string()
}

fn ends(from: Bytes, to: Bytes) -> Vec<Bytes> {
    vec![from, to]
}

#[test]
fn pages_are_named_by_kind_or_by_size() {
    use super::{page_kind, page_size};
    use model::{Bytes, PageKind};
    assert_eq!(page_kind("4K"), Ok(PageKind::Base));
    assert_eq!(page_kind("2M"), Ok(PageKind::HUGETLB_2M));
    assert_eq!(page_kind("1G"), Ok(PageKind::HUGETLB_1G));
    assert_eq!(page_kind("thp"), Ok(PageKind::Thp));
    assert!(page_kind("16K").is_err() && page_kind("huge").is_err());
    assert_eq!(page_size("2M"), Ok(Bytes::mib(2)));
    assert_eq!(page_size("base"), Ok(Bytes::kib(4)));
    assert_eq!(page_size("hugetlb-1G"), Ok(Bytes::gib(1)));
    assert!(page_size("2").is_err());
}

#[test]
fn working_sets_stay_within_the_room_unless_typed() {
    let sets = |words: &str, room| latency(words).working_sets(room, ends).expect(words);
    assert_eq!(sets("", Bytes::gib(64)), [Bytes::kib(16), Bytes::gib(2)]);
    assert_eq!(sets("", Bytes::mib(512)), [Bytes::kib(16), Bytes::mib(512)]);
    assert_eq!(sets("--to 4G", Bytes::mib(512)), [Bytes::kib(16), Bytes::gib(4)]);
    assert_eq!(sets("--from 1G", Bytes::mib(512)), [Bytes::gib(1), Bytes::gib(1)]);
    assert_eq!(sets("--sizes 64M,32K", Bytes::gib(1)), [Bytes::mib(64), Bytes::kib(32)]);
}

#[test]
fn a_guest_takes_a_few_working_sets_with_both_ends() {
    let sets = |words: &str, room| {
        let line = format!("hugewise measure guest {words}");
        match Cli::try_parse_from(line.split_whitespace()).expect(words).command {
            Command::Measure(Measure::Guest(guest)) => guest.working_sets(room, 7),
            other => panic!("{other:?}"),
        }
    };
    let known = |words, room| sets(words, room).expect(words);
    assert_eq!(known("", Bytes::gib(8)), [1, 4, 16, 64, 256, 1024].map(Bytes::mib));
    assert_eq!(known("", Bytes::mib(300)).last(), Some(&Bytes::mib(300)));
    assert_eq!(known("", Bytes::kib(512)), [Bytes::kib(512)]);
    assert_eq!(known("--from 2G", Bytes::gib(1)), [Bytes::gib(2)]);
    assert_eq!(
        known("--from 16K --to 16M", Bytes::gib(1)),
        [16, 64, 256, 1024, 4096, 16384].map(Bytes::kib)
    );
    assert_eq!(
        known("--sizes 64M,32K", Bytes::gib(1)),
        [Bytes::mib(64), Bytes::kib(32)]
    );
    for (from, to) in [("16K", "2G"), ("16K", "1T"), ("1M", "4M")] {
        let words = format!("--from {from} --to {to}");
        let all = sets(&words, Bytes::gib(1)).expect("sizes");
        assert!((3..=7).contains(&all.len()), "{words}: {all:?}");
        assert_eq!(all.last().copied(), to.parse().ok(), "{words}");
    }
    assert!(sets("--from 2M --to 1M", Bytes::gib(1)).is_err());
}

#[test]
fn wrong_working_sets_are_told_what_to_write() {
    let refused = |words: &str| {
        latency(words)
            .working_sets(Bytes::gib(1), ends)
            .expect_err(words)
            .to_string()
    };
    assert!(refused("--from 2M --to 1M").contains("--from 2M is larger than --to 1M"));
    assert!(refused("--sizes 64B").contains("too small"));
}

#[test]
fn a_wrong_word_names_its_flag_and_what_to_write() {
    for (words, flag, advice) in [
        ("measure latency --from 16", "--from <SIZE>", "such as 16K"),
        ("measure latency --pages huge", "--pages <KIND,..>", "hugetlb-2M"),
        (
            "measure latency --pattern zigzag",
            "--pattern <PATTERN,..>",
            "line-per-page",
        ),
        ("measure latency --budget 30", "--budget <TIME>", "such as 30s"),
        ("measure latency --sizes 1M --to 2M", "--sizes <SIZE,..>", "--to <SIZE>"),
        ("ps --json --format csv", "--json", "--format <FORMAT>"),
        ("ps --vmas", "<PID>", "required"),
        ("ps --seed -1", "-1", "--"),
    ] {
        let text = refused(words);
        assert!(text.contains(flag) && text.contains(advice), "{words}: {text}");
    }
}

#[test]
fn times_need_a_unit() {
    for (text, time) in [("30s", 30_000), ("1.5s", 1_500), ("500ms", 500), ("2m", 120_000)] {
        assert_eq!(duration(text), Ok(Duration::from_millis(time)), "{text}");
    }
    for text in ["", "30", "s", "-1s", "0s", "NaNs", "infs", "1h30", "1e400s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn the_form_is_typed_or_told_by_the_file() {
    let all = [Format::Text, Format::Json, Format::Png];
    let form = |words: &str| {
        let line = format!("hugewise ps {words}");
        Cli::try_parse_from(line.split_whitespace())
            .expect(words)
            .global
            .form(Format::Text, &all)
    };
    assert_eq!(form("").ok(), Some(Format::Text));
    assert_eq!(form("--json").ok(), Some(Format::Json));
    assert_eq!(form("--output a.png").ok(), Some(Format::Png));
    assert_eq!(form("--output a.png --format text").ok(), Some(Format::Text));
    assert_eq!(form("--output a.out").ok(), Some(Format::Text));
    let error = form("--output a.svg").expect_err("no such form").to_string();
    assert_eq!(
        error,
        "--format svg: this result has no such format (write text, json, png)"
    );
}

#[test]
fn the_command_line_is_well_formed() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}
