//! What to find out of a TLB, and with what.

use model::tlb::Known;
use model::{Bytes, PageKind};

#[derive(Clone, Debug)]
pub struct Spec {
    /// Page kinds, each looked at by itself; the first two are also tested for sharing.
    pub kinds: Vec<PageKind>,
    /// Fewer passes and less time: under ten seconds rather than thirty.
    pub quick: bool,
    /// The CPU to pin to; the current one if `None`.
    pub cpu: Option<u32>,
    /// Most memory that may be taken, page tables included.
    pub memory: Bytes,
    /// Does this machine say that it is virtual? Decides between "1G" and "none".
    pub in_vm: bool,
    /// Is its CPU emulated in software? Then times show the emulator's tables, and nothing of the host's pages.
    pub is_emulated: bool,
    /// What CPUID and the CPU table say, to stand beside what is found.
    pub known: Vec<Known>,
}
