//! Which settings and which hardware differ: the inventories, place by place, without what is counted or in use.

use std::collections::{BTreeMap, BTreeSet};

use model::{Bytes, Reading, Unread};
use serde::Serialize;
use serde_json::Value;

use super::material::Material;
use crate::results::diff::SettingChange;

/// Places that are no settings, by how they begin; those with `*` hold for each entry of a list.
const NO_SETTINGS: [&str; 24] = [
    "source",
    "memory.vmstat",
    "memory.free_blocks",
    "memory.pressure",
    "pools[*].free",
    "pools[*].reserved",
    "pools[*].surplus",
    "pools[*].nodes",
    "thp.khugepaged.full_scans",
    "thp.khugepaged.pages_collapsed",
    "thp.sizes[*].stats",
    "ksm.full_scans",
    "ksm.general_profit",
    "ksm.ksm_zero_pages",
    "ksm.pages_scanned",
    "ksm.pages_sh",
    "ksm.pages_skipped",
    "ksm.pages_unshared",
    "ksm.pages_volatile",
    "ksm.stable_node_chains",
    "ksm.stable_node_dups",
    "cpu.caches[*].shared",
    "topology.cpus",
    "topology.nodes[*].distances",
];
/// Of the amounts of memory, those that are no use of it.
const AMOUNTS: [&str; 2] = ["MemTotal", "Hugepagesize"];
/// What names an entry of a list, so that it is compared with the same entry on the other side: the first of these that it has all of.
const NAMES: [&[&str]; 6] = [
    &["level", "holds", "leaf"],
    &["level", "holds"],
    &["size"],
    &["node"],
    &["cpu"],
    &["target"],
];

/// What differs, by place.
pub(super) fn changes(a: &Material, b: &Material) -> Vec<SettingChange> {
    let (a, b) = match (&a.parts.snapshot, &b.parts.snapshot) {
        (Some(a), Some(b)) => (places("", a), places("", b)),
        _ => (places("machine", &a.side.machine), places("machine", &b.side.machine)),
    };
    let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let of = |side: &BTreeMap<String, Reading<String>>, place: &String| {
        side.get(place).cloned().unwrap_or_else(|| Reading::absent(place))
    };
    let both = all.into_iter().map(|place| (place, of(&a, place), of(&b, place)));
    let mut changes: Vec<SettingChange> = Vec::new();
    for (place, a, b) in both.filter(|(_, a, b)| !same(a, b)) {
        // Of an entry that one side lacks, its name is enough; places are in order, so it is the last one found.
        let is_within = |last: &SettingChange| last.setting.ends_with(']') && place.starts_with(&last.setting);
        if !changes.last().is_some_and(is_within) {
            let setting = place.clone();
            changes.push(SettingChange { setting, a, b });
        }
    }
    changes
}

/// Two reasons of one kind are no difference of settings.
fn same(a: &Reading<String>, b: &Reading<String>) -> bool {
    match (a, b) {
        (Reading::Unread(a), Reading::Unread(b)) => a.unread == b.unread,
        _ => a == b,
    }
}

fn places(name: &str, of: &impl Serialize) -> BTreeMap<String, Reading<String>> {
    let mut places = BTreeMap::new();
    // What a result holds can be written as JSON; nothing of what could not would be a setting.
    let value = serde_json::to_value(of).unwrap_or_default();
    gather(name.to_owned(), &value, &mut places);
    places
}

fn gather(place: String, value: &Value, places: &mut BTreeMap<String, Reading<String>>) {
    if !is_setting(&place) {
        return;
    }
    let below = |name: &str| match place.as_str() {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            if let Ok(unread) = serde_json::from_value::<Unread>(value.clone()) {
                places.insert(place, Reading::Unread(unread));
            } else if let Some(Value::String(chosen)) = fields.get("chosen") {
                places.insert(place, Reading::Known(chosen.clone()));
            } else {
                let fields = fields.iter();
                fields.for_each(|(name, value)| gather(below(name), value, places));
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                let entry = format!("{place}[{}]", name(item, at));
                if is_setting(&entry) {
                    places.insert(entry.clone(), Reading::Known("yes".to_owned()));
                }
                gather(entry, item, places);
            }
        }
        Value::Array(items) => {
            for item in items {
                let entry = format!("{place}[{}]", text(&place, item));
                places.insert(entry, Reading::Known("yes".to_owned()));
            }
        }
        other => {
            places.insert(place.clone(), Reading::Known(text(&place, other)));
        }
    }
}

fn name(item: &Value, at: usize) -> String {
    let words = |names: &&[&str]| -> Option<Vec<String>> {
        let word = |name: &&str| Some(text(name, item.get(name)?));
        names.iter().map(word).collect()
    };
    let words = NAMES.iter().find_map(words);
    words.map_or_else(|| at.to_string(), |words| words.join(" "))
}

/// Sizes as they are typed.
fn text(place: &str, value: &Value) -> String {
    let is_memory = place.ends_with("MemTotal") || place.ends_with("memory");
    let is_size = is_memory || ["size", "page", "_to"].iter().any(|end| place.ends_with(end));
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64().filter(|_| is_size) {
            // To three digits: the kernel keeps a little for itself, which differs from start to start.
            Some(bytes) if is_memory => Bytes(bytes).to_string(),
            Some(bytes) => Bytes(bytes).exact(),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_setting(place: &str) -> bool {
    if let Some((_, amount)) = place.split_once("meminfo.") {
        return AMOUNTS.contains(&amount);
    }
    let begins = |pattern: &str| match pattern.split_once("[*]") {
        None => place.starts_with(pattern),
        Some((list, rest)) => {
            let after = place.strip_prefix(list).and_then(|after| after.split_once(']'));
            after.is_some_and(|(_, after)| after.starts_with(rest))
        }
    };
    !NO_SETTINGS.iter().any(|pattern| begins(pattern))
}
