//! Command lines mean what the help says, and wrong ones are refused with what to write.

use std::time::Duration;

use clap::Parser;

use super::duration;
use crate::cli::args::{Cli, Format};
use crate::show;

fn refused(words: &str) -> String {
    let line = format!("hugewise {words}");
    Cli::try_parse_from(line.split_whitespace())
        .expect_err(words)
        .to_string()
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
    for (text, time) in [
        ("30s", 30_000),
        ("1.5s", 1_500),
        ("500ms", 500),
        ("2m", 120_000),
        ("2min", 120_000),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(time)), "{text}");
    }
    for text in ["", "30", "s", "-1s", "0s", "NaNs", "infs", "1h30", "1e400s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn the_form_is_typed_or_told_by_the_file() {
    let all = [Format::Text, Format::Json, Format::Html];
    let form = |words: &str| {
        let line = format!("hugewise ps {words}");
        let args = Cli::try_parse_from(line.split_whitespace()).expect(words);
        show::form(&args.global, Format::Text, &all)
    };
    assert_eq!(form("").ok(), Some(Format::Text));
    assert_eq!(form("--json").ok(), Some(Format::Json));
    assert_eq!(form("--output a.html").ok(), Some(Format::Html));
    assert_eq!(form("--output a.html --format text").ok(), Some(Format::Text));
    assert_eq!(form("--output a.out").ok(), Some(Format::Text));
    assert_eq!(form("--output a.png --format text").ok(), Some(Format::Text));
    let error = form("--output a.png").expect_err("a bitmap").to_string();
    assert!(
        error.starts_with("--output a.png: images are SVG (write FILE.svg"),
        "{error}"
    );
    let error = form("--output a.svg").expect_err("no such form").to_string();
    assert_eq!(
        error,
        "--format svg: this result has no such format (write text, json, html)"
    );
}

#[test]
fn the_command_line_is_well_formed() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}
