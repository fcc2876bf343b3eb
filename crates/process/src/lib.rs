//! Programs of others: started, waited for, watched, counted, stopped and ended with all that descends from them.
//!
//! A guardian knows of every process that is started here, and ends it if this process is killed.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod guard;
pub mod halt;
mod handles;
mod outputs;
mod process;
mod spawn;
mod syscall;
pub mod tree;
mod watch;

pub use outputs::{KEPT, Outputs};
pub use process::{Done, Process, WaitError};
pub use spawn::{Bound, Failure, Order, Step, ThpSwitch};
pub use syscall::Ended;
pub use watch::{Attention, Seen, Watch, cpu_time};
