//! The page is whole, offline and small, and hostile names stay text.

use super::page as write;
use crate::samples::{envelope, usual};
use crate::show::{Shape, ShowError, View};
use model::latency::Bound;
use model::{Envelope, Reading, Warning};

fn page<T: Shape>(result: &Envelope<T>) -> Result<String, ShowError> {
    let mut page = Vec::new();
    write(&View::of(result), &mut page)?;
    Ok(String::from_utf8(page).expect("text"))
}

#[test]
fn the_page_needs_nothing_from_outside_and_holds_its_own_result() {
    let html = page(&envelope(usual())).expect("page");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    assert_eq!(
        html.matches("role=\"img\"").count(),
        4,
        "two charts, each for wide and narrow screens"
    );
    assert_eq!(html.matches("class=\"hit\"").count(), 2 * (34 + 17));
    let json = html
        .split("id=\"result\">")
        .nth(1)
        .and_then(|rest| rest.split("</script>").next())
        .expect("embedded");
    let again: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(again["schema"], "hugewise/latency/2");
}

#[test]
fn every_fixed_colour_follows_the_page() {
    let html = page(&envelope(usual())).expect("page");
    let body = html.split("</style>").nth(1).expect("body");
    assert!(!body.contains("=\"#"), "a colour that dark mode cannot change");
}

#[test]
fn the_legend_shows_a_hollow_mark_for_points_that_did_not_converge() {
    let hollow = "fill=\"none\" stroke-width=\"1.5\" stroke=\"var(--k0)\"";
    assert!(!page(&envelope(usual())).expect("page").contains(hollow));
    let mut latency = usual();
    let point = &mut latency.points[3];
    let ns = point.ns.take().expect("converged");
    point.bound = Some(Bound {
        low: None,
        high: Some(ns.median),
    });
    let html = page(&envelope(latency)).expect("page");
    let named = html
        .lines()
        .find(|line| line.contains(", not converged (upper limit)</li>"));
    assert!(named.is_some_and(|line| line.contains(hollow)), "{named:?}");
    assert!(html.contains("fill=\"var(--paper)\""), "in the chart as well");
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</script><script>alert(1)</script><img onerror=x>\"'";
    let mut result = envelope(usual());
    result.command = vec![evil.to_owned()];
    result.machine.cpu = Reading::Known(evil.to_owned());
    result.warnings = vec![Warning::new("evil", evil)];
    result.data.points[0].backing.proof = evil.to_owned();
    let html = page(&result).expect("page");
    assert!(
        !html.contains("<script>alert") && !html.contains("<img"),
        "escaped everywhere"
    );
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(
        html.contains("\\u003c/script>\\u003cscript>alert(1)"),
        "the result says what it is"
    );
}
