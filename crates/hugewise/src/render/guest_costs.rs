//! What a hypervisor charges beside latency: first touches, exits, changes to guest page tables; KVM's counters beside.

use std::collections::BTreeMap;

use model::guest::{FirstTouch, Guest, Operation};

use super::axis::number;
use super::latency::spread;
use super::sheet::Sheet;

/// The counters that show what the hypervisor did. JSON has all of them.
const TELLING: [&str; 9] = [
    "exits",
    "pf_taken",
    "pf_fixed",
    "pf_emulate",
    "tlb_flush",
    "mmu_shadow_zapped",
    "pages_4k",
    "pages_2m",
    "pages_1g",
];

/// First touches, then exits and changes to page tables, where there are any.
pub(super) fn sheets(guest: &Guest) -> Vec<Sheet> {
    let operations = [
        operations("Leaving the guest and coming back", &guest.exits),
        operations("Changes to guest page tables", &guest.churn),
    ];
    let all = [first_touches(&guest.fault_ns)].into_iter().chain(operations);
    all.filter(|sheet| !sheet.rows.is_empty()).collect()
}

fn first_touches(touches: &[FirstTouch]) -> Sheet {
    let heads = [
        "guest page",
        "backing",
        "#pages of 4K",
        "#faults",
        "#faults per page",
        "#first touch, ns",
        "#once warm, ns",
        "#us per fault",
        "KVM counted",
    ];
    let mut sheet = Sheet::new("First touch: time of one load from each page of 4K, in order", heads);
    for touch in touches {
        let unknown = || "?".to_owned();
        let per_page = touch.faults.filter(|_| touch.touched > 0);
        let per_page = per_page.map(|faults| faults as f64 / touch.touched as f64);
        sheet.row([
            touch.guest_page.to_string(),
            touch.kind.to_string(),
            touch.touched.to_string(),
            touch.faults.map_or_else(unknown, |faults| faults.to_string()),
            per_page.map_or_else(unknown, |share| format!("{share:.3}")),
            touch.touch_ns.map_or_else(unknown, spread),
            touch.warm_ns.map_or_else(unknown, spread),
            touch.ns.map_or_else(String::new, |ns| number(ns / 1000.0)),
            counters(&touch.kvm_stats, |&count| count.to_string()),
        ]);
    }
    sheet
}

fn operations(title: &str, operations: &[Operation]) -> Sheet {
    let heads = ["operation", "what it is", "#ns", "how", "KVM counted per operation"];
    let mut sheet = Sheet::new(title, heads);
    for operation in operations {
        sheet.row([
            operation.name.clone(),
            operation.what.clone(),
            operation.ns.map_or_else(|| "-".to_owned(), spread),
            if operation.emulated { "emulated" } else { "by the CPU" }.to_owned(),
            counters(&operation.per_operation, |&count| number(count)),
        ]);
        if let Some(why) = &operation.not_measured {
            sheet.note(format!("not measured: {}: {why}", operation.name));
        }
    }
    if operations.iter().any(|operation| operation.emulated) {
        sheet.note(
            "emulated: the hypervisor interprets these instructions of the guest; the time is that of its interpreter, \
             the counts are facts",
        );
    }
    sheet
}

/// `exits 12, pf_fixed 3`: those of the named counters that are not zero.
pub(super) fn counters<T>(stats: &BTreeMap<String, T>, write: impl Fn(&T) -> String) -> String {
    let telling = TELLING.iter().filter_map(|&name| Some((name, write(stats.get(name)?))));
    let told: Vec<String> = telling
        .filter(|(_, count)| count != "0")
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if told.is_empty() {
        "-".to_owned()
    } else {
        told.join(", ")
    }
}
