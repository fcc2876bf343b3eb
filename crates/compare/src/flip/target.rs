//! What pages are flipped of.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use model::Unread;

/// Whose pages are flipped: a live process, or a made one in tests.
pub(super) trait Target {
    /// Share of a piece that is in memory, from 0 to 1.
    fn used(&mut self, at: u64) -> io::Result<f64>;
    /// Collapses a PMD range into one huge page.
    fn collapse(&mut self, at: u64) -> io::Result<()>;
    /// Asks the kernel to split the huge page of a PMD range; only `large` shows whether it did.
    fn split(&mut self, at: u64) -> io::Result<()>;
    /// Which of the PMD ranges are one huge page each.
    fn large(&mut self, pieces: &[u64]) -> Result<BTreeSet<u64>, Unread>;
    fn now(&self) -> Duration;
    fn pause(&mut self, time: Duration);
}
