//! Where the values of the machine at hand come from, as a table.

use translation::measured::{From, Value, What};
use translation::study::MachineFacts;

use super::simulate::{name, number};
use draw::columns;
use draw::sheet::Sheet;
use draw::table;

/// The table; none of a machine that is not at hand.
pub(super) fn values(facts: &MachineFacts) -> Option<Sheet> {
    if facts.values.is_empty() {
        return None;
    }
    let fields = columns![|value| &Value;
        "what" => what(value.what), "#value" => amount(value), "from" => from(value.from), "source" => value.source,
    ];
    let title = "Where the values of this machine come from";
    Some(table::sheet(title, &fields, facts.values.iter()))
}

fn what(what: What) -> String {
    match what {
        What::TlbEntries { level, page } => format!("TLB level {level}, entries for {}", page.exact()),
        What::CacheBytes { level } => format!("cache level {level}"),
        What::Cost(unknown) => name(unknown).to_owned(),
        What::CoreClock => "core clock, GHz".to_owned(),
        What::FrameRun => "base pages on frames in a row".to_owned(),
    }
}

fn amount(value: &Value) -> String {
    let range = value.value;
    match value.what {
        What::CacheBytes { .. } => model::Bytes(range.middle as u64).to_string(),
        _ if range.is_exact() => number(range.middle),
        _ => format!("{} to {}", number(range.low), number(range.high)),
    }
}

fn from(from: From) -> &'static str {
    match from {
        From::Measured => "measured",
        From::Reported => "reported by the machine",
        From::Table => "CPU table",
        From::Swept => "not known: swept",
    }
}
