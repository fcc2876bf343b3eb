//! Whatever a text holds, no form of it steers a terminal, a browser or a spreadsheet.

use crate::samples;
use draw::safe::{
    csv_cell, is_hostile, json, json_to, markdown, markdown_paragraph, printable, printable_lines, steers,
};

const HOSTILE: [&str; 6] = [
    "\u{1b}]0;title\u{7}\u{1b}[31m",
    "\u{9b}31m\u{85}",
    "a\r\nb\tc\u{b}\u{7f}",
    "\u{202e}gnp.exe\u{2066}\u{200b}",
    "\u{2028}\u{feff}\u{e0041}",
    "<script>alert(1)</script>|`x`",
];

#[test]
fn what_steers_is_shown_as_an_escape() {
    for text in HOSTILE {
        assert!(!printable(text).contains(steers), "{text:?}");
        assert!(!printable_lines(text).replace('\n', "").contains(steers), "{text:?}");
    }
    assert_eq!(printable("ok\u{1b}[0m é \u{202e}\n"), "ok\\u{1b}[0m é \\u{202e}\\n");
    assert_eq!(printable_lines("a\nb\u{9b}"), "a\nb\\u{9b}");
}

#[test]
fn markdown_holds_no_html_and_no_marks() {
    assert_eq!(markdown("<script>a|b`c` & d"), "&lt;script&gt;a\\|b\\`c\\` &amp; d");
    assert_eq!(markdown_paragraph("# no heading"), "\\# no heading");
    assert_eq!(markdown_paragraph("plain"), "plain");
    assert!(
        !HOSTILE
            .iter()
            .any(|text| markdown(text).contains(|c| steers(c) || c == '<'))
    );
}

#[test]
fn csv_cells_are_no_formulas_and_numbers_stay_numbers() {
    for formula in [
        "=1+2",
        "+cmd|' /C calc'!A0",
        "-1+cmd",
        "@SUM(A1)",
        "-",
        "-inf",
        "=say(\"a\", \"b\")",
        "\u{ff1d}1",
        "+nan",
    ] {
        let cell = csv_cell(formula);
        let read = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(cell.as_bytes())
            .into_records()
            .next();
        assert_eq!(read.expect("a record").expect("CSV")[0], format!("'{formula}"));
    }
    for plain in ["-1", "+2.5", "-1.2e-9", "", "name", "a=b", "1-2"] {
        assert_eq!(csv_cell(plain), plain);
    }
    // These begin a formula too where a spreadsheet leaves them out.
    assert_eq!([csv_cell("\t=1"), csv_cell("\r=1")], ["\\t=1", "\\r=1"]);
}

#[test]
fn json_says_the_same_without_what_steers() {
    for text in HOSTILE {
        let written = serde_json::to_string_pretty(&[text]).expect("JSON");
        let safe = json(&written);
        let mut pieces = Vec::new();
        serde_json::to_writer_pretty(json_to(&mut pieces), &[text]).expect("JSON");
        assert_eq!(pieces, safe.as_bytes());
        assert!(!safe.replace('\n', "").contains(steers), "{safe:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe).expect("JSON"), [text]);
    }
}

#[test]
fn a_result_with_a_text_that_steers_is_found_out() {
    let mut result = samples::envelope(samples::usual());
    assert!(!is_hostile(&result).expect("JSON"));
    result.data.no_pmu = Some("two\nlines\tand \"quotes\"".to_owned());
    assert!(!is_hostile(&result).expect("JSON"));
    // Text that looks like an escape is none.
    result.data.no_pmu = Some(r"\u001b \r \bin".to_owned());
    assert!(!is_hostile(&result).expect("JSON"));
    for text in &HOSTILE[..5] {
        result.data.no_pmu = Some((*text).to_owned());
        assert!(is_hostile(&result).expect("JSON"), "{text:?}");
    }
}
