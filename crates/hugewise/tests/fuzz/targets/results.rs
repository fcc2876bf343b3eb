//! Results and logs of finished runs, as another may have written them.

use serde_json::json;

use super::plans;

/// A result of any kind: shown in every form of text that it has.
pub(crate) fn result(bytes: &[u8]) {
    for (form, shown) in hugewise::commands::fuzz::result(bytes) {
        let text = String::from_utf8(shown).expect("text");
        assert!(form == "text" || !text.is_empty(), "{form}");
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
