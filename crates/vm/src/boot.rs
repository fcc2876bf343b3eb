//! The state a virtual CPU starts in: long mode at once, at CPL 3 or at ring 0; no firmware, no real mode.

use kvm_bindings::{kvm_dtable, kvm_regs, kvm_segment, kvm_sregs};

use crate::layout;
use crate::memory::Owned;
use crate::pagetable::Levels;

/// At which privilege a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// CPL 3, at full speed under every kind of KVM.
    User,
    /// CPL 0, for changes to page tables; emulated where KVM works without the CPU's virtualization.
    Kernel,
}

// Selectors of the descriptors in `gdt`.
const KERNEL_CODE: u16 = 0x08;
const KERNEL_DATA: u16 = 0x10;
const USER_DATA: u16 = 0x18 | 3;
const USER_CODE: u16 = 0x20 | 3;
const TASK: u16 = 0x28;

/// Segment types: accessed code that can be read, accessed data that can be written, a busy task.
const CODE: u8 = 0xb;
const DATA: u8 = 0x3;
const BUSY_TASK: u8 = 0xb;

// Control register bits, by their names in the manuals.
const CR0_PE_MP_ET_NE_WP_PG: u64 = 1 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 16 | 1 << 31;
const CR4_PAE_OSFXSR_OSXMMEXCPT: u64 = 1 << 5 | 1 << 9 | 1 << 10;
const CR4_LA57: u64 = 1 << 12;
const EFER_LME_LMA_NXE: u64 = 1 << 8 | 1 << 10 | 1 << 11;

const GDT: u64 = layout::SYSTEM;
const IDT: u64 = layout::SYSTEM + 0x1000;
const TSS: u64 = layout::SYSTEM + 0x2000;
const TSS_LEN: u32 = 0x68;
/// Vectors 0 to 14; the last is the page fault.
const VECTORS: u64 = 15;

/// Special registers for a ring, from what the virtual CPU has after its creation. Without a fault handler there is no
/// interrupt table: any exception ends the guest at once.
pub(crate) fn special(fresh: &kvm_sregs, ring: Ring, root: u64, levels: Levels, handler: bool) -> kvm_sregs {
    let (dpl, code, data) = match ring {
        Ring::User => (3, USER_CODE, USER_DATA),
        Ring::Kernel => (0, KERNEL_CODE, KERNEL_DATA),
    };
    let stack = segment(data, DATA, dpl);
    kvm_sregs {
        cs: segment(code, CODE, dpl),
        ss: stack,
        ds: stack,
        es: stack,
        fs: stack,
        gs: stack,
        tr: task(),
        gdt: table(GDT, 0x37),
        idt: table(IDT, if handler { (VECTORS * 16 - 1) as u16 } else { 0 }),
        cr0: CR0_PE_MP_ET_NE_WP_PG,
        cr2: 0,
        cr3: root,
        cr4: CR4_PAE_OSFXSR_OSXMMEXCPT | if levels == Levels::Five { CR4_LA57 } else { 0 },
        efer: EFER_LME_LMA_NXE,
        ..*fresh
    }
}

/// General registers at the wrapper's first instruction.
pub(crate) fn general(kernel: u64, start: u64, turns: u64, blocks: u64) -> kvm_regs {
    kvm_regs {
        rip: layout::CODE,
        rsp: layout::STACK + layout::STACK_LEN,
        // Bit 1 is always set; interrupts are off, nothing sends one.
        rflags: 2,
        rdi: start,
        rsi: turns,
        rdx: blocks,
        rcx: layout::RESULTS,
        r8: kernel,
        r9: layout::FINISHED,
        ..kvm_regs::default()
    }
}

fn segment(selector: u16, type_: u8, dpl: u8) -> kvm_segment {
    let code = type_ == CODE;
    kvm_segment {
        limit: u32::MAX,
        selector,
        type_,
        dpl,
        present: 1,
        s: 1,
        g: 1,
        // 64-bit code has L and not DB, everything else the reverse.
        l: code.into(),
        db: (!code).into(),
        ..kvm_segment::default()
    }
}

