//! How long a look at a live process may take, and hold it up.

use std::time::Duration;

use model::{Bytes, Cause, Unread};

use super::status::Status;
use crate::Source;

/// How long reading a process may stall it. A captured process cannot be stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A process with more page tables than this is walked in short steps (Linux 6.7 and later) or not at all, because
    /// it cannot map or unmap during a walk. The kernel's own sums took 15 ms of CPU per GiB of base pages on a Zen 4
    /// guest, and 2 MiB of page tables map one GiB.
    pub page_tables_max: Bytes,
    /// A walk in steps ends after this long, wherever it is: 60 GiB of base pages take about 250 ms.
    pub walk_max: Duration,
}

impl Default for Limits {
    /// For reading many processes that were not named.
    fn default() -> Self {
        Self {
            page_tables_max: Bytes::mib(2),
            walk_max: Duration::from_millis(250),
        }
    }
}

impl Limits {
    /// For one process that was named: up to 4 GiB of base pages in one pass.
    pub const PATIENT: Self = Self {
        page_tables_max: Bytes::mib(8),
        walk_max: Duration::from_secs(2),
    };

    /// May the kernel walk all of it in one go? The error says what that would cost.
    pub(super) fn allow_whole(self, source: &Source, pid: u32, status: &Status) -> Result<(), Unread> {
        match status.page_tables.known() {
            Some(&tables) if source.is_live() && tables > self.page_tables_max => Err(Unread::new(
                Cause::Failed,
                format!("/proc/{pid}/smaps"),
                format!("left out: walking {tables} of page tables at once would hold up the process"),
            )),
            _ => Ok(()),
        }
    }
}

/// Has this kernel no call for steps?
pub(super) fn is_without_steps(why: &Unread) -> bool {
    why.unread == Cause::Failed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Bytes, Cause};

    use super::Limits;
    use crate::Source;
    use crate::processes::areas::counted_within;
    use crate::processes::list::list_within;
    use crate::processes::one_within;

    /// No page tables are few enough to be walked at once, and no time is left for steps.
    const NOTHING: Limits = Limits {
        page_tables_max: Bytes(0),
        walk_max: Duration::ZERO,
    };

    #[test]
    fn a_walk_ends_at_its_bound_and_says_how_far_it_came() {
        let (source, pid) = (Source::live(), std::process::id());
        let listed = list_within(&source, NOTHING, Bytes(0)).into_result().expect("a list");
        let row = listed.into_iter().find(|row| row.pid == pid).expect("this process");
        let alone = one_within(&source, pid, NOTHING).into_result().expect("this process");
        let mapped = counted_within(&source, pid, NOTHING);
        for why in [row.backing.unread(), alone.backing.unread(), mapped.unread()] {
            let why = why.expect("cut short");
            // Before Linux 6.7 there are no steps, and all of it is left out.
            let said = match why.unread {
                Cause::Timeout => "stopped after 0ns: 0B of ",
                _ => "would hold up the process",
            };
            assert!(why.why.contains(said), "{why}");
        }
        assert!(row.resident.known().is_some(), "what costs nothing is still reported");
    }
}
