//! A comparison that was made up, in the forms that readers see.

use std::collections::BTreeMap;

use model::collapse::Refused;
use model::compare::{
    Arm, Because, Compare, Control, Design, Ended, Flip, InPlace, Judged, Looks, Method, Metric, Order, Restored, Run,
    Slice, Verdict, Why,
};
use model::{Backing, Bytes, Estimate, PageKind, Reading};

use crate::cli::args::Format;
use crate::samples::envelope;
use crate::show::{Show, show};
use draw::Look;

fn run(turn: u32, again: bool, wall: f64, kind: PageKind) -> Run {
    let backing: Backing = [(kind, Bytes::gib(1))].into_iter().collect();
    let metrics = [(Metric::Wall, wall), (Metric::Memory, 2_f64.powi(30))];
    let metrics: BTreeMap<String, f64> = metrics.map(|(metric, value)| (metric.name().to_owned(), value)).into();
    Run {
        block: turn / 3,
        again,
        turn,
        left_out: None,
        metrics,
        backing: Reading::Known(backing),
        text: None,
        looks: Looks::default(),
        notes: Vec::new(),
        slice: None,
        loads: Vec::new(),
        ran: None,
    }
}

fn arm(name: &str, kind: PageKind, runs: Vec<Run>) -> Arm {
    Arm {
        name: name.to_owned(),
        technique: "made up".to_owned(),
        kind: Some(kind),
        place: None,
        took_effect: Reading::Known(true),
        coverage: Reading::Known(Estimate {
            median: 0.981,
            low: 0.98,
            high: 0.99,
            samples: 6,
        }),
        runs,
    }
}

/// Six blocks of base, base again and thp, each with its place in time.
pub(crate) fn compare(verdict: Verdict) -> Compare {
    let base = (0..6).flat_map(|block| {
        [
            run(3 * block, false, 1.0, PageKind::Base),
            run(3 * block + 2, true, 1.01, PageKind::Base),
        ]
    });
    let thp = (0..6).map(|block| run(3 * block + 1, false, 0.75, PageKind::Thp));
    let text = |text: &str| text.to_owned();
    Compare {
        program: vec![text("./chase"), text("1G")],
        design: Design {
            method: Method::Runs,
            reason: Because::AtEnd { metric: text("wall") },
            in_place: None,
            loads: None,
            order: Order::Mirrored,
            blocks: 6,
            per_start: 1,
            most: 6,
            looks: vec![6],
            spent: Vec::new(),
            warm_up: 1,
            smallest_effect: 0.01,
            alpha: 0.05,
            least_coverage: 0.5,
            ended: Ended::Runs,
            seconds: 20.0,
        },
        arms: vec![
            arm("base", PageKind::Base, base.collect()),
            arm("thp", PageKind::Thp, thp.collect()),
        ],
        verdicts: vec![Judged {
            arm: text("thp"),
            against: text("base"),
            metric: text("wall"),
            ratio: Some(1.34),
            low: Some(1.31),
            high: Some(1.36),
            p: Some(0.00274),
            pairs: 6,
            verdict,
            why: Why::NotInEffect,
        }],
        controls: vec![Control {
            metric: text("wall"),
            ratio: Some(0.99),
            low: Some(0.985),
            high: Some(0.996),
            p: Some(0.5),
        }],
        parts: Vec::new(),
        pmu_note: None,
        starts: Vec::new(),
        forecast: None,
        restored: None,
    }
}

