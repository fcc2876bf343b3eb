//! The times of compared commands in the form that hyperfine's `--export-json` has, for the tools that read it.

use std::collections::BTreeMap;

use model::compare::{Arm, Compare, Metric};
use serde_json::{Value, json};

/// All commands, one result each. `parameters` are those of each command, by their names.
pub(crate) fn json(compare: &Compare, parameters: &[Vec<(String, String)>]) -> String {
    let with = |(at, arm): (usize, &Arm)| {
        let mut result = result(arm);
        if let Some(own) = parameters.get(at).filter(|own| !own.is_empty()) {
            result["parameters"] = json!(own.iter().cloned().collect::<BTreeMap<String, String>>());
        }
        result
    };
    let results: Vec<Value> = compare.arms.iter().enumerate().map(with).collect();
    format!("{:#}\n", json!({ "results": results }))
}

fn result(arm: &Arm) -> Value {
    let mean = |metric: Metric| {
        let values = arm.values(metric.name());
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let times = arm.values(Metric::Wall.name());
    let sorted = stats::sorted(&times);
    json!({
        "command": arm.name,
        "mean": mean(Metric::Wall),
        "stddev": deviation(&times),
        "median": stats::median(&times),
        "user": mean(Metric::User),
        "system": mean(Metric::System),
        "min": sorted.first(),
        "max": sorted.last(),
        "times": times,
    })
}

/// The standard deviation of a sample; of one value there is none.
fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::json;
    use crate::render::prove::compare::tests::compare;

    #[test]
    fn times_are_those_of_each_command_in_seconds() {
        let sizes = [Vec::new(), vec![("size".to_owned(), "2".to_owned())]];
        let text = json(&compare(model::compare::Verdict::Better), &sizes);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let thp = &value["results"][1];
        assert_eq!(
            (thp["command"].as_str(), thp["median"].as_f64()),
            (Some("thp"), Some(0.75))
        );
        assert_eq!(thp["parameters"]["size"], "2");
        assert!(value["results"][0]["parameters"].is_null());
        assert_eq!(thp["times"].as_array().map(Vec::len), Some(6));
    }
}
