//! Pictures hold every point, where it is said to be.

use super::super::axis::Scale;
use super::super::figure::{Along, Dot, Figure, Mark, Series};
use super::super::tone::Tone;
use super::{Hit, picture, svg};
use crate::heat::Heat;
use crate::sheet::Sheet;
use model::{Bytes, PageKind};

pub(crate) fn figure() -> Figure {
    let series = |kind, factor: f64| {
        let dots = (14..=30)
            .map(|power| {
                let value = factor * f64::from(power - 13);
                Dot::new(
                    1 << power,
                    [value, value * 0.98, value * 1.03],
                    format!("{kind} {power}"),
                )
            })
            .collect();
        Series::of_kind(kind, dots)
    };
    Figure {
        id: "test".to_owned(),
        title: "A <title> & more".to_owned(),
        along: Along::WorkingSet,
        y_label: "ns".to_owned(),
        scale: Scale::Log,
        series: vec![
            series(PageKind::Base, 12.0),
            series(PageKind::Thp, 8.0),
            series(PageKind::HUGETLB_2M, 7.0),
        ],
        marks: vec![Mark {
            tone: Tone::of(PageKind::Thp),
            at: Bytes::mib(1).0,
            text: "a knee of thp".to_owned(),
        }],
    }
}

#[test]
fn every_point_is_hit_inside_the_picture_and_rises_with_its_value() {
    let drawn = picture(&figure(), (800, 400)).expect("drawn");
    assert_eq!(drawn.hits.len(), 51);
    let inside = |hit: &Hit| (0..800).contains(&hit.x) && (0..400).contains(&hit.y);
    assert!(drawn.hits.iter().all(inside), "{:?}", drawn.hits);
    assert!(
        drawn.hits[..17]
            .windows(2)
            .all(|two| two[0].x < two[1].x && two[0].y > two[1].y)
    );
    assert!(drawn.svg.matches("<polyline").count() > 51, "lines and intervals");
}

#[test]
fn marks_of_limits_are_hollow_in_the_plot_and_in_the_legend() {
    let hollow = |svg: &str| {
        let marks = svg.lines().filter(|line| line.starts_with("<polygon"));
        marks.filter(|mark| mark.contains("fill=\"#FFFFFF\"")).count()
    };
    let whole =
        |figure: &Figure| String::from_utf8(svg(&[], &[], std::slice::from_ref(figure)).expect("svg")).expect("text");
    let mut figure = figure();
    assert_eq!((hollow(&whole(&figure)), figure.series[1].dots.len()), (0, 17));
    figure.series[1].is_limit = true;
    assert_eq!(hollow(&whole(&figure)), 17 + 1, "{}", whole(&figure));
    let drawn = picture(&figure, (800, 400)).expect("drawn");
    assert_eq!(hollow(&drawn.svg), 17, "without a legend of its own");
    let outline = |line: &&str| line.starts_with("<polyline") && line.contains("stroke=\"#0066A8\"");
    let lines = |svg: &str| svg.lines().filter(outline).count();
    figure.series[1].is_limit = false;
    let filled = picture(&figure, (800, 400)).expect("drawn");
    assert_eq!(lines(&drawn.svg), lines(&filled.svg) + 17, "an outline each");
}

#[test]
fn files_are_what_they_say_they_are() {
    let figures = [figure(), figure()];
    let text = String::from_utf8(svg(&[], &[], &figures).expect("svg")).expect("text");
    assert!(
        text.ends_with(
            "</svg>
"
        ) && text.contains("A &lt;title&gt; &amp; more")
            && text.contains("hugetlb-2M")
    );
}

#[test]
fn a_heat_map_is_drawn_with_its_numbers_above_the_charts() {
    let mut map = Sheet::new("Map", ["guest page", "#base"]);
    map.shaded_row("native", [("218 ns".to_owned(), Some(Heat::of(1.6)))]);
    map.note("what the shades mean");
    let drawn = |figures: &[Figure]| {
        String::from_utf8(svg(&[], std::slice::from_ref(&map), figures).expect("svg")).expect("text")
    };
    let alone = drawn(&[]);
    for part in ["guest page", "218 ns", "#FBBD74", "what the shades mean"] {
        assert!(alone.contains(part), "{part} in {alone}");
    }
    let both = drawn(&[figure()]);
    assert!(both.find("218 ns") < both.find("A &lt;title"), "{both}");
}

#[test]
fn one_disturbed_interval_does_not_stretch_the_axis() {
    let dot = |at, value, high| Dot::new(at, [value, 1e-3, high], String::new());
    let series = Series::of_kind(PageKind::Base, vec![dot(4096, 4.0, 5.0), dot(8192, 100.0, 1e7)]);
    let of = ("ns", Scale::Log);
    let figure = Figure::new("id", "title", Along::WorkingSet, of, [series]);
    let [low, high] = figure.y_axis(8).ends.map(|place| 10_f64.powf(place));
    assert!(low >= 1.0 && (100.0..=200.1).contains(&high), "{low} to {high}");
    let text = String::from_utf8(svg(&[], &[], &[figure]).expect("svg")).expect("text");
    assert!(!text.contains("1000000"), "{text}");
}

/// An attribute of an SVG element.
fn attribute(element: &str, name: &str) -> f64 {
    let start = element.find(&format!(" {name}=\"")).expect("it") + name.len() + 3;
    let value = element[start..].split('"').next().expect("a value");
    value.parse().expect("a number")
}

#[test]
fn long_labels_of_the_axis_leave_room_for_its_name() {
    let mut figure = figure();
    figure.scale = Scale::Linear;
    for dot in figure.series.iter_mut().flat_map(|series| &mut series.dots) {
        (dot.value, dot.low, dot.high) = (dot.value * 1000.0, dot.low * 1000.0, dot.high * 1000.0);
    }
    let drawn = picture(&figure, (960, 480)).expect("drawn").svg;
    let texts: Vec<&str> = drawn.split("<text").skip(1).collect();
    let name = texts.iter().find(|text| text.contains("rotate(270")).expect("the name");
    let name_ends = attribute(name, "x") + attribute(name, "font-size");
    let labels: Vec<&&str> = texts.iter().filter(|text| text.contains("\"end\"")).collect();
    let text = |label: &str| {
        label[label.find('>').expect("it") + 1..label.find('<').expect("it")]
            .trim()
            .len()
    };
    assert!(labels.iter().any(|label| text(label) >= 6), "{labels:?}");
    for label in labels {
        let wide = 0.64 * attribute(label, "font-size") * text(label) as f64;
        let starts = attribute(label, "x") - wide;
        assert!(starts > name_ends, "{starts} > {name_ends}: {label}");
    }
}
