//! Tables and charts say what was measured, and what was not.

use super::spread;
use crate::samples::{curve, unmeasured, usual};
use crate::show::Show;
use draw::{Dot, Look};
use model::latency::{Bound, Latency, Quiet};
use model::{Bytes, Estimate, PageKind};

const PLAIN: Look = Look::plain(100);

#[test]
fn the_table_has_sizes_down_and_kinds_across_and_says_what_was_not_obtained() {
    let sheets = usual().sheets();
    assert_eq!(sheets.len(), 1);
    let text = sheets[0].text(PLAIN);
    assert_eq!(sheets[0].rows.len(), 17, "{text}");
    for part in [
        "not obtained: hugetlb-2M at 1M to 2M (2 sizes): the pool is empty",
        "at least 100 % of the memory was of that kind",
        "no hardware counters: the hypervisor shows no PMU",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let one_mib = sheets[0].rows.iter().find(|row| row[0] == "1M").expect("1M");
    assert_eq!(one_mib[1..], ["4.00 ± 0.04", "4.00 ± 0.04", "not obtained"]);
}

#[test]
fn charts_hold_measured_points_only() {
    let figures = usual().figures();
    assert_eq!(
        figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>(),
        ["latency-random-line-read", "gain-random-line-read"]
    );
    let names: Vec<&str> = figures[0].series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["base", "thp"]);
    assert_eq!(
        figures[1].series[0].dots.last().map(|dot| dot.value.round()),
        Some(44.0)
    );
}

#[test]
fn csv_has_a_line_for_every_point_and_a_reason_instead_of_a_number() {
    let usual = usual();
    let (head, lines) = usual.csv();
    let lines: Vec<_> = lines.collect();
    assert!(lines.iter().all(|line| line.len() == head.len()));
    assert_eq!(lines.len(), 36);
    let last = lines.last().expect("lines");
    assert_eq!(
        (last[4].as_str(), last.last().map(String::as_str)),
        ("", Some("the pool is empty; run without --no-pool"))
    );
}

#[test]
fn a_point_that_did_not_converge_has_a_bound_everywhere_and_no_number_anywhere() {
    let mut latency = usual();
    latency.points[16].ns = None;
    latency.points[16].bound = Some(Bound {
        low: Some(180.2),
        high: Some(334.6),
    });
    let text = latency.sheets()[0].text(PLAIN);
    assert!(text.contains("180 to 335 ?"), "{text}");
    assert!(text.contains("?: not converged:"), "{text}");
    let (head, lines) = latency.csv();
    let lines: Vec<_> = lines.collect();
    let at = |name: &str| head.iter().position(|head| *head == name).expect("a column");
    let line = &lines[16];
    assert_eq!(
        (line[at("ns_median")].as_str(), line[at("bound_low")].as_str()),
        ("", "180.2")
    );
    let figure = &latency.figures()[0];
    let bounded = figure
        .series
        .iter()
        .find(|series| series.name == "base, not converged (upper limit)");
    assert_eq!(bounded.map(|series| series.dots[0].value), Some(334.6));
    let hollow: Vec<bool> = figure.series.iter().map(|series| series.is_limit).collect();
    assert_eq!(hollow, [false, true, false], "{:?}", figure.series);
    assert_eq!(figure.series[0].dots.len(), 16);
    let lines: Vec<usize> = figure.joined(&figure.series[0]).map(<[_]>::len).collect();
    assert_eq!(lines, [16], "only the last one did not converge");
}

#[test]
fn no_line_runs_over_a_point_that_did_not_converge() {
    let mut latency = usual();
    for place in [3, 7] {
        let point = &mut latency.points[place];
        let ns = point.ns.take().expect("converged");
        point.bound = Some(Bound {
            low: Some(ns.median / 2.0),
            high: Some(ns.median * 2.0),
        });
    }
    let figure = &latency.figures()[0];
    let lines = |series: usize| -> Vec<usize> { figure.joined(&figure.series[series]).map(<[_]>::len).collect() };
    let all = latency
        .points
        .iter()
        .filter(|point| point.kind == latency.points[0].kind)
        .count();
    assert_eq!(lines(0), [3, 3, all - 8]);
    assert_eq!(lines(1), [1, 1]);
}

#[test]
fn a_neighbour_is_told_beside_the_median() {
    let mut latency = usual();
    let told = |latency: &Latency| latency.sheets()[0].text(PLAIN).contains("; quiet 4.0)");
    assert!(!told(&latency));
    latency.points[0].quiet = Some(Quiet {
        ns: 1.0,
        cycles: 4.0,
        share: 0.1,
    });
    assert!(told(&latency));
}

#[test]
fn spreads_keep_three_digits() {
    let spread = |median: f64| {
        spread(Estimate {
            median,
            low: median * 0.99,
            high: median * 1.01,
            samples: 9,
        })
    };
    assert_eq!(
        [1.234, 12.34, 123.4].map(spread),
        ["1.23 ± 0.01", "12.3 ± 0.1", "123 ± 1"]
    );
}

#[test]
fn an_interval_that_says_little_is_written_by_its_ends() {
    let told = |low, high| {
        spread(Estimate {
            median: 67.5,
            low,
            high,
            samples: 9,
        })
    };
    assert_eq!(told(60.0, 190.0), "67.5 ± 65.0");
    assert_eq!(told(12.34, 200.0), "67.5 (12.3 to 200)");
    assert_eq!(told(12.34, 2e7), "67.5 (12.3 to over 675)");
}

/// The savings of THP against base pages.
fn savings(latency: &Latency) -> Vec<Dot> {
    let figure = latency.figures().remove(1);
    assert_eq!(figure.id, "gain-random-line-read");
    figure.series[0].dots.clone()
}

#[test]
fn a_saving_is_a_share_of_the_base_time_and_has_an_interval_of_its_own() {
    let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
    let fast = |bytes: Bytes| (if bytes < Bytes::mib(8) { 199.0 } else { 100.0 }, 0.01);
    latency.points.extend(curve(PageKind::Thp, fast).points);
    latency.points.push(unmeasured(PageKind::HUGETLB_2M, Bytes::mib(1)));
    let savings = savings(&latency);
    assert_eq!(savings.len(), 17);
    let last = savings.last().expect("a point");
    assert!((last.value - 50.0).abs() < 0.01 && last.low > 0.0);
    assert!(savings[0].value > 0.0 && savings[0].low <= 0.0);
}

#[test]
fn what_a_round_does_to_both_kinds_does_not_widen_the_interval_of_a_saving() {
    let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
    latency.points.extend(curve(PageKind::Thp, |_| (150.0, 0.01)).points);
    for point in &mut latency.points {
        let scale = if point.kind == PageKind::Base { 200.0 } else { 150.0 };
        point.visits = [1.0, 1.4, 0.8, 1.2, 0.9, 1.1].map(|round| round * scale).to_vec();
    }
    let Dot { low, high, .. } = savings(&latency)[0];
    assert!((low - 25.0).abs() < 1e-6 && (high - 25.0).abs() < 1e-6, "{low} {high}");
}

#[test]
fn a_result_without_visits_has_a_saving_and_no_interval() {
    let mut latency = curve(PageKind::Base, |_| (200.0, 0.01));
    latency.points.extend(curve(PageKind::Thp, |_| (100.0, 0.01)).points);
    latency.points.iter_mut().for_each(|point| point.visits.clear());
    let saving = &savings(&latency)[0];
    assert_eq!((saving.value, saving.low, saving.high), (50.0, 50.0, 50.0));
    assert!(saving.tip.contains("no interval"), "{}", saving.tip);
}
