//! Which pages a process uses, as the CPU marks them in its page table.

#![allow(
    clippy::disallowed_methods,
    reason = "marks are removed by a write to a file of the process"
)]

use std::fs;

use host::Source;
use model::Bytes;

/// Base pages that it used since the marks were last removed: at least so many, as the kernel takes marks away for itself, too (DAMON, reclaim).
/// None if the kernel does not say, or if some are huge, which have one mark each.
pub(crate) fn base_pages(process: u32) -> Option<u64> {
    let text = Source::live().text(&format!("/proc/{process}/smaps_rollup"));
    let text = text.known()?;
    let kib = |key: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()
    };
    let huge = ["AnonHugePages", "ShmemPmdMapped"]
        .into_iter()
        .filter_map(kib)
        .sum::<u64>();
    let used = Bytes::kib(kib("Referenced").filter(|_| huge == 0)?);
    Some(used.0 / Bytes::kib(4).0)
}

/// Removes the marks. They only guide the kernel in what it takes away when memory is short; where it has none, or the process has ended, nothing happens.
pub(crate) fn forget(process: u32) {
    let file = format!("/proc/{process}/clear_refs");
    let _ = fs::write(&file, "1");
    // The CPU sets no mark for a translation that is still in its TLB, and the kernel leaves it there. Only after removing the marks of
    // written pages does it flush the TLB. Each page's next write then takes a short fault.
    let _ = fs::write(&file, "4");
}

#[cfg(test)]
mod tests {
    use super::{base_pages, forget};

    #[test]
    fn pages_that_are_touched_are_counted_until_they_are_forgotten() {
        let own = std::process::id();
        let Some(before) = base_pages(own) else {
            return testing::skipped("this process has huge pages, or the kernel does not say what is used");
        };
        assert!(before > 0);
        let mut memory = vec![0_u8; 16 << 20];
        let mut touch = || {
            memory
                .iter_mut()
                .step_by(4096)
                .for_each(|byte| *byte = byte.wrapping_add(1));
        };
        touch();
        forget(own);
        let idle = base_pages(own);
        touch();
        let (Some(idle), Some(busy)) = (idle, base_pages(own)) else {
            return testing::skipped("memory of this process became huge");
        };
        // Fewer where something else takes marks away; all but a few that a TLB holds if it is not flushed, 1,500 seen of 4,096.
        assert!(busy >= idle + 3000, "{idle} and {busy} pages");
        std::hint::black_box(memory);
    }
}
