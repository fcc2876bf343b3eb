//! Asks the machine what decides its page sizes: everything is read through a [`Source`], nothing is ever written.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod accounts;
mod balloon;
pub mod cpu_list;
pub mod cpuid;
pub mod distance;
pub mod glob;
pub mod groups;
pub mod input;
pub mod membership;
pub mod mountinfo;
pub mod parse;
pub mod processes;
pub mod room;
pub mod shm;
pub mod snapshot;
pub mod source;
pub mod spread;
mod syscall;
pub mod threads;
pub mod tree;
pub mod writers;

/// A copy of this process, without its threads and files.
pub mod copy {
    pub use crate::source::is_reader;
    pub use crate::syscall::{Blocked, fork, keep_only, only_file};
}

pub use accounts::Accounts;
pub use balloon::reports_free_pages;
pub use cpu_list::CpuList;
pub use distance::Distances;
pub use input::{Input, InputError};
pub use membership::Membership;
pub use snapshot::Snapshot;
pub use source::{Source, SourceError};
pub use tree::{Node, Tree, TreeError};
