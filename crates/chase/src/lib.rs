//! Memory arenas by page kind, pointer rings, timed kernels, clocks and counters: the part that touches memory and time.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(unsafe_code)] // The measuring core; every block says why it is sound.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("hugewise measures x86-64 Linux machines; other machines can be read from a capture, but not built on");

pub mod alarm;
pub mod arena;
pub mod block;
mod child;
pub mod clock;
pub mod counters;
pub mod kernel;
pub mod kernelops;
pub mod order;
pub mod ring;
mod shuffle;
mod syscall;
pub mod thread;
pub mod tlbwalk;

pub use syscall::Mapping;
