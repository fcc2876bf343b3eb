//! What backs memory, what is wrong, and why.

pub mod checkup;
pub(crate) mod diff;
pub mod doctor;
pub(crate) mod explain;
mod image;
pub mod inventory;
pub mod ps;
pub(crate) mod unseen;
pub mod verdict;
pub mod vms;
