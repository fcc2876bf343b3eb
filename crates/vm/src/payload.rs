//! The guest's own machine code, free of relocations: the wrapper that times a kernel, and the small kernels of this crate.
//!
//! Contract of every kernel: `rdi` = where to begin, `rsi` = turns, at least one; returns in `rax` where to go on.
//! It may change `rax`, `rcx`, `rdx`, `rsi`, `rdi`, `r8`-`r11`; it uses no stack but its return address.

use crate::layout;

/// A label of machine code that this program alone sees.
macro_rules! name {
    ($name:literal) => {
        concat!(".global ", $name, "\n.hidden ", $name, "\n", $name, ":")
    };
}
pub(crate) use name;

/// The bytes between two labels of one assembly block.
macro_rules! between {
    ($start:ident, $end:ident) => {{
        unsafe extern "C" {
            static $start: u8;
            static $end: u8;
        }
        let (start, end) = (&raw const $start, &raw const $end);
        // SAFETY: both labels stand in one assembly block, the second after the first; code stays mapped and readable.
        unsafe { std::slice::from_raw_parts(start, end.offset_from_unsigned(start)) }
    }};
}
pub(crate) use between;

core::arch::global_asm!(
    // The wrapper. rdi = first node, rsi = turns per block, rdx = blocks, rcx = results, r8 = kernel, r9 = exit word.
    ".p2align 6",
    name!("hugewise_vm_wrapper"),
    "mov rbx, rsi",
    "mov r12, rdx",
    "mov r13, rcx",
    "mov r14, r8",
    "mov r15, r9",
    "2:",
    "lfence", // nothing of the block before may still be under way
    "rdtsc",
    "lfence", // nor may the block begin before the clock was read
    "shl rdx, 32",
    "or rax, rdx",
    "mov rbp, rax",
    "mov rsi, rbx",
    "call r14",
    "mov rdi, rax", // go on where the block ended
    "lfence",       // the last load has arrived
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, rbp",
    "mov [r13], rax",
    "add r13, 8",
    "dec r12",
    "jnz 2b",
    "mov dword ptr [r15], 0", // there is nothing: out
    "ud2",
    name!("hugewise_vm_wrapper_end"),
    // One load in each of `rsi` small pages from `rdi` on.
    ".p2align 6",
    name!("hugewise_vm_touch"),
    "3:",
    "mov rax, [rdi]",
    "add rdi, 4096",
    "dec rsi",
    "jnz 3b",
    "mov rax, rdi",
    "ret",
    name!("hugewise_vm_touch_end"),
    // `rsi` round trips to this program: a store to the page that is not there.
    ".p2align 6",
    name!("hugewise_vm_ping"),
    "mov r8d, {ping}",
    "4:",
    "mov dword ptr [r8], 1",
    "dec rsi",
    "jnz 4b",
    "mov rax, rdi",
    "ret",
    name!("hugewise_vm_ping_end"),
    // `rsi` times CPUID leaf 0: a round trip to the hypervisor in the kernel where it must intercept it.
    ".p2align 6",
    name!("hugewise_vm_cpuid"),
    "mov r8, rdi",
    "mov r11, rbx", // CPUID overwrites it, the caller wants it back
    "5:",
    "xor eax, eax",
    "xor ecx, ecx",
    "cpuid",
    "dec rsi",
    "jnz 5b",
    "mov rbx, r11",
    "mov rax, r8",
    "ret",
    name!("hugewise_vm_cpuid_end"),
    ping = const layout::PING,
);

/// The wrapper that times kernels and leaves.
pub(crate) fn wrapper() -> &'static [u8] {
    between!(hugewise_vm_wrapper, hugewise_vm_wrapper_end)
}

/// One load in each small page from the start on, ascending; a turn is a page.
pub fn touch() -> &'static [u8] {
    between!(hugewise_vm_touch, hugewise_vm_touch_end)
}

/// Exits to this program and back, through a store to a page that is not there; a turn is a round trip.
pub fn ping() -> &'static [u8] {
    between!(hugewise_vm_ping, hugewise_vm_ping_end)
}

/// CPUID instructions; a turn is one.
pub fn cpuid() -> &'static [u8] {
    between!(hugewise_vm_cpuid, hugewise_vm_cpuid_end)
}
