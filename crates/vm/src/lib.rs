//! A tiny KVM guest without an operating system: it runs given machine code over given host memory and times it.
//!
//! The guest's page tables map its memory at the very addresses the host uses, so that a ring of pointers built
//! natively can be walked by the same bytes on both sides; what differs is translation alone.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(unsafe_code)] // KVM's memory slots and the guest's memory are raw memory by nature.

pub mod beside;
mod boot;
pub mod churn;
mod error;
mod guest;
mod hypervisor;
mod layout;
mod memory;
pub mod pagetable;
pub mod payload;
mod plan;
pub mod stats;
mod syscall;

pub use boot::Ring;
pub use error::Error;
pub use guest::{Done, Guest, Job, Kernel};
pub use hypervisor::Hypervisor;
pub use layout::MOST_BLOCKS;
pub use memory::Memory;
pub use plan::Config;
