//! Changes to guest page tables, reduced to what the hypervisor's MMU sees of them: the ring-0 side of four well-known
//! microbenchmarks of operating systems (fault and handler, process switch, process creation, fork and wait).
//!
//! Physical addresses of everything touched here are also virtual ones (`layout`), but for the leaf table of the work
//! area, which has an alias.

use crate::boot::Ring;
use crate::layout;
use crate::pagetable::Levels;
use crate::payload::{between, name};

/// One kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Unmaps a page, flushes it, maps it again and reads it.
    Remap,
    /// Loads another root and reads a page, and back: two switches of address space.
    Switch,
    /// Reads a page that is not mapped, at CPL 3; the handler skips the load and returns.
    Fault,
    /// Builds an address space of 8 pages, enters it, reads them, leaves and clears it.
    Create,
    /// Duplicates an address space of 64 pages write-protected, stores once in the copy (one copy-on-write fault), goes back
    /// and lifts the protection.
    Duplicate,
}

impl Op {
    pub const ALL: [Self; 5] = [Self::Remap, Self::Switch, Self::Fault, Self::Create, Self::Duplicate];

    /// At which privilege its kernel runs.
    pub fn ring(self) -> Ring {
        match self {
            Self::Fault => Ring::User,
            Self::Remap | Self::Switch | Self::Create | Self::Duplicate => Ring::Kernel,
        }
    }

    /// Its kernel: a turn is one operation.
    pub fn code(self) -> &'static [u8] {
        match self {
            Self::Remap => between!(hugewise_vm_remap, hugewise_vm_remap_end),
            Self::Switch => between!(hugewise_vm_switch, hugewise_vm_switch_end),
            Self::Fault => between!(hugewise_vm_fault, hugewise_vm_fault_end),
            Self::Create => between!(hugewise_vm_create, hugewise_vm_create_end),
            Self::Duplicate => between!(hugewise_vm_duplicate, hugewise_vm_duplicate_end),
        }
    }

    /// The page fault handler that it needs.
    pub fn handler(self) -> Option<&'static [u8]> {
        match self {
            Self::Fault => Some(between!(hugewise_vm_skip, hugewise_vm_skip_end)),
            Self::Duplicate => Some(between!(hugewise_vm_copy, hugewise_vm_copy_end)),
            Self::Remap | Self::Switch | Self::Create => None,
        }
    }

    /// Where it works, for [`crate::Job::start`].
    pub fn start(self, levels: Levels) -> u64 {
        match self {
            Self::Fault => layout::work(levels) + layout::WORK_LEN,
            Self::Remap | Self::Switch | Self::Create | Self::Duplicate => layout::work(levels),
        }
    }
}

/// Bits of an entry that leads on or to a page: present, writable, user, accessed, dirty.
const OPEN: u64 = 0b110_0111;

/// A new root: a copy of the old one, but for the entry of the work area, which leads through new tables to an empty leaf
/// table. With five levels (the work area is at bit 48 then) there is one table more on the way. r9 = the work area.
macro_rules! build {
    () => {
        "
        mov esi, {second}
        mov edi, {root}
        mov ecx, 512
        rep movsq
        mov eax, {upper}
        mov edx, {directories}
        bt r9, 48
        cmovnc eax, edx
        mov [{root} + 8], rax
        mov eax, {directories}
        mov [{upper} - {open}], rax
        mov eax, {directory}
        mov [{directories} - {open}], rax
        mov eax, {leaf}
        mov [{directory} - {open}], rax
        "
    };
}

/// Those tables, empty again.
macro_rules! clear {
    () => {
        "
        xor eax, eax
        mov edi, {root}
        mov ecx, 5 * 512
        rep stosq
        "
    };
}

