//! The host's dimension of walks: its table translates the addresses of the guest's tables, and of its pages.

use model::Bytes;

use crate::setting::shift;
use crate::tlb::sets::Sets;
use crate::walk::radix::{HOST, Radix, Walk, leaf};
use crate::walk::scatter::Given;
use crate::walk::spec::WalkerSpec;

/// The host's dimension of a walker.
#[derive(Clone, Debug)]
pub(crate) struct Nested {
    table: Radix,
    /// Of the host's pages: address bits, and the level of the entries that map them.
    bits: u32,
    leaf: u8,
    /// The nested TLB, of the host's pages.
    tlb: Sets<u64>,
    frames: Option<Given>,
}

impl Nested {
    pub(crate) fn new(spec: &WalkerSpec, page: Bytes) -> Self {
        let bits = shift(page);
        Self {
            table: Radix::new(spec.host_levels, spec.caches),
            bits,
            leaf: leaf(bits),
            tlb: Sets::new(1, spec.nested_tlb),
            frames: spec.scatter.map(Given::new),
        }
    }

    /// Does the nested TLB know the page of a guest's page table? From now on it does.
    pub(crate) fn knows(&mut self, address: u64) -> bool {
        // The tag 0 stands for an empty way.
        self.tlb.touch(0, (address >> self.bits) + 1)
    }

    /// Where the guest's base page with an address lies in its memory.
    pub(crate) fn frame(&mut self, address: u64) -> u64 {
        self.frames.as_mut().map_or(address, |frames| frames.place(address))
    }

    /// The entries that a walk for an address reads.
    pub(crate) fn walk(&mut self, address: u64) -> impl Iterator<Item = u64> + use<> {
        let walk = Walk {
            address,
            leaf: self.leaf,
        };
        let first = self.table.first_level(walk);
        walk.levels(first).map(move |level| HOST + walk.offset(level))
    }
}
