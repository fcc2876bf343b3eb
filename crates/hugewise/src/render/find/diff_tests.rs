//! What a reader sees of a difference, in every form.

use crate::cli::args::Format;
use crate::diff::{Material, Parts, diff};
use crate::results::Diff;
use crate::results::diff::Side;
use crate::samples::{curve, envelope, machine, usual};
use crate::show::{Show, show};
use draw::Look;
use model::PageKind;

fn side(file: &str, factor: f64) -> Material {
    let mut latency = curve(PageKind::Thp, |_| (100.0 * factor, 0.01));
    for point in &mut latency.points {
        point.visits = (0..10)
            .map(|at| 100.0 * factor * (1.0 + f64::from(at) / 1000.0))
            .collect();
    }
    Material {
        side: Side {
            file: file.to_owned(),
            what: "checkup".to_owned(),
            machine: envelope(usual()).machine,
            command: vec!["hugewise".to_owned(), "checkup".to_owned()],
            started: Some("2026-01-02T03:04:05.6Z".to_owned()),
        },
        warnings: Vec::new(),
        parts: Parts {
            latency: Some(latency),
            snapshot: Some(machine()),
            left_out: vec!["tlb"],
            ..Parts::default()
        },
    }
}

fn different() -> Diff {
    diff(&side("a.json", 1.0), &side("b\u{1b}[2J.json", 1.2), 0.05)
}

fn shown(diff: Diff, format: Format) -> String {
    let look = Look::plain(120);
    String::from_utf8(show(&envelope(diff), format, look).expect("shown")).expect("text")
}

#[test]
fn the_verdict_comes_first_and_says_beyond_what() {
    let lines = different().headlines();
    assert_eq!(
        lines[0],
        "Of 17 points in both, B is worse at 17 and better at 0 by more than 5 %; differing by less: 0; inconclusive: 0."
    );
    assert_eq!(lines[1..], ["No setting with another value.", "Not compared: tlb."]);
    let text = shown(different(), Format::Text);
    assert!(
        text.contains("+20 %") && text.contains("worse") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn points_without_a_verdict_are_in_the_whole_tables_only() {
    let alike = || diff(&side("a.json", 1.0), &side("b.json", 1.0), 0.05);
    assert!(!shown(alike(), Format::Text).contains("Points: B against A"));
    for format in [Format::Markdown, Format::Html] {
        let whole = shown(alike(), format);
        assert!(whole.contains("Points: B against A") && whole.contains("no difference"));
    }
}

#[test]
fn the_page_has_both_curves_and_their_change() {
    let figures = different().figures();
    assert_eq!(figures.len(), 2);
    let names: Vec<&str> = figures[0].series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    assert!(
        figures[1]
            .dots()
            .all(|dot| (dot.value - 20.0).abs() < 0.5 && dot.low < dot.high)
    );
    let html = shown(different(), Format::Html);
    assert_eq!(
        html.matches("role=\"img\"").count(),
        4,
        "two charts, each for wide and narrow screens"
    );
}

#[test]
fn csv_has_a_line_for_each_point() {
    let csv = shown(different(), Format::Csv);
    assert_eq!(csv.lines().count(), 1 + 17, "{csv}");
    assert!(csv.lines().nth(1).expect("a line").starts_with("point,"), "{csv}");
}
