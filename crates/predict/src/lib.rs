//! What huge pages would save a program, from a trace of it: the windows of its run, replayed on simulated machines.
//!
//! Nothing here reads a file or a clock: a trace is whatever can be read.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod error;
mod history;
mod prediction;
mod replay;
mod seen;
mod stretch;
pub mod trace;

pub use error::ReplayError;
pub use history::history;
pub use prediction::{Prediction, Row, settings};
pub use replay::{Part, Replay, Replayed, replay};
