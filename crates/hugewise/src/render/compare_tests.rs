//! A comparison that was made up, in the forms that readers see.

use std::collections::BTreeMap;

use model::compare::{Arm, Compare, Control, Design, Ended, Judged, Looks, Method, Metric, Order, Run, Verdict};
use model::{Backing, Bytes, Estimate, PageKind, Reading};

use super::strip;
use crate::render::look::Look;
use crate::show::Show;

fn run(block: u32, again: bool, wall: f64, kind: PageKind) -> Run {
    let backing: Backing = [(kind, Bytes::gib(1))].into_iter().collect();
    let metrics = [(Metric::Wall, wall), (Metric::Memory, 2_f64.powi(30))];
    let metrics: BTreeMap<String, f64> = metrics.map(|(metric, value)| (metric.name().to_owned(), value)).into();
    Run {
        block,
        again,
        turn: 0,
        metrics,
        backing: Reading::Known(backing),
        text: None,
        looks: Looks::default(),
        notes: Vec::new(),
    }
}

fn arm(name: &str, kind: PageKind, runs: Vec<Run>) -> Arm {
    Arm {
        name: name.to_owned(),
        technique: "made up".to_owned(),
        kind: Some(kind),
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

fn compare(verdict: Verdict) -> Compare {
    let base = (0..6).flat_map(|block| {
        [
            run(block, false, 1.0, PageKind::Base),
            run(block, true, 1.01, PageKind::Base),
        ]
    });
    let thp = (0..6).map(|block| run(block, false, 0.75, PageKind::Thp));
    let text = |text: &str| text.to_owned();
    Compare {
        program: vec![text("./chase"), text("1G")],
        design: Design {
            method: Method::Runs,
            reason: text("the program ends by itself"),
            order: Order::Mirrored,
            blocks: 6,
            most: 6,
            looks: vec![6],
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
            why: text("did not take effect: 3.0 % of the memory was on thp pages"),
        }],
        controls: vec![Control {
            metric: text("wall"),
            ratio: Some(0.99),
            low: Some(0.985),
            high: Some(0.996),
            p: Some(0.5),
        }],
    }
}

#[test]
fn the_verdict_stands_first_with_its_interval_and_its_proof() {
    let look = Look {
        width: 160,
        color: false,
        plot: false,
    };
    let text = compare(Verdict::Better).text(look).replace('\n', " ");
    for part in [
        "thp is better than base in wall: +34.0 % (+31.0 % to +36.0 %), 6 pairs, 98.1 % of the memory on thp pages.",
        "against itself",
        "-1.0 % (-1.5 % to -0.4 %)",
        "whole runs in 6 blocks of 3 (all that were asked for), 20 s",
        "this design because the program ends by itself",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn an_arm_that_did_not_take_effect_is_never_no_difference() {
    let headlines = compare(Verdict::NotInEffect).headlines();
    assert_eq!(
        headlines,
        ["thp did not take effect: 3.0 % of the memory was on thp pages: it was not compared."]
    );
}

#[test]
fn a_strip_has_the_lowest_at_the_left_and_csv_has_every_value() {
    let marks = strip(&[1.0, 1.0, 1.0, 1.0, 2.0], 1.0, 2.0);
    assert!(
        marks.starts_with('█') && marks.ends_with('░') && marks.chars().count() == 36,
        "{marks}"
    );
    let (head, lines) = compare(Verdict::Better).csv();
    assert!(lines.iter().all(|line| line.len() == head.len()));
    assert_eq!(lines.len(), 18 * 3);
    assert_eq!(lines[0], ["base", "0", "false", "memory", "1073741824"]);
}
