//! Each rule of `tools` where it fires and where it must not.

use crate::machines::*;

#[test]
fn h01_memory_that_rss_leaves_out() {
    let holder = |mib| process(120, "db").area(hugetlb(mib, 2048));
    found("H01", holder(2048).on(machine()));
    clear("H01", holder(100).on(machine()));
}