fn task() -> kvm_segment {
    kvm_segment {
        base: TSS,
        limit: TSS_LEN - 1,
        selector: TASK,
        type_: BUSY_TASK,
        present: 1,
        ..kvm_segment::default()
    }
}

fn table(base: u64, limit: u16) -> kvm_dtable {
    kvm_dtable {
        base,
        limit,
        ..kvm_dtable::default()
    }
}

/// Puts the descriptor tables into the guest's own memory, with no handler yet.
pub(crate) fn write_tables(own: &mut Owned) {
    own.write_words(GDT, &gdt());
    own.write_words(TSS, &tss());
}

/// Makes code at `handler` the page fault handler.
pub(crate) fn write_handler(own: &mut Owned, handler: u64) {
    own.write_words(IDT, &idt(handler));
}

/// The words of the global descriptor table: what `special` says, for the CPU to reload on the way into and out of a handler.
fn gdt() -> [u64; 7] {
    let (task_low, task_high) = (
        0x0000_8b00_0000_0000 | (TSS & 0xff_ffff) << 16 | u64::from(TSS_LEN - 1),
        TSS >> 32,
    );
    [
        0,
        0x00af_9b00_0000_ffff, // kernel code
        0x00cf_9300_0000_ffff, // kernel data
        0x00cf_f300_0000_ffff, // user data
        0x00af_fb00_0000_ffff, // user code
        task_low,
        task_high,
    ]
}

/// The words of an interrupt table whose only gate is the page fault's.
fn idt(handler: u64) -> [u64; 2 * VECTORS as usize] {
    let mut gates = [0; 2 * VECTORS as usize];
    let present_interrupt_gate = 0x8e00 << 32;
    let low = handler & 0xffff | u64::from(KERNEL_CODE) << 16 | present_interrupt_gate | (handler >> 16 & 0xffff) << 48;
    gates[28] = low;
    gates[29] = handler >> 32;
    gates
}

/// The words of the task state: only the stack for handlers, which is the lower half of the stack.
fn tss() -> [u64; TSS_LEN as usize / 8] {
    let rsp0 = layout::STACK + layout::STACK_LEN / 2;
    let mut words = [0; TSS_LEN as usize / 8];
    // RSP0 is at byte 4: the upper half of the first word and the lower half of the second.
    words[0] = rsp0 << 32;
    words[1] = rsp0 >> 32;
    words
}

#[cfg(test)]
mod tests {
    use kvm_bindings::kvm_sregs;

    use super::{Ring, gdt, idt, special, tss};
    use crate::pagetable::Levels;

    #[test]
    fn the_payload_runs_at_cpl_3_without_an_interrupt_table() {
        let user = special(&kvm_sregs::default(), Ring::User, 0x40_0000, Levels::Four, false);
        assert_eq!(
            (user.cs.dpl, user.ss.dpl, user.cs.selector & 3, user.cs.l),
            (3, 3, 3, 1)
        );
        assert_eq!((user.idt.limit, user.cr3, user.cr4 & 1 << 12), (0, 0x40_0000, 0));
        let kernel = special(&kvm_sregs::default(), Ring::Kernel, 0x40_0000, Levels::Five, true);
        assert_eq!((kernel.cs.dpl, kernel.idt.limit, kernel.cr4 >> 12 & 1), (0, 239, 1));
    }

    #[test]
    fn descriptors_say_the_same_as_the_registers() {
        let code = gdt()[usize::from(super::USER_CODE) / 8];
        assert_eq!((code >> 40 & 0xf, code >> 45 & 3, code >> 53 & 1), (0xb, 3, 1));
        let gates = idt(0x1234_5678_9abc_def0);
        assert_eq!(gates[28], 0x9abc_8e00_0008_def0);
        assert_eq!(gates[29], 0x1234_5678);
        assert_eq!(tss()[0] >> 32, 0x12_2000);
    }
}
