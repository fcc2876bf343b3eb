//! Programs of others: started, waited for, watched, counted, stopped and ended with all that descends from them.
//!
//! Whatever is started here is told to a guardian first, so that it ends with this process even if that is killed.

mod guard;
pub mod halt;
pub mod handles;
mod outputs;
mod spawn;
pub mod stat;
mod syscall;
pub mod tree;
mod waiting;
mod watch;

pub use guard::Place;
pub use outputs::{KEPT, Outputs};
pub use spawn::{Bound, Failure, Order, Started, Step, ThpSwitch};
pub use syscall::{Ended, peek, wait};
pub use waiting::has_ended_within;
pub use watch::{Seen, Watch, cpu_time};
