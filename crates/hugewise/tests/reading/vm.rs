//! Virtual machines of a host, on every captured machine.

use crate::common::{done, has_processes, machine, machines, refused, text, valid};

#[test]
fn every_captured_machine_has_a_list_in_every_form() {
    for (name, machine) in machines() {
        let root = text(&machine);
        let told = done(&["--root", root, "vm"]).out;
        assert!(
            told.starts_with("Page kinds behind virtual machines\n"),
            "{name}: {told}"
        );
        assert_eq!(told, done(&["--root", root, "vm", "list"]).out, "{name}");
        let result = valid(&done(&["--root", root, "vm", "list", "--json"]).out);
        let vms = result["data"]["vms"].as_array().map_or(0, Vec::len);
        let csv = done(&["--root", root, "vm", "--format", "csv"]).out;
        assert_eq!(csv.lines().count(), vms + 1, "{name}");
        let none = match has_processes(&machine) {
            true => "no virtual machine runs here",
            false => "not known: absent",
        };
        assert_eq!(vms == 0, told.contains(none), "{name}: {told}");
        let markdown = done(&["--root", root, "vm", "--format", "markdown"]).out;
        assert!(markdown.contains("## Provenance"), "{name}");
    }
}

#[test]
fn a_guest_on_hugetlb_pages_is_told_with_its_backing() {
    let machine = machine("pool-1g");
    let result = valid(&done(&["--root", text(&machine), "vm", "--json"]).out);
    let vms = result["data"]["vms"].as_array().expect("VMs");
    assert_eq!(vms.len(), 1, "{vms:?}");
    assert_eq!(vms[0]["program"], "qemu");
    assert!(vms[0]["backing"]["hugetlb-1G"].as_u64() > Some(0), "{}", vms[0]);
    let told = done(&["--root", text(&machine), "vm"]).out;
    assert!(told.contains("qemu") && told.contains("hugetlb-1G"), "{told}");
    assert_eq!(vms[0]["configured"]["memory"][0]["kind"], "hugetlb-1G", "{}", vms[0]);
    assert_eq!(
        vms[0]["mismatches"].as_array().map(Vec::len),
        Some(0),
        "it has what it asked for"
    );
}

#[test]
fn a_list_can_be_shown_again_and_wrong_words_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("vms.json");
    let (_, machine) = machines().swap_remove(0);
    done(&["--root", text(&machine), "vm", "--output", text(&json)]);
    let html = done(&["report", text(&json), "--format", "html"]).out;
    assert!(html.contains("Page kinds behind virtual machines"));
    assert!(refused(&["vm", "destroy"]).contains("destroy"));
}
