//! What of a request for pages a machine can meet while it runs: its free blocks, and the memory that programs leave.

use model::Bytes;
use model::findings::{Finding, Proof};
use programs::Evidence;

use super::ledger::spare;
use crate::kept::boot_pages;

/// Pages that a fix requests while the machine runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) page: Bytes,
    /// Pages that the pool has.
    pub(super) now: u64,
    /// Pages that it is to have.
    pub(super) whole: u64,
}

impl Request {
    fn more(self) -> u64 {
        self.whole.saturating_sub(self.now)
    }
}

/// Free blocks that hold a page of that size; `None` where they are not known, or no block is as large.
fn whole_blocks(evidence: &Evidence, page: Bytes) -> Option<u64> {
    let memory = &evidence.snapshot.memory;
    let base = evidence.snapshot.kernel.base_page.known()?.0;
    let order = page.0.checked_div(base)?.checked_ilog2()? as usize;
    let mut zones = memory.free_blocks.known()?.iter();
    zones.find(|zone| zone.by_order.len() > order)?;
    memory.free_at_least(order).known().copied()
}

/// Adds to a finding where a request now can stop, and how to get the rest. The kernel compacts memory for a request, and may give up.
pub(super) fn add_limit(evidence: &Evidence, finding: &mut Finding, request: Request) {
    let memory = &evidence.snapshot.memory;
    let blocks = whole_blocks(evidence, request.page);
    let too_few = blocks.filter(|blocks| *blocks < request.more());
    if let Some(blocks) = too_few {
        let field = format!("free blocks of {}", request.page.exact());
        finding.evidence.push(Proof::new("/proc/buddyinfo", field, blocks));
        let failed = memory.count("htlb_buddy_alloc_fail").known().copied();
        let failed = failed.filter(|failed| *failed > 0);
        let proof = failed.map(|failed| Proof::new("/proc/vmstat", "htlb_buddy_alloc_fail", failed));
        finding.evidence.extend(proof);
    }
    match (little_memory(evidence, &finding.fix, request), too_few) {
        (Some(fix), _) => finding.fix.push(fix),
        (None, Some(blocks)) => fragmented(evidence, finding, request, blocks),
        (None, None) => {}
    }
}

/// Why a request while the machine runs would stop before so many pages, if it would: likely that is why an earlier one did.
pub(crate) fn hindrance(evidence: &Evidence, page: Bytes, now: u64, whole: u64) -> Option<&'static str> {
    let request = Request { page, now, whole };
    let is_in_pieces = || whole_blocks(evidence, page).is_some_and(|blocks| blocks < request.more());
    match little_memory(evidence, &[], request) {
        Some(_) => Some("memory is short"),
        None => is_in_pieces().then_some("free memory is in smaller blocks"),
    }
}

/// What to do where too little memory is available for the request, or it would leave too little.
fn little_memory(evidence: &Evidence, fixes: &[String], request: Request) -> Option<String> {
    let available = *evidence.snapshot.memory.get("MemAvailable").known()?;
    let name = request.page.exact();
    let room = available.0 / request.page.0.max(1);
    let more = Bytes(request.page.0.saturating_mul(request.more()));
    let left = Bytes(available.0.saturating_sub(more.0));
    let least = spare(evidence).unwrap_or_default().0;
    let what = match room < request.more() {
        true => format!(
            "a request now gets at most {} pages of {name}, as MemAvailable is {available}",
            request.now.saturating_add(room)
        ),
        false if left.0 < least => {
            format!("memory is short: of the {available} that is available now, {more} more in the pool leaves {left}")
        }
        false => return None,
    };
    let boot = boot_pages(evidence, request.page, request.whole);
    // Some findings have that as a fix of their own.
    let boot = match fixes.iter().any(|fix| fix.ends_with(&boot)) {
        true => "request them at boot",
        false => &boot,
    };
    Some(format!("{what}: stop programs first, or {boot}"))
}

/// Memory is there, and not in blocks that are large enough.
fn fragmented(evidence: &Evidence, finding: &mut Finding, request: Request, blocks: u64) {
    // The fixes of some findings are these already.
    if finding.fix.iter().any(|fix| fix.contains("compact_memory")) {
        return;
    }
    let name = request.page.exact();
    let free = evidence.snapshot.memory.get("MemFree");
    let free = free
        .known()
        .map_or_else(|| "memory".to_owned(), |free| format!("{free} of memory"));
    finding.fix.push(format!(
        "a request now may stop at {} pages: {free} is free, and only {blocks} free blocks hold a page of {name}; read nr_hugepages after it, and before it: \
         sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory",
        request.now.saturating_add(blocks)
    ));
    finding.fix.push(format!(
        "if it stays short: {}",
        boot_pages(evidence, request.page, request.whole)
    ));
}

#[cfg(test)]
mod tests {
    use crate::machines::{found, machine, meminfo};
    use model::findings::Finding;

    /// 8 pages of 2M are asked for, on a machine with so many free blocks of 2M and so much available memory.
    fn short(blocks: u64, available_kib: u64) -> Finding {
        let zone = format!("Node 0, zone   Normal   9 9 9 9 9 9 9 9 9 {blocks} 0\n");
        let asks = machine().file("/etc/sysctl.d/10-db.conf", "vm.nr_hugepages = 8\n");
        let free = [("MemFree", 1 << 20), ("MemAvailable", available_kib)];
        found("A01", meminfo(asks.file("/proc/buddyinfo", zone), &free))
    }

    #[test]
    fn a_request_names_the_blocks_that_it_stops_at() {
        let seen = |finding: &Finding| finding.evidence.iter().any(|proof| proof.source == "/proc/buddyinfo");
        assert!(seen(&short(5, 1 << 20)));
        assert!(!seen(&short(8, 1 << 20)), "8 blocks hold 8 pages");
        let poor = short(5, 6 << 10);
        assert!(
            poor.fix.iter().any(|fix| fix.contains("at most 3 pages of 2M")),
            "{poor:?}"
        );
        // 16M leave nearly nothing of 20M, whether blocks hold them or not; of 12G they leave enough.
        let is_short = |finding: &Finding| finding.fix.iter().any(|fix| fix.starts_with("memory is short"));
        assert!(is_short(&short(8, 20 << 10)) && is_short(&short(5, 20 << 10)));
        assert!(!is_short(&short(8, 12 << 20)));
    }
}
