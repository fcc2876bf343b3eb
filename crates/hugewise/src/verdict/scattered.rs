//! Where base pages lie: in a virtual machine huge pages save more where base pages lie scattered, and free memory in small pieces makes them so.

use std::cmp::Reverse;

use host::Snapshot;
use host::snapshot::FreeBlocks;
use model::headline::{ENTRIES, Headline, SCATTERED};
use model::{Bytes, PageKind, Reading, tlb};

use super::Grounds;

/// Free memory in smaller pieces than this makes base pages lie apart.
const WHOLE: Bytes = Bytes::mib(2);
/// Where base pages come from small pieces, they lie scattered from so many times the least lines on.
const FROM_PIECES: f64 = 1.25;
/// Zones from which programs get memory, the first one first.
const ZONES: [&str; 4] = ["DMA", "DMA32", "Normal", "Movable"];

/// What is known of scattered base pages.
#[derive(Default)]
pub(super) struct Scattered {
    /// Lines of the host's page table, as a multiple of the least.
    pub(super) lines: Option<f64>,
    /// Free memory in small pieces before anything was measured.
    pub(super) pieces: Option<Reading<Bytes>>,
}

/// Free memory in small pieces, and how scattered pages of it would lie.
struct Pieces {
    bytes: Bytes,
    lines: f64,
}

/// How scattered base pages are, where that costs. The frames show it to root; for others free memory shows where they come from.
pub(super) fn scattered(grounds: &Grounds<'_>) -> Scattered {
    let Some(headline) = grounds.headline.ok().filter(|_| costs(grounds)) else {
        return Scattered::default();
    };
    let pieces = pieces(grounds.snapshot, headline);
    let bytes = |pieces: Pieces| pieces.bytes;
    match headline.host_lines {
        Some(lines) => {
            let small = pieces.into_result().ok().filter(|pieces| pieces.lines >= FROM_PIECES);
            let from = if small.is_some() { FROM_PIECES } else { SCATTERED };
            let is_scattered = lines >= from;
            Scattered {
                lines: is_scattered.then_some(lines),
                pieces: small.filter(|_| is_scattered).map(bytes).map(Reading::Known),
            }
        }
        None => Scattered {
            lines: None,
            pieces: Some(pieces)
                .filter(|pieces| pieces.known().is_none_or(|pieces| pieces.lines >= SCATTERED))
                .map(|pieces| pieces.map(bytes)),
        },
    }
}

/// On bare metal it hardly does: the one page table there is read by virtual address, and neighbouring pages share its lines wherever their
/// frames lie. A host reads its table by the guest's frame number. If its pages are of 2 MiB or more, an entry is for 512 frames or more, and
/// so few of them stay in the CPU's caches.
fn costs(grounds: &Grounds<'_>) -> bool {
    let host = grounds.tlb.map(|tlb| tlb.host_backing.verdict);
    let has_small_pages = matches!(host, None | Some(tlb::Verdict::Small | tlb::Verdict::Unknown));
    grounds.snapshot.cpu.guest_of().is_some() && has_small_pages
}

/// Those from which the largest working set on base pages came.
fn pieces(snapshot: &Snapshot, headline: &Headline) -> Reading<Pieces> {
    let of_base = headline.gains.iter().filter(|gain| gain.against == PageKind::Base);
    let set = of_base.map(|gain| gain.bytes).max().unwrap_or_default();
    snapshot.base_page().and_then(|page| {
        let mut zones = snapshot.memory.free_blocks.clone().into_result()?;
        let node = snapshot.topology.node_of(headline.cpu);
        let rank = |zone: &FreeBlocks| ZONES.iter().position(|name| *name == zone.zone);
        zones.sort_by_key(|zone| (Some(zone.node) != node, Reverse(rank(zone))));
        let order = WHOLE.0.checked_div(page.0).and_then(u64::checked_ilog2).unwrap_or(0);
        let small = zones.iter().flat_map(|zone| (0..order).zip(&zone.by_order));
        let small = small.map(|(at, &count)| count.saturating_mul(1 << at));
        Ok(Pieces {
            bytes: Bytes(small.fold(0, u64::saturating_add).saturating_mul(page.0)),
            lines: lines(&zones, set.0.checked_div(page.0).unwrap_or(0)),
        })
    })
}

/// Lines that so many pages fill if they are taken from these zones by turns, from the smallest blocks first, as a multiple of the least.
fn lines(zones: &[FreeBlocks], pages: u64) -> f64 {
    let (mut left, mut lines) = (pages, 0);
    for (order, &count) in zones.iter().flat_map(|zone| (0_u32..).zip(&zone.by_order)) {
        let block = 1_u64.checked_shl(order).unwrap_or(u64::MAX);
        let taken = left.min(count.saturating_mul(block));
        lines += taken.div_ceil(block.min(ENTRIES as u64));
        left -= taken;
    }
    let least = (pages - left).div_ceil(ENTRIES as u64);
    lines as f64 / least.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{FreeBlocks, lines};

    #[test]
    fn pages_come_from_the_smallest_blocks_of_the_first_zone() {
        let zone = |by_order: &[u64]| FreeBlocks {
            node: 0,
            zone: "Normal".to_owned(),
            by_order: by_order.to_vec(),
        };
        let whole = zone(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 128]);
        assert_eq!(lines(std::slice::from_ref(&whole), 65_536), 1.0);
        assert_eq!(lines(&[zone(&[1_000_000])], 65_536), 8.0);
        assert_eq!(lines(&[zone(&[0, 0, 20_000])], 65_536), 2.0);
        assert_eq!(lines(&[zone(&[0, 0, 0, 9000])], 65_536), 1.0);
        // Half of them from single pages, the others from whole blocks; and single pages that none needs.
        let half = zone(&[32_768, 0, 0, 0, 0, 0, 0, 0, 0, 64]);
        assert_eq!(lines(&[half], 65_536), 4.5);
        assert_eq!(lines(&[whole, zone(&[1_000_000])], 65_536), 1.0);
        assert_eq!((lines(&[], 65_536), lines(&[zone(&[u64::MAX; 70])], 8)), (0.0, 8.0));
    }
}