core::arch::global_asm!(
    // Kernels: rdi = address in the work area, rsi = turns.
    ".p2align 6",
    name!("hugewise_vm_remap"),
    "mov r8d, {leaves}",
    "2:",
    "mov rax, [r8]",
    "mov qword ptr [r8], 0", // unmapped
    "invlpg [rdi]",
    "mov [r8], rax", // mapped again
    "mov rax, [rdi]",
    "dec rsi",
    "jnz 2b",
    "mov rax, rdi",
    "ret",
    name!("hugewise_vm_remap_end"),
    ".p2align 6",
    name!("hugewise_vm_switch"),
    "mov r8, cr3",
    "mov r9d, {second}",
    "3:",
    "mov cr3, r9",
    "mov rax, [rdi]",
    "mov cr3, r8",
    "mov rax, [rdi]",
    "dec rsi",
    "jnz 3b",
    "mov rax, rdi",
    "ret",
    name!("hugewise_vm_switch_end"),
    ".p2align 6",
    name!("hugewise_vm_fault"),
    "4:",
    ".byte 0x48, 0x8b, 0x07", // mov rax, [rdi], in the 3 bytes that the handler skips
    "dec rsi",
    "jnz 4b",
    "mov rax, rdi",
    "ret",
    name!("hugewise_vm_fault_end"),
    // Its handler: drop the error code, step over the load.
    ".p2align 6",
    name!("hugewise_vm_skip"),
    "add rsp, 8",
    "add qword ptr [rsp], 3",
    "iretq",
    name!("hugewise_vm_skip_end"),
    ".p2align 6",
    name!("hugewise_vm_create"),
    "mov r8, cr3",
    "mov r9, rdi",
    "mov r10, rsi",
    "5:",
    build!(),
    "mov eax, {frames}",
    "xor ecx, ecx",
    "6:",
    "mov [{leaf} - {open} + rcx * 8], rax",
    "add eax, 4096",
    "inc ecx",
    "cmp ecx, 8",
    "jne 6b",
    "mov eax, {root}",
    "mov cr3, rax",
    "mov rdx, r9",
    "7:",
    "mov rax, [rdx]",
    "add rdx, 4096",
    "dec ecx",
    "jnz 7b",
    "mov cr3, r8",
    clear!(),
    "dec r10",
    "jnz 5b",
    "mov rax, r9",
    "ret",
    name!("hugewise_vm_create_end"),
    ".p2align 6",
    name!("hugewise_vm_duplicate"),
    "mov r8, cr3",
    "mov r9, rdi",
    "mov r10, rsi",
    "8:",
    build!(),
    "mov edx, {leaves}",
    "xor ecx, ecx",
    "9:", // every leaf: protected in the original, copied
    "and qword ptr [rdx + rcx * 8], -3",
    "mov rax, [rdx + rcx * 8]",
    "mov [{leaf} - {open} + rcx * 8], rax",
    "inc ecx",
    "cmp ecx, 64",
    "jne 9b",
    "mov eax, {root}",
    "mov cr3, rax",
    "mov [r9], rax", // the copy-on-write fault
    "mov cr3, r8",
    "xor ecx, ecx",
    "22:", // the copy ends, the original may write again
    "or qword ptr [rdx + rcx * 8], 2",
    "inc ecx",
    "cmp ecx, 64",
    "jne 22b",
    "mov cr3, r8",
    clear!(),
    "dec r10",
    "jnz 8b",
    "mov rax, r9",
    "ret",
    name!("hugewise_vm_duplicate_end"),
    // Its handler: the page gets a frame of its own, writable.
    ".p2align 6",
    name!("hugewise_vm_copy"),
    "push rax",
    "mov eax, {frames}",
    "mov [{leaf} - {open}], rax",
    "invlpg [r9]",
    "pop rax",
    "add rsp, 8",
    "iretq",
    name!("hugewise_vm_copy_end"),
    leaves = const layout::LEAVES,
    second = const layout::SECOND_ROOT,
    root = const layout::NEW_ROOT,
    upper = const layout::NEW_ROOT + 0x1000 + OPEN,
    directories = const layout::NEW_ROOT + 0x2000 + OPEN,
    directory = const layout::NEW_ROOT + 0x3000 + OPEN,
    leaf = const layout::NEW_ROOT + 0x4000 + OPEN,
    frames = const layout::COPY_FRAMES + OPEN,
    open = const OPEN,
);
