//! Order, sampling and statistics: sweeps that prove what they measured.

pub mod guest;
pub mod kernelops;
pub mod latency;
mod progress;
pub mod stats;

pub use progress::Progress;
