//! Where things lie in the guest: its own small memory at the bottom, one page that is not there, lent memory above.
//!
//! The guest's own memory has the same virtual and physical addresses. Lent memory keeps its host addresses as virtual
//! ones, and its physical address has the same last 30 bits, so that pages up to 1 GiB can be used on both sides.

use crate::pagetable::Levels;

/// First page of the wrapper and the kernels, in order of loading.
pub(crate) const CODE: u64 = 0x10_0000;
pub(crate) const CODE_LEN: u64 = 0x1_0000;
/// The stack, which grows down from its end.
pub(crate) const STACK: u64 = 0x12_0000;
pub(crate) const STACK_LEN: u64 = 0x4000;
/// One word per block: the ticks it took.
pub(crate) const RESULTS: u64 = 0x13_0000;
pub(crate) const RESULTS_LEN: u64 = 0x8_0000;
/// Descriptor tables and the task state, for what runs at ring 0 and for the way into it.
pub(crate) const SYSTEM: u64 = 0x1c_0000;
/// Bytes for them: GDT, IDT and TSS, a page each.
pub(crate) const SYSTEM_LEN: u64 = 0x3000;
/// What ring-0 kernels change: address spaces, and frames to map in them.
pub(crate) const CHURN: u64 = 0x20_0000;
pub(crate) const CHURN_LEN: u64 = 0x20_0000;
pub(crate) const SECOND_ROOT: u64 = CHURN;
/// A root and four tables that are built and cleared.
pub(crate) const NEW_ROOT: u64 = CHURN + 0x1000;
pub(crate) const WORK_FRAMES: u64 = CHURN + 0x10_0000;
/// Frames that address spaces have for themselves.
pub(crate) const COPY_FRAMES: u64 = CHURN + 0x18_0000;
/// Bytes of the work area.
pub(crate) const WORK_LEN: u64 = 64 * 4096;
/// The page tables, from here on as far as they need.
pub(crate) const TABLES: u64 = 0x40_0000;

/// A page with a virtual address and nothing behind it: a store there is an exit to this program.
pub(crate) const EXIT: u64 = 0x8000_0000;
/// In that page: the wrapper has finished.
pub(crate) const FINISHED: u64 = EXIT;
/// In that page: a kernel only wants to have been outside.
pub(crate) const PING: u64 = EXIT + 8;

/// The leaf table of the work area, for ring 0 to write to.
pub(crate) const LEAVES: u64 = 0xa000_0000;

/// The work area: the only thing under the root's second entry.
pub(crate) fn work(levels: Levels) -> u64 {
    match levels {
        Levels::Four => 1 << 39,
        Levels::Five => 1 << 48,
    }
}

/// Lent memory begins here or up to 1 GiB later.
pub(crate) const LENT: u64 = 0x1_0000_0000;

/// The most blocks in one entry.
pub const MOST_BLOCKS: u64 = RESULTS_LEN / 8;

const GIB: u64 = 1 << 30;

/// Guest-physical address for lent memory at a host address, not below `from`.
pub(crate) fn physical(host: u64, from: u64) -> u64 {
    from.next_multiple_of(GIB) + host % GIB
}

#[cfg(test)]
mod tests {
    use super::{CHURN, CHURN_LEN, CODE, CODE_LEN, EXIT, LEAVES, LENT, RESULTS, RESULTS_LEN, STACK, STACK_LEN, SYSTEM};
    use super::{SYSTEM_LEN, TABLES, physical};

    #[test]
    fn the_parts_do_not_meet() {
        let parts = [
            (CODE, CODE_LEN),
            (STACK, STACK_LEN),
            (RESULTS, RESULTS_LEN),
            (SYSTEM, SYSTEM_LEN),
            (CHURN, CHURN_LEN),
            (TABLES, EXIT - TABLES),
            (EXIT, 4096),
            (LEAVES, 4096),
            (LENT, 1),
        ];
        for pair in parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?}");
        }
    }

    #[test]
    fn physical_addresses_keep_the_last_30_bits() {
        let at = physical(0x7f12_3456_7000, LENT);
        assert_eq!(at % (1 << 30), 0x7f12_3456_7000 % (1 << 30));
        assert!((LENT..LENT + (1 << 30)).contains(&at));
        assert!(physical(0x1000, at + 4096) > at);
    }
}
