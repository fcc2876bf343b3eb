//! What huge pages would save a program, from a trace of it: the windows of its run, replayed on simulated machines.
//!
//! Nothing here reads a file or a clock: a trace is whatever can be read.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod calibration;
mod error;
mod history;
mod open;
mod prediction;
mod replay;
mod seen;
mod stretch;
mod time;
pub mod trace;

pub use calibration::{Calibration, Observed};
pub use error::ReplayError;
pub use history::history;
pub use prediction::{Prediction, settings, settings_beside};
pub use replay::{Part, Replay, Replayed, replay};
pub use time::Row;
