//! Programs of others: started, waited for, watched, counted, stopped and ended with all that descends from them.
//!
//! Whatever is started here is told to a guardian first, so that it ends with this process even if that is killed.

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
