//! Asks the machine what decides its page sizes: everything is read through a [`Source`], nothing is ever written.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod config;
pub mod cpu_list;
pub mod distance;
pub mod evidence;
pub mod glob;
pub mod input;
pub mod membership;
mod parse;
pub mod processes;
pub mod programs;
pub mod record;
pub mod room;
pub mod snapshot;
pub mod source;
mod spread;
mod syscall;
pub mod threads;
pub mod tree;
pub mod vms;

pub use cpu_list::CpuList;
pub use distance::Distances;
pub use evidence::{Applied, Evidence};
pub use input::{Input, InputError};
pub use membership::Membership;
pub use record::{Capture, CaptureOptions, capture};
pub use snapshot::Snapshot;
pub use source::{Source, SourceError};
pub use tree::{Node, Tree, TreeError};
