//! Any bytes as the accounts of a process: mappings, sums and status, or an error that names a line.
#![no_main]

use host::processes::{smaps, status};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(mappings) = smaps::parse("/proc/1/smaps", bytes) {
        for mapping in &mappings {
            let _ = (mapping.size(), mapping.backing(), mapping.to_pages());
        }
    }
    if let Ok(counts) = smaps::parse_rollup("/proc/1/smaps_rollup", bytes) {
        let _ = (counts.thp(), counts.hugetlb(), counts.transparent());
    }
    let _ = status::Status::parse("/proc/1/status", bytes).has_memory();
});
