//! The text exposition format 0.0.4 of Prometheus, which node_exporter's textfile collector reads.

use std::fmt::Write;

pub type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Adds a gauge with its lines; nothing where it has none.
pub fn family<'a>(text: &mut String, name: &str, help: &str, lines: impl IntoIterator<Item = (Labels<'a>, usize)>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a String does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in lines {
        let labels = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)));
        let labels: Vec<String> = labels.collect();
        let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
