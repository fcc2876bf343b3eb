//! A lease of hugetlb pages: room in a pool for as long as the value lives.

use std::fmt;

use model::Bytes;

use crate::error::WriterError;
use crate::gave_back::GaveBack;
use crate::pool_setting::PoolSetting;
use crate::writer::Writer;

/// Room for a number of hugetlb pages, given back when dropped (also on errors and when a panic unwinds).
///
/// It must outlive the mappings that use it: unmap first, then let it go. (In the wrong order nothing breaks, since the
/// kernel never takes pages in use, but pages may stay until they are unmapped.)
#[must_use = "a lease that is dropped at once gives its pages back at once"]
pub struct PoolLease {
    pub(crate) writer: Writer,
    pub(crate) page: Bytes,
    pub asked: u64,
    /// Pages that may be mapped: free ones, and surplus ones that the kernel may now add. The latter it still has to find
    /// when they are mapped, so the mapping itself is the proof.
    pub obtained: u64,
    pub(crate) held: Vec<Held>,
}

/// A share of one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) setting: PoolSetting,
    /// How much of the value is ours.
    pub(crate) pages: u64,
    /// The value without any share of hugewise's.
    pub(crate) base: u64,
    /// The value that our share was added to.
    pub(crate) from: u64,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.setting, self.from, self.from + self.pages)
    }
}

impl PoolLease {
    /// What was changed for it, in words, such as `raised nr_overcommit_hugepages of 2M pages 0 -> 512`.
    pub fn how(&self) -> String {
        if self.held.is_empty() {
            let page = self.page.exact();
            return format!(
                "changed nothing, {} pages of {page} were free in the pool",
                self.obtained
            );
        }
        let steps: Vec<String> = self.held.iter().map(ToString::to_string).collect();
        format!("raised {}", steps.join(", "))
    }

    /// Gives the pages back now and says what came of it. Dropping does the same, silently.
    ///
    /// # Errors
    /// When it cannot be done now; the journal stays, and [`Writer::recover`] of a later run does it.
    pub fn give_back(mut self) -> Result<Vec<GaveBack>, WriterError> {
        self.writer.give_back(&mut self.held)
    }
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        // A failure leaves the journal, and the next run tries again and reports it.
        let _ = self.writer.give_back(&mut self.held);
    }
}

impl fmt::Debug for PoolLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PoolLease({} of {} x {}: {})",
            self.obtained,
            self.asked,
            self.page.exact(),
            self.how()
        )
    }
}
