//! bpf(2) for programs at tracepoints, their maps, and the ring that they write into.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use super::code::Instruction;

/// Commands, types and flags of `linux/bpf.h`.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const TRACING: u32 = 26;
const TRACE_RAW_TP: u32 = 23;
/// The kernel loads programs that read its structures only under one of these words. This project's MIT license permits both.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// In the length of a record: it is still being written; it is none.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// The words before a record.
const HEAD: usize = 8;

/// Types of maps.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Kind {
    Hash = 1,
    Array = 2,
    Ring = 27,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    _gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Element {
    fn of(map: &OwnedFd, key: &u32, value: u64) -> Self {
        Self {
            map: number(map),
            _gap: 0,
            key: address(key),
            value,
            flags: 0,
        }
    }
}

/// Up to the type that the program belongs to; what is not named here stays zero.
#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    _log: [u32; 6],
    _name: [u8; 16],
    _interface: u32,
    attach: u32,
    _infos: [u32; 9],
    tracepoint: u32,
}

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    _gap: u32,
}

/// The call, whose result is zero or a new descriptor.
fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are as long as stated, and all that they point to outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attributes), size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}

fn opened<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: it is new, and this is its only owner. The kernel sets its close-on-exec flag.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn address<T: ?Sized>(of: &T) -> u64 {
    ptr::from_ref(of).cast::<u8>().expose_provenance() as u64
}

fn number(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

pub(super) fn map(kind: Kind, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let create = MapCreate {
        kind: kind as u32,
        key,
        value,
        entries,
        flags: 0,
    };
    opened(MAP_CREATE, &create)
}

/// Loads a program of a tracepoint, which has this number among the kernel's types, and lets it run from now on.
pub(super) fn attached(instructions: &[Instruction], tracepoint: u32) -> io::Result<OwnedFd> {
    let load = ProgLoad {
        kind: TRACING,
        count: instructions.len() as u32,
        instructions: address(instructions),
        license: address(LICENSE.to_bytes_with_nul()),
        _log: [0; 6],
        _name: [0; 16],
        _interface: 0,
        attach: TRACE_RAW_TP,
        _infos: [0; 9],
        tracepoint,
    };
    let program = opened(PROG_LOAD, &load)?;
    let open = RawTracepoint {
        name: 0,
        program: number(&program),
        _gap: 0,
    };
    // It holds the program.
    opened(RAW_TRACEPOINT_OPEN, &open)
}

/// Sets an element of a map from numbers to numbers.
pub(super) fn set(map: &OwnedFd, key: u32, value: u32) -> io::Result<()> {
    call(MAP_UPDATE, &Element::of(map, &key, address(&value))).map(drop)
}

/// An element of a map from numbers to counts.
pub(super) fn count(map: &OwnedFd, key: u32) -> io::Result<u64> {
    let value = AtomicU64::new(0);
    call(MAP_LOOKUP, &Element::of(map, &key, address(&value)))?;
    Ok(value.into_inner())
}

/// A ring that the programs write and this process reads.
pub(super) struct Ring {
    map: OwnedFd,
    /// A page with the reader's place.
    read: NonNull<u8>,
    /// A page with the writers' place, and all of the ring twice, so that each record is in one piece.
    written: NonNull<u8>,
    size: usize,
}

// SAFETY: the mappings belong to this value alone; nothing about them is tied to a thread.
unsafe impl Send for Ring {}
// SAFETY: reading takes `&mut`, and nothing else touches the mappings.
unsafe impl Sync for Ring {}

impl Ring {
    pub(super) fn new(size: usize) -> io::Result<Self> {
        let map = map(Kind::Ring, 0, 0, size as u32)?;
        let mapped = |length, access, offset: usize| -> io::Result<NonNull<u8>> {
            // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
            let start = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &map, offset as u64)? };
            NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
        };
        let read = mapped(page_size(), ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let written = mapped(page_size() + 2 * size, ProtFlags::READ, page_size());
        let written = written.inspect_err(|_| unmap(read, page_size()))?;
        Ok(Self {
            map,
            read,
            written,
            size,
        })
    }

    /// Hands out each record in order, and gives how many bytes they took.
    pub(super) fn take(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        // SAFETY: the first word of this page is the reader's place, which only the kernel reads besides.
        let place = unsafe { AtomicU64::from_ptr(self.read.as_ptr().cast()) };
        // SAFETY: the first word of this page is the writers' place. The kernel writes it; this only loads it.
        let end = unsafe { AtomicU64::from_ptr(self.written.as_ptr().cast()) };
        let begin = place.load(Ordering::Relaxed);
        let mut at = begin;
        while at < end.load(Ordering::Acquire) {
            // SAFETY: the ring's bytes begin behind that page, and are mapped twice.
            let head = unsafe { self.written.add(page_size() + (at as usize & (self.size - 1))) };
            // SAFETY: records are aligned to 8 bytes. The kernel writes this word; this only loads it.
            let word = unsafe { AtomicU32::from_ptr(head.as_ptr().cast()) }.load(Ordering::Acquire);
            if word & BUSY != 0 {
                break;
            }
            let length = ((word & !DISCARDED) as usize).min(self.size - HEAD);
            if word & DISCARDED == 0 {
                // SAFETY: a record that is no longer being written stays as it is until the reader's place is behind it.
                each(unsafe { std::slice::from_raw_parts(head.add(HEAD).as_ptr(), length) });
            }
            at += (HEAD + length).next_multiple_of(8) as u64;
            place.store(at, Ordering::Release);
        }
        (at - begin) as usize
    }

    pub(super) fn map(&self) -> i32 {
        self.map.as_fd().as_raw_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        unmap(self.read, page_size());
        unmap(self.written, page_size() + 2 * self.size);
    }
}

fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: the mapping is this value's own, and nothing borrows from it.
    let _ = unsafe { munmap(start.as_ptr().cast(), length) };
}
