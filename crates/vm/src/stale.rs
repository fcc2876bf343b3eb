//! Is a translation still in the TLB? Its page-table entry is changed without a flush: whoever then reads the old page, had it.
//!
//! Where the hardware walks the guest's own tables (EPT, NPT) this tells what the TLB holds. Where the hypervisor shadows
//! them it tells when the hypervisor takes over a change, which is another question; callers must check that first.

use std::time::Duration;

use model::guest::GuestPage;

use crate::churn::Op;
use crate::guest::{Config, Guest, Job, Kernel, Window};
use crate::payload::between;
use crate::visits::Node;
use crate::{Error, Hypervisor, Memory, Ring};

core::arch::global_asm!(
    // rdi = six words: first node, nodes, address of a page-table entry, its other value, an address, room for an answer.
    // One turn whatever rsi says: a second one would find other pages in the TLB.
    ".p2align 6",
    ".global hugewise_vm_stale",
    ".hidden hugewise_vm_stale",
    "hugewise_vm_stale:",
    "mov r8, rdi",
    "mov rdi, [r8]",
    "mov rsi, [r8 + 8]",
    "mov r9, [r8 + 16]",
    "mov r10, [r9]", // the entry as it is
    "mov r11, [r8 + 24]",
    "mov rdx, [r8 + 32]",
    "2:",
    "mov rdi, [rdi]", // node -> next node
    "dec rsi",
    "jnz 2b",
    "mov [r9], r11", // changed behind the TLB's back
    "mfence",        // before anybody walks
    "lfence",
    "mov rcx, [rdx]", // the old page or the new one
    "lfence",
    "mov [r9], r10", // as it was
    "mfence",
    "mov [r8 + 40], rcx",
    "mov rax, r8",
    "ret",
    ".global hugewise_vm_stale_end",
    ".hidden hugewise_vm_stale_end",
    "hugewise_vm_stale_end:",
);

unsafe extern "C" {
    static hugewise_vm_stale: u8;
    static hugewise_vm_stale_end: u8;
}

const DEADLINE: Duration = Duration::from_secs(60);
const PAGE: u64 = 4096;

/// A guest that can change the entries of one window's pages.
pub struct Stale<'m> {
    guest: Guest<'m>,
    memory: Memory<'m>,
    window: &'m Window,
    entries: u64,
    look: Kernel,
    flush: Kernel,
    /// Two pages of the lent memory, as bytes from its start: one of zeros, and one for what the kernel is told.
    other: u64,
    told: u64,
}

impl<'m> Stale<'m> {
    /// A guest over zeroed memory. The window's pages and entries are what is played with; the memory's last two pages must
    /// not be among its frames.
    pub fn new(hypervisor: &Hypervisor, memory: Memory<'m>, window: &'m Window) -> Result<Self, Error> {
        let refuse = |why| Error::Memory {
            start: memory.start(),
            len: memory.len(),
            why,
        };
        let (Some(entries), true) = (window.entries, memory.len() > 2 * PAGE) else {
            return Err(refuse(
                "it needs three pages, and a window whose entries the guest can change",
            ));
        };
        let mut guest = Guest::new(
            hypervisor,
            &Config {
                memory: Some(memory),
                page: GuestPage::Size4K,
                levels: hypervisor.levels(),
                fresh: 0,
                tables: None,
                windows: std::slice::from_ref(window),
            },
        )?;
        Ok(Self {
            look: guest.load(between!(hugewise_vm_stale, hugewise_vm_stale_end))?,
            flush: guest.load_churn(Op::Switch)?,
            guest,
            memory,
            window,
            entries,
            other: memory.len() - PAGE,
            told: memory.len() - 2 * PAGE,
        })
    }

    /// Empties the TLB, visits these nodes (at least one, all different) in this order, changes the entry of a page of the
    /// window, and tells whether `node`, which lies in that page and is one of them, is still found in the old one.
    pub fn is_held(&mut self, nodes: &[Node], node: Node) -> Result<bool, Error> {
        for (here, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
            self.memory.store_at(here.offset, next.virt);
        }
        let page = (node.virt - self.window.virt) / self.window.page.size().0;
        let told = [
            nodes.first().map_or(node.virt, |first| first.virt),
            nodes.len().max(1) as u64,
            self.entries + page * 8,
            self.guest.leaf(self.other, self.window.page),
            node.virt,
            0,
        ];
        for (number, word) in told.into_iter().enumerate() {
            self.memory.store_at(self.told + 8 * number as u64, word);
        }
        self.enter(self.flush, Ring::Kernel, Op::Switch.start(self.guest.levels()))?;
        self.enter(self.look, Ring::User, self.memory.start() + self.told)?;
        // Nodes hold addresses, the other page holds zeros.
        Ok(self.memory.word_at(self.told + 40) != 0)
    }

    fn enter(&mut self, kernel: Kernel, ring: Ring, start: u64) -> Result<(), Error> {
        let job = Job {
            kernel,
            ring,
            start,
            turns: 1,
            blocks: 1,
            deadline: DEADLINE,
        };
        self.guest.run(&job).map(|_| ())
    }
}
