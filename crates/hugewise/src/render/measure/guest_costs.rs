//! What a hypervisor charges beside latency: first touches, exits, changes to guest page tables; KVM's counters beside.

use std::collections::BTreeMap;

use model::guest::{FirstTouch, Guest, Operation};

use super::latency::spread;
use draw::{Sheet, columns, joined, number, or};

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
    let fields = columns![|touch| &FirstTouch;
        "guest page" => touch.guest_page, "backing" => touch.kind, "#pages of 4K" => touch.touched,
        "#faults" => or(touch.faults, "?"), "#faults per page" => or(faults_per_page(touch), "?"),
        "#first touch, ns" => or(touch.touch_ns.map(spread), "?"),
        "#once warm, ns" => or(touch.warm_ns.map(spread), "?"),
        "#us per fault" => or(touch.ns.map(|ns| number(ns / 1000.0)), ""),
        "KVM counted" => counters(&touch.kvm_stats, i64::to_string),
    ];
    let title = "First touch: time of one load from each page of 4K, in order";
    Sheet::of(title, fields, touches.iter())
}

fn faults_per_page(touch: &FirstTouch) -> Option<String> {
    let faults = touch.faults.filter(|_| touch.touched > 0)?;
    Some(format!("{:.3}", faults as f64 / touch.touched as f64))
}

fn operations(title: &str, operations: &[Operation]) -> Sheet {
    let fields = columns![|operation| &Operation;
        "operation" => operation.name, "what it is" => operation.what, "#ns" => or(operation.ns.map(spread), "-"),
        "how" => if operation.emulated { "emulated" } else { "by the CPU" },
        "KVM counted per operation" => counters(&operation.per_operation, |&count| number(count)),
    ];
    let mut sheet = Sheet::of(title, fields, operations.iter());
    for operation in operations {
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
    let told = telling.filter(|(_, count)| count != "0");
    let told = joined(told.map(|(name, count)| format!("{name} {count}")), ", ");
    if told.is_empty() { "-".to_owned() } else { told }
}
