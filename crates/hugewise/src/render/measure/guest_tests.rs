//! A made matrix in every form.

use model::Bytes;
use model::guest::{Guest, GuestPage};

use crate::cli::args::Format;
use crate::samples::{envelope, guest};
use crate::show::{Show, show};
use draw::Look;

fn text(guest: &Guest) -> String {
    let look = Look::plain(200);
    guest.sheets().iter().map(|sheet| sheet.text(look)).collect()
}

#[test]
fn the_matrix_stands_at_the_largest_size_with_native_in_the_first_row() {
    let guest = guest();
    let matrix = &guest.sheets()[0];
    let names: Vec<&str> = matrix.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["native", "4K", "2M"]);
    assert!(matrix.columns[0].name.contains("at 1G"), "{matrix:?}");
    assert_eq!(
        matrix.rows[1][1..],
        ["220 ± 2 (1.05x)", "160 ± 2 (1.14x)", "not obtained"]
    );
    let shade = |row, column| matrix.shades.get(&(row, column)).map(|heat| heat.index());
    assert_eq!(
        [shade(0, 1), shade(0, 2), shade(1, 2), shade(1, 3)],
        [Some(3), Some(0), Some(1), None]
    );
    assert_eq!(matrix.shades.get(&(0, 0)), None, "names have no shade");
}

#[test]
fn reasons_are_told_once_with_their_cells() {
    let text = text(&guest());
    assert!(
        text.contains("not obtained: native, 4K, 2M on hugetlb-2M: the pool is empty"),
        "{text}"
    );
    assert_eq!(text.matches("the pool is empty").count(), 1, "{text}");
}

#[test]
fn costs_stand_with_the_counters_that_prove_them_and_emulation_is_said() {
    let text = text(&guest());
    for part in [
        "16384",
        "1.000",
        "9.95",
        "pf_fixed 16384",
        "segv",
        "emulated",
        "exits 3",
        "not measured: fw: the guest faulted",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("tlb_flush 0"), "{text}");
}

#[test]
fn every_form_has_the_matrix() {
    let look = Look {
        width: 200,
        color: true,
        plot: false,
    };
    let shown = |format| show(&envelope(guest()), format, look).expect("shown");
    let words = |format| String::from_utf8(shown(format)).expect("text");
    assert!(words(Format::Text).contains("\u{1b}[48;2;") || words(Format::Text).contains("48;2;"));
    let html = words(Format::Html);
    assert!(
        html.contains("<td class=\"n h3\">") && html.contains("--h3:"),
        "shades in the page"
    );
    let body = html.split("</style>").nth(1).expect("body");
    assert!(!body.contains("=\"#"), "a colour that dark mode cannot change");
    let svg = words(Format::Svg);
    assert!(
        svg.contains("220 ± 2 (1.05x)") && svg.contains("natively"),
        "map and charts"
    );
    assert_eq!(words(Format::Csv).lines().count(), guest().points.len() + 1);
}

#[test]
fn charts_need_several_working_sets_and_a_map_none() {
    let mut one = guest();
    one.points.retain(|point| point.point.bytes == Bytes::gib(1));
    assert!(one.figures().is_empty() && guest().figures().len() == 3);
    let look = Look::plain(0);
    assert!(show(&envelope(one), Format::Svg, look).is_ok());
    let names: Vec<String> = guest().figures()[1]
        .series
        .iter()
        .map(|series| series.name.clone())
        .collect();
    assert_eq!(names, ["base", "thp"]);
    assert_eq!(guest().figures()[1].id, format!("guest-{}", GuestPage::Size4K));
}
