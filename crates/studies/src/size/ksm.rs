//! Same-page merging: how fast it scans, what it saves, and what ksmtuned would set.

use model::Bytes;

use super::{SizeError, Sizing};

/// Bytes that the kernel needs for each page that it watches (struct ksm_rmap_item on 64-bit).
const RMAP_ITEM: u64 = 64;
/// Pages are base pages of 4 KiB here, as in the published figures.
const PAGE: u64 = 4096;
/// Below this much free memory, in per cent of all or at the least, ksmtuned has pages merged.
const KSMTUNED_COEFFICIENT: u64 = 20;
const KSMTUNED_LEAST: Bytes = Bytes::mib(2048);

/// Upper bound of the scan rate, in MiB/s: ksmd's own time comes on top of its sleep.
pub fn scan_rate(pages_to_scan: u64, sleep_ms: f64) -> f64 {
    pages_to_scan as f64 * PAGE as f64 * 1000.0 / sleep_ms / (1u64 << 20) as f64
}

/// `size ksm`.
///
/// # Errors
/// When there is no sleep.
pub fn sizing(
    pages_to_scan: u64,
    sleep_ms: f64,
    sharing: u64,
    rmap_items: u64,
    total: Bytes,
) -> Result<Sizing, SizeError> {
    if sleep_ms.is_nan() || sleep_ms <= 0.0 {
        return Err(SizeError::out_of_range("--sleep-ms", sleep_ms, "milliseconds above 0"));
    }
    let rate = scan_rate(pages_to_scan, sleep_ms);
    let bytes = |count: u64, size: u64| i64::try_from(count.saturating_mul(size)).unwrap_or(i64::MAX);
    let profit = bytes(sharing, PAGE).saturating_sub(bytes(rmap_items, RMAP_ITEM));
    let pass = total.0 as f64 / (1u64 << 20) as f64 / rate.max(f64::MIN_POSITIVE);
    let threshold = KSMTUNED_LEAST.max(Bytes(total.0 / 100 * KSMTUNED_COEFFICIENT));
    let source = "Linux Documentation/admin-guide/mm/ksm.rst; Red Hat Enterprise Linux 6 Virtualization \
                  Tuning, 8.4.2";
    let scanned = format!("{pages_to_scan} pages x 4 KiB x 1000 / {sleep_ms} ms");
    let twice = format!("2 x {total} / {rate:.4} MiB/s: a page is merged in its second scan");
    let saved = format!("{sharing} x 4096 B - {rmap_items} x {RMAP_ITEM} B");
    let least = format!("20 % of {total}, at least 2 GiB free");
    Ok(Sizing::new("same-page merging", source)
        .step("scan_rate", scanned, rate, "MiB/s")
        .step("first_merge", twice, 2.0 * pass, "s")
        .step("profit", saved, profit as f64, "B")
        .step("ksmtuned_threshold", least, threshold, "B")
        .trap("merging splits transparent huge pages: what it saves in memory it costs in translation"))
}
