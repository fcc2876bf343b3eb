//! Programs of others: started, waited for, watched, counted, stopped and ended with all that descends from them.
//!
//! A guardian knows of every process that is started here, and ends it if this process is killed.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod capture;
mod cgroup;
mod due;
mod ended;
mod guard;
pub mod halt;
mod handles;
mod lay;
mod outputs;
mod process;
pub mod rights;
mod segments;
mod spawn;
pub mod steps;
mod syscall;
pub mod tree;
mod used;
mod watch;

pub use chase::thread::cpu_time;
pub use ended::{Counts, Cpu, Ended};
pub use guard::{at_end, guarded};
pub use handles::{Handles, handle, has_ended_within};
pub use outputs::{KEPT, Outputs};
pub use process::{Done, Process, WaitError};
pub use spawn::{Bound, Failure, Order, Output, Recorders, Step, find};
pub use syscall::ThpSwitch;
pub use watch::{Attention, Seen, Walk, Watch, migrations, walk};
