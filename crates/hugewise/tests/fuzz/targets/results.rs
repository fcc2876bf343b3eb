//! Results and logs of finished runs, as another may have written them.

use draw::Look;
use hugewise::results::kinds::{WithResult, by_schema};
use hugewise::show::{CHARTS, Format, Shape, show};
use model::Envelope;
use serde_json::{Value, json};

use super::plans;

const PLAIN: Look = Look {
    width: 100,
    plot: true,
    ..Look::FILE
};

/// A result of any kind: shown in every form of text that it has.
pub(crate) fn result(bytes: &[u8]) {
    let json: Value = serde_json::from_slice(bytes).unwrap_or_default();
    by_schema(json["schema"].as_str().unwrap_or_default(), Forms(bytes));
}

struct Forms<'a>(&'a [u8]);

impl WithResult for Forms<'_> {
    type Outcome = ();

    fn with<T: Shape>(self) {
        let Ok(result) = serde_json::from_slice::<Envelope<T>>(self.0) else {
            return;
        };
        // Forms that are text; a picture is drawn from what SVG is.
        for form in CHARTS.into_iter().filter(|form| T::FORMS.contains(form)) {
            let Ok(shown) = show(&result, form, PLAIN) else {
                continue;
            };
            let text = String::from_utf8(shown).expect("text");
            assert!(form == Format::Text || !text.is_empty(), "{}", form.name());
        }
    }
}

/// A plan for each goal, and what else is small and written by this program.
pub(crate) fn made() -> Vec<Vec<u8>> {
    let mut seeds = plans::made();
    let plain = serde_json::to_value(plans::result(model::plan::Plan::default())).expect("JSON");
    for (schema, data) in [
        (
            "hugewise/applied/3",
            json!({"goals": ["redis"], "end": "applied", "steps": [], "notes": ["a"]}),
        ),
        ("hugewise/undo/2", json!({"steps": [], "notes": ["a"]})),
        ("hugewise/status/2", json!({"runs": [], "leases": [], "notes": []})),
    ] {
        let mut result = plain.clone();
        result["schema"] = json!(schema);
        result["data"] = data;
        seeds.push(result.to_string().into_bytes());
    }
    seeds
}

/// The finished runs of a comparison.
pub(crate) fn runs(bytes: &[u8]) {
    compare::fuzz::runs(&String::from_utf8_lossy(bytes));
}
