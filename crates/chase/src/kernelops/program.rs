//! The smallest of programs, so that executing it costs what the kernel does and no more: it ends with a status of its own.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;

/// Its exit code, which proves that it ran.
pub(super) const STATUS: i32 = 42;

const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;
/// `mov edi, STATUS`; `mov eax, 231` (exit_group); `syscall`.
const CODE: [u8; 12] = [0xbf, STATUS as u8, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05];

/// An ELF64 executable of one readable and executable segment (System V ABI, chapters 4 and 5).
pub(super) fn image() -> Vec<u8> {
    let len = HEADERS + CODE.len() as u64;
    let mut image = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // Type EXEC, machine x86-64, version 1.
    image.extend([2u16, 62, 1, 0].into_iter().flat_map(u16::to_le_bytes));
    // Entry, program headers, no section headers.
    image.extend([BASE + HEADERS, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    // Flags (two halves), sizes and numbers of headers: one program header, no section header.
    image.extend([0u16, 0, 64, 56, 1, 64, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // LOAD, read and execute.
    image.extend([1u32, 5].into_iter().flat_map(u32::to_le_bytes));
    // Offset, two addresses, two sizes, alignment.
    image.extend([0, BASE, BASE, len, len, 4096].into_iter().flat_map(u64::to_le_bytes));
    image.extend(CODE);
    image
}

/// The program as a file without a name.
pub(super) fn in_memory() -> io::Result<OwnedFd> {
    let name = "hugewise-program";
    // Since Linux 6.3 a file in memory should say that it is to be executed; kernels before do not know the flag.
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC))?;
    let mut file = File::from(file);
    file.write_all(&image())?;
    Ok(file.into())
}
