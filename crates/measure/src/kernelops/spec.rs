//! What to measure of the kernel's operations, and the program that does them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use model::Bytes;
use model::kernelops::Op;

use super::worker::ASKED;

#[derive(Clone, Debug)]
pub struct Spec {
    /// The operations; [`usual`](super::usual) has them all.
    pub ops: Vec<Op>,
    /// Numbers of workers that do each of them at the same time.
    pub workers: Vec<u32>,
    /// CPUs that may be used, in the order in which workers take them.
    pub cpus: Vec<u32>,
    /// Time for everything, set-up included. Every point is visited twice, even if that takes longer.
    pub budget: Duration,
    /// Seed of the order of visits.
    pub seed: u64,
    /// Memory that may be taken without harm (MemAvailable).
    pub available: Bytes,
    /// How to start a worker.
    pub program: Program,
}

/// A program that begins with [`serve_if_asked`](super::serve_if_asked).
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// The words that make it a worker.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// The program that runs now, even if its file has been replaced since.
    pub fn this() -> Self {
        Self {
            path: "/proc/self/exe".into(),
            arguments: vec![ASKED.into()],
        }
    }
}
