//! The timed loops: relocation-free machine code between labels, called natively and copied into a guest unchanged.
//!
//! Contract of the chase kernels: `rdi` = address of a node, `rsi` = steps / [`UNROLL`], at least one; returns in `rax`
//! the node after that many steps. No stack, no memory but the ring; only `rax`, `rcx`, `rdi`, `rsi` are changed.

use model::latency::Access;

/// Steps per turn of the loop: enough that the loop's own two instructions vanish behind a chain of dependent loads.
pub const UNROLL: u64 = 16;

core::arch::global_asm!(
    // One step = one load that needs the previous one.
    ".p2align 6",
    ".globl hugewise_chase_read, hugewise_chase_read_end",
    ".hidden hugewise_chase_read, hugewise_chase_read_end",
    "hugewise_chase_read:",
    "2:",
    ".rept 16",
    "mov rdi, [rdi]", // node -> next node
    ".endr",
    "dec rsi",
    "jnz 2b",
    "mov rax, rdi",
    "ret",
    "hugewise_chase_read_end:",
    // One step = the same load, then a store of the same pointer back: the line becomes dirty, the ring stays.
    ".p2align 6",
    ".globl hugewise_chase_write, hugewise_chase_write_end",
    ".hidden hugewise_chase_write, hugewise_chase_write_end",
    "hugewise_chase_write:",
    "3:",
    ".rept 16",
    "mov rax, [rdi]", // node -> next node
    "mov [rdi], rax", // dirty the line that was just read
    "mov rdi, rax",
    ".endr",
    "dec rsi",
    "jnz 3b",
    "mov rax, rdi",
    "ret",
    "hugewise_chase_write_end:",
    // A clock made of core cycles: dependent multiplications, 3 cycles each on every x86-64 core since 2008.
    // Multiplications, because newer cores rename additions away.
    ".p2align 6",
    ".globl hugewise_multiply",
    ".hidden hugewise_multiply",
    "hugewise_multiply:",
    "mov rax, rdi",
    "4:",
    ".rept 16",
    "imul rax, rdi",
    ".endr",
    "dec rsi",
    "jnz 4b",
    "ret",
    // The same on the ports of floating-point numbers, for an SMT sibling that keeps those of integers busy.
    ".p2align 6",
    ".globl hugewise_multiply_float",
    ".hidden hugewise_multiply_float",
    "hugewise_multiply_float:",
    "mov eax, 1",
    "cvtsi2sd xmm0, eax", // 1.0 stays 1.0 for ever
    "5:",
    ".rept 16",
    "mulsd xmm0, xmm0",
    ".endr",
    "dec rdi",
    "jnz 5b",
    "ret",
);

unsafe extern "sysv64" {
    fn hugewise_chase_read(node: *const u8, turns: u64) -> *const u8;
    fn hugewise_chase_read_end();
    fn hugewise_chase_write(node: *const u8, turns: u64) -> *const u8;
    fn hugewise_chase_write_end();
    fn hugewise_multiply(factor: u64, turns: u64) -> u64;
    fn hugewise_multiply_float(turns: u64);
}

/// Core cycles of one dependent 64-bit multiplication.
pub const MULTIPLY_CYCLES: u64 = 3;

/// Walks `steps` (rounded up to a multiple of [`UNROLL`], at least one turn) from `node` and returns the node reached.
///
/// # Safety
/// `node` must be a node of a closed ring whose nodes all hold the address of another node of it, in memory that stays
/// mapped during the call; for [`Access::Write`] that memory must be writable and not be written by anyone else.
#[inline]
pub unsafe fn walk(access: Access, node: *const u8, steps: u64) -> *const u8 {
    let turns = steps.div_ceil(UNROLL).max(1);
    // SAFETY: the caller vouches for the ring; the kernels touch nothing but its nodes.
    unsafe {
        match access {
            Access::Read => hugewise_chase_read(node, turns),
            Access::Write => hugewise_chase_write(node, turns),
        }
    }
}

/// Multiplies `turns` x [`UNROLL`] times, each needing the one before: a stretch of a known number of core cycles.
#[inline]
pub fn multiply(turns: u64) -> u64 {
    // SAFETY: pure register arithmetic; at least one turn, so that the count does not wrap.
    unsafe { hugewise_multiply(3, turns.max(1)) }
}

/// The same with floating-point numbers, whose cycles differ between CPUs.
#[inline]
pub fn multiply_float(turns: u64) {
    // SAFETY: pure register arithmetic; at least one turn, so that the count does not wrap.
    unsafe { hugewise_multiply_float(turns.max(1)) }
}

/// The bytes of the chase kernel, to run the very same code elsewhere (in a guest).
pub fn bytes(access: Access) -> &'static [u8] {
    let (start, end) = match access {
        Access::Read => (hugewise_chase_read as *const u8, hugewise_chase_read_end as *const u8),
        Access::Write => (hugewise_chase_write as *const u8, hugewise_chase_write_end as *const u8),
    };
    // SAFETY: labels of one assembly block above, in this order: one piece of code, which is mapped readable for ever.
    unsafe { std::slice::from_raw_parts(start, end.offset_from_unsigned(start)) }
}

#[cfg(test)]
mod tests {
    use super::{Access, UNROLL, bytes, multiply, walk};

    fn ring_of(nodes: usize) -> Vec<u64> {
        let mut ring = vec![0u64; nodes];
        let base = ring.as_ptr() as u64;
        for (index, node) in ring.iter_mut().enumerate() {
            *node = base + 8 * ((index as u64 + 1) % nodes as u64);
        }
        ring
    }

    #[test]
    fn both_kernels_go_exactly_that_many_steps_and_leave_the_ring_as_it_was() {
        for access in [Access::Read, Access::Write] {
            let ring = ring_of(1000);
            let before = ring.clone();
            let start = ring.as_ptr().cast::<u8>();
            // SAFETY: `ring_of` closes the ring, and the vector lives on.
            let end = unsafe { walk(access, start, 3 * UNROLL) };
            assert_eq!(end as usize - start as usize, 8 * 3 * UNROLL as usize, "{access}");
            assert_eq!(ring, before);
        }
    }

    #[test]
    fn the_bytes_run_anywhere() {
        let ring = ring_of(1000);
        let before = ring.clone();
        let start = ring.as_ptr().cast::<u8>();
        // Two turns: 32 nodes of 8 bytes on, or the 33rd power of 3.
        let reached = start as u64 + 8 * 2 * UNROLL;
        assert_eq!(multiply(2), 3u64.pow(33));
        for code in [Access::Read, Access::Write].map(bytes) {
            assert_eq!(code.last(), Some(&0xc3), "ends in `ret`");
            let copy = crate::syscall::executable_copy(code).expect("an executable page");
            // SAFETY: the copy has the contract of the kernels; the ring is closed and lives on.
            let run: extern "sysv64" fn(*const u8, u64) -> u64 = unsafe { std::mem::transmute(copy.start()) };
            assert_eq!(run(start, 2), reached);
        }
        assert_eq!(ring, before);
    }
}
