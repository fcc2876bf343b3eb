//! How long an out-of-order core takes for the instructions of a window, given how long each of its accesses waits: short waits hide behind long ones, and waits of
//! independent instructions overlap.

mod branches;
mod code;
mod flow;
mod limits;
mod run;
mod timeline;

pub use branches::Branches;
pub use code::{Code, Instruction, LONGEST};
pub use run::{Mispredicted, Run, Timing};
pub use timeline::Wait;

#[cfg(test)]
mod tests;
