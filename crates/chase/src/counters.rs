//! Hardware counters of this thread, where the machine has them and lets us; else the reason in words.

pub mod program;
pub mod residency;
pub mod rings;
pub mod switches;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};
use perf_event::{Builder, Counter, Group};

/// Why a count without a single instruction is none.
pub const NOT_BACKED: &str = "the PMU counts no instructions (a virtual PMU that is not backed by a real one)";

/// Counters that were opened together, so that they count over the same time.
pub struct Pmu {
    group: Group,
    instructions: Counter,
    dtlb_misses: Counter,
}

/// Raw counts of one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    /// Data TLB load misses, as the kernel defines `dTLB-load-misses` for this CPU.
    pub dtlb_misses: u64,
}

impl Pmu {
    /// Opens the counters for the calling thread, user mode only.
    ///
    /// # Errors
    /// A sentence that says why there are none and what could be done.
    pub fn open() -> Result<Self, String> {
        let open = || -> std::io::Result<Self> {
            let mut group = Group::new()?;
            let instructions = group.add(&Builder::new(Hardware::INSTRUCTIONS))?;
            let dtlb_misses = group.add(&Builder::new(dtlb_misses()))?;
            Ok(Self {
                group,
                instructions,
                dtlb_misses,
            })
        };
        open().map_err(|error| reason(&error))
    }

    /// Counts what `work` does.
    ///
    /// # Errors
    /// A sentence, if the counters could not be read or were never scheduled.
    pub fn count(&mut self, work: impl FnOnce()) -> Result<Counts, String> {
        let run = || -> std::io::Result<perf_event::GroupData> {
            self.group.reset()?;
            self.group.enable()?;
            work();
            self.group.disable()?;
            self.group.read()
        };
        let data = run().map_err(|error| reason(&error))?;
        let counts = Counts {
            instructions: data[&self.instructions],
            dtlb_misses: data[&self.dtlb_misses],
        };
        // Virtual PMUs are known to answer zero for everything; a stretch without instructions is no count.
        if counts.instructions == 0 {
            Err(NOT_BACKED.to_owned())
        } else {
            Ok(counts)
        }
    }
}

/// Four bytes of a record.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Eight bytes of a record.
fn double(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

fn dtlb_misses() -> Cache {
    Cache {
        which: CacheId::DTLB,
        operation: CacheOp::READ,
        result: CacheResult::MISS,
    }
}

fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "not permitted: lower kernel.perf_event_paranoid to 2 or run with sudo".to_owned()
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine has no hardware counters (in a VM: enable the virtual PMU on the host)".to_owned()
        }
        _ => format!("hardware counters cannot be opened: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Pmu;

    #[test]
    #[allow(clippy::print_stderr)]
    fn counts_or_says_why_not() {
        match Pmu::open() {
            Err(why) => {
                assert!(why.len() > 20);
                testing::skipped(&format!("no hardware counters: {why}"));
            }
            Ok(mut pmu) => match pmu.count(|| {
                crate::kernel::multiply(1000);
            }) {
                Ok(counts) => assert!((16_000..40_000).contains(&counts.instructions), "{counts:?}"),
                Err(why) => testing::skipped(&format!("hardware counters do not count: {why}")),
            },
        }
    }
}
