//! `measure tlb` where this process and its children get no transparent huge pages: a reason and no number.

mod common;

use common::{done, valid};

#[test]
fn pages_that_the_kernel_does_not_give_are_a_reason_and_no_number() {
    // prctl(2), PR_SET_THP_DISABLE: for this process alone, and inherited by the program that it starts.
    rustix::thread::disable_transparent_huge_pages(true).expect("Linux 3.15");
    let result = valid(&done(&["measure", "tlb", "--pages", "thp", "--quick", "--no-pool", "--json"]).out);
    let data = &result["data"];
    for part in ["levels", "walks", "sharing", "curves", "memory"] {
        assert_eq!(data[part], serde_json::json!([]), "{part}");
    }
    assert_eq!(data["host_backing"]["verdict"], "unknown", "{data}");
    let told = result.to_string();
    assert!(
        told.contains("tlb-not-measured") && told.contains("expected thp pages, got 0 %"),
        "{told}"
    );
}
