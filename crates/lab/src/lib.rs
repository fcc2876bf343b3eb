//! Order, sampling and statistics: sweeps that prove what they measured.

pub mod compare;
pub mod cores;
mod elf;
pub mod flip;
#[doc(hidden)]
pub mod foreign;
pub mod guest;
pub mod kernelops;
pub mod latency;
pub mod preload;
mod progress;
mod rounds;
mod settling;
pub mod tlb;

pub use progress::Progress;
pub use stats;
