//! The times of compared commands in the form that hyperfine's `--export-json` has, for the tools that read it.

use std::collections::BTreeMap;
use std::iter;

use model::compare::{Arm, Compare, Metric};
use serde_json::{Value, json};

/// A command in full, with its parameters by name.
type Command = (String, Vec<(String, String)>);

/// All commands, one result each at each place.
pub(crate) fn json(compare: &Compare, commands: &[Command]) -> String {
    let places = compare.arms.len() / commands.len().max(1);
    let commands = commands.iter().flat_map(|command| iter::repeat_n(command, places));
    let with = |(arm, (command, parameters)): (&Arm, &Command)| {
        let place = arm.place.as_ref().map(|place| format!("@{place}"));
        let mut result = result(arm, &format!("{command}{}", place.unwrap_or_default()));
        if !parameters.is_empty() {
            result["parameters"] = json!(parameters.iter().cloned().collect::<BTreeMap<String, String>>());
        }
        result
    };
    let results: Vec<Value> = compare.arms.iter().zip(commands).map(with).collect();
    format!("{:#}\n", json!({ "results": results }))
}

fn result(arm: &Arm, command: &str) -> Value {
    let mean = |metric: Metric| {
        let values = arm.values(metric.name());
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let times = arm.values(Metric::Wall.name());
    let sorted = stats::sorted(&times);
    json!({
        "command": command,
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
        // A name in a table is shortened; here the command stands in full.
        let command = "sort --buffer-size=2 --parallel=1 a-long-name-of-a-file";
        let commands = [
            ("sort a-file".to_owned(), Vec::new()),
            (command.to_owned(), vec![("size".to_owned(), "2".to_owned())]),
        ];
        let text = json(&compare(model::compare::Verdict::Better), &commands);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let thp = &value["results"][1];
        assert_eq!(
            (thp["command"].as_str(), thp["median"].as_f64()),
            (Some(command), Some(0.75))
        );
        assert_eq!(thp["parameters"]["size"], "2");
        assert!(value["results"][0]["parameters"].is_null());
        assert_eq!(thp["times"].as_array().map(Vec::len), Some(6));
    }
}