#[test]
fn the_verdict_stands_first_with_its_interval_and_its_proof() {
    let look = Look::plain(160);
    let text = compare(Verdict::Better).text(look).replace('\n', " ");
    for part in [
        "thp is better than base in wall: +34.0 % (+31.0 % to +36.0 %), 6 pairs, 98.1 % of the memory on thp pages.",
        "against itself",
        "-1.0 % (-1.5 % to -0.4 %)",
        "whole runs in 6 blocks of 3 (all that were asked for), 20 s",
        "this design because `wall` is known when a run has ended",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn an_arm_that_did_not_take_effect_is_never_no_difference() {
    let mut compare = compare(Verdict::NotInEffect);
    if let Reading::Known(share) = &mut compare.arms[1].coverage {
        share.median = 0.03;
    }
    assert_eq!(
        compare.headlines(),
        ["thp did not take effect: 3.0 % of the memory was on thp pages: it was not compared."]
    );
}

#[test]
fn what_does_not_count_says_why_and_a_few_pairs_have_no_interval() {
    let mut made = compare(Verdict::NoDifference);
    (made.verdicts[0].low, made.verdicts[0].why) = (None, Why::Small);
    assert_eq!(
        made.headlines(),
        [
            "thp: no difference to base of 1.0 % or more in wall: +34.0 % (too few pairs); likely, but below the smallest \
          effect of 1.0 %, 98.1 % of the memory on thp pages."
        ]
    );
}

#[test]
fn csv_has_every_value() {
    let compare = compare(Verdict::Better);
    let (head, lines) = compare.csv();
    let lines: Vec<_> = lines.collect();
    assert!(lines.iter().all(|line| line.len() == head.len()));
    assert_eq!(lines.len(), 18 * 4);
    assert_eq!(lines[0], ["base", "0", "0", "false", "true", "memory", "1073741824"]);
}

#[test]
fn the_chart_has_every_run_in_its_turn_and_the_median_of_each_arm() {
    let compare = compare(Verdict::Better);
    let figures = compare.figures();
    let [gains, figure] = &figures[..] else {
        panic!("{}", figures.len())
    };
    assert_eq!(
        (gains.id.as_str(), gains.series.len()),
        ("gains", 2),
        "thp, and base against itself"
    );
    assert!(gains.series[0].name.starts_with("thp, wall: +") && gains.series[0].name.ends_with("; better"));
    let turns = |arm: usize| figure.series[arm].dots.iter().map(|dot| dot.at).collect::<Vec<_>>();
    assert_eq!(turns(0), [1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18]);
    assert_eq!(turns(1), [2, 5, 8, 11, 14, 17]);
    assert_eq!(figure.series[1].name, "thp: 750 ms (750 ms to 750 ms)");
    assert_eq!(figure.y_label, "wall, s");
    assert_eq!(
        figure.series[0].dots[3].tip,
        "base, run 6: 1.010 s; block 2, the reference's second; 100.0 % of the memory on base pages"
    );
}

#[test]
fn pictures_and_the_page_have_the_chart_and_a_terminal_has_strips() {
    let look = Look {
        plot: true,
        ..Look::plain(160)
    };
    let shown = |format| show(&envelope(compare(Verdict::Better)), format, look).expect("shown");
    let svg = String::from_utf8(shown(Format::Svg)).expect("text");
    for part in [
        "Every run by wall",
        "thp: 750 ms",
        "run, in order of time",
        "opacity=\"0.13\"",
    ] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    let page = String::from_utf8(shown(Format::Html)).expect("text");
    assert_eq!(page.matches("class=\"hit\"").count(), 2 * (18 + 2));
    assert!(
        page.contains("data-tip=\"base, run 1: 1.000 s; block 1; 100.0 % of the memory"),
        "{page}"
    );
    let body = page.split("</style>").nth(1).expect("body");
    assert!(!body.contains("=\"#"), "a colour that dark mode cannot change");
    let text = String::from_utf8(shown(Format::Text)).expect("text");
    assert!(
        text.contains("▁▁▁▁▁▁") && text.contains("██████") && !text.contains('┤'),
        "{text}"
    );
}

#[test]
fn a_chart_without_runs_is_none_and_slices_are_called_so() {
    let mut made = compare(Verdict::Better);
    made.design.method = Method::Flip;
    assert!(made.figures()[1].title.starts_with("Every slice by wall"));
    made.arms.iter_mut().for_each(|arm| arm.runs.clear());
    assert!(made.figures().iter().all(|figure| figure.id == "gains"));
    made.controls.clear();
    assert!(made.figures().is_empty());
    assert!(show(&envelope(made), Format::Svg, Look::plain(80)).is_err());
}

#[test]
fn a_gain_that_costs_memory_says_so_in_the_same_sentence() {
    let mut made = compare(Verdict::Better);
    for run in &mut made.arms[1].runs {
        run.metrics.insert("memory".to_owned(), 1.5 * 2_f64.powi(30));
    }
    let headlines = made.headlines();
    assert!(
        headlines[0].ends_with("on thp pages; it takes 1.50 times the memory, 1.5G instead of 1G."),
        "{headlines:?}"
    );
}

#[test]
fn counters_stand_in_a_table_of_their_own_or_the_reason_does() {
    let mut made = compare(Verdict::Better);
    made.pmu_note = Some("this machine has none".to_owned());
    let titled = |made: &Compare| {
        made.sheets()
            .into_iter()
            .find(|sheet| sheet.title.starts_with("Hardware counters"))
    };
    let none = titled(&made).expect("a sheet");
    assert_eq!(
        (none.rows.len(), &none.notes[..]),
        (0, &["this machine has none".to_owned()][..])
    );
    made.pmu_note = None;
    assert_eq!(titled(&made), None, "nothing to say");
    for run in made.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
        run.metrics
            .extend([("dtlb-mpki".to_owned(), 2.5), ("instructions".to_owned(), 2.34e10)]);
    }
    let sheet = titled(&made).expect("a sheet");
    assert_eq!(sheet.columns.len(), 3);
    assert_eq!(sheet.rows[0], ["base", "23400.0 M", "2.50"]);
}

#[test]
fn a_comparison_in_place_says_what_its_slices_and_flips_were_and_how_the_process_was_left() {
    let look = Look::plain(200);
    let text = in_place().text(look).replace('\n', " ");
    for part in [
        "-1.0 % (-1.5 % to -0.4 %)",
        "slices of 2 s of process 4711, 0.25 s after each flip; counters are per CPU-second of threads `worker`",
        "anon memory; every look is before or after a slice, never within",
        "every piece has the pages back that it had, after 0.5 s: first base 1G, now base 1G",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let mut own = in_place();
    if let Some(how) = &mut own.design.in_place {
        how.started = true;
    }
    let text = own.text(look).replace('\n', " ");
    assert!(
        text.contains("of process 4711, started for this and ended with it, 0.25 s"),
        "{text}"
    );
    let text = in_place().text(look);
    // Six flips of 512 pieces each, three of them refused.
    let row = "thp         6         1200 ms            3072        18".split_whitespace();
    let words: Vec<&str> = text.split_whitespace().collect();
    let row: Vec<&str> = row.collect();
    assert!(words.windows(row.len()).any(|window| window == row), "{text}");
}

/// The same comparison as slices of one process.
fn in_place() -> Compare {
    let mut compare = compare(Verdict::Better);
    compare.design.method = Method::Flip;
    compare.design.in_place = Some(InPlace {
        pid: 4711,
        started: false,
        range: "anon".to_owned(),
        threads: "worker".to_owned(),
        slice_seconds: Some(2.0),
        settle_seconds: 0.25,
    });
    let refused = Refused {
        error: "ENOMEM".to_owned(),
        meaning: "no free memory".to_owned(),
        pieces: 3,
    };
    for run in compare.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
        run.slice = Some(Slice {
            flip: Flip {
                seconds: 1.2,
                turned: 512,
                refused: vec![refused.clone()],
                splits: Some(512),
                collapses: None,
                ..Flip::default()
            },
            large_before: Some(Bytes(0)),
            large_after: Some(Bytes(0)),
        });
    }
    let base: Backing = [(PageKind::Base, Bytes::gib(1))].into_iter().collect();
    compare.restored = Some(Restored {
        before: base.clone(),
        after: Reading::Known(base),
        wrong: 0,
        seconds: 0.5,
    });
    compare
}

#[test]
fn numbers_of_the_program_have_six_digits_at_most() {
    let values = [452.685, 48_845_325.474_9, 0.123_456, 1_000.0, 123_456.7, -3.5, 0.0];
    assert_eq!(
        values.map(|own| super::value("rate", own)),
        ["452.685", "48.8453 M", "0.1235", "1000", "123457", "-3.5", "0"]
    );
}
