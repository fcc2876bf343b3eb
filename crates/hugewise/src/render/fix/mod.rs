//! Plans and what became of them.

pub mod apply;
pub(crate) mod collapse;
pub mod plan;
pub mod size;
pub mod status;
pub mod undo;
pub mod verify;
