//! Why a point has no number.

use std::fmt;

use crate::latency::Backed;
use crate::{Bytes, PageKind, Unread};

/// Why a point has no number. Results carry the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// The kernel, the hypervisor or a worker refused; its answer.
    Refused(String),
    /// What backs the memory could not be proved.
    Unproved(Unread),
    /// The memory is of another kind than asked for.
    FellBack(Backed),
    /// Reads of zeros brought in pages of their own.
    NotTheZeroPage(Backed),
    /// Too many or too few faults: hundredths of a fault for each page, where one was expected.
    OtherFaults(u64),
    /// No sample was left.
    Disturbed {
        /// Samples that were dropped.
        dropped: u64,
        /// Were samples with a changed core clock among those that are dropped?
        by_clock: bool,
    },
    /// One visit alone has no interval.
    OneVisit,
    /// The working set holds no ring of this pattern.
    TooSmall,
    /// Too few CPUs for all workers.
    TooFewCpus {
        /// CPUs needed.
        needed: u32,
        /// CPUs that may be used.
        allowed: usize,
    },
    /// More memory than may be taken without harm.
    TooMuchMemory {
        /// Bytes needed.
        needed: Bytes,
        /// Bytes that may be taken: half of what is available.
        limit: Bytes,
    },
    /// The guest does not run on the bare core.
    Emulated,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(answer) => f.write_str(answer),
            Self::Unproved(why) => write!(f, "the backing could not be proved: {why}"),
            Self::FellBack(Backed { asked, got, proof }) => {
                write!(f, "expected {asked}, got {got} by {proof}{}", advice(*asked))
            }
            Self::NotTheZeroPage(Backed { got, proof, .. }) => write!(
                f,
                "reading brought in pages of its own ({got} by {proof}), not the shared page of zeros"
            ),
            Self::OtherFaults(hundredths) => write!(
                f,
                "{}.{:02} faults for each page where one was expected: some pages were of another kind",
                hundredths / 100,
                hundredths % 100
            ),
            Self::Disturbed { dropped, by_clock } => {
                let how = match by_clock {
                    true => "disturbed (switched out, or the core clock changed)",
                    false => "switched out",
                };
                write!(f, "all {dropped} samples were {how}; repeat on a quieter machine")
            }
            Self::OneVisit => {
                f.write_str("only one visit gave samples, which has no interval; give more time with --budget")
            }
            Self::TooSmall => f.write_str("the working set is too small for this pattern"),
            Self::TooFewCpus { needed, allowed } => write!(f, "needs {needed} CPUs, and {allowed} may be used"),
            Self::TooMuchMemory { needed, limit } => write!(
                f,
                "needs {needed} of memory, and {limit} (half of what is available) may be taken without harm"
            ),
            Self::Emulated => f.write_str("the guest is emulated: see the warning of that name"),
        }
    }
}

/// Where to look if the kernel does not grant pages of a kind.
fn advice(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Thp => {
            "; check /sys/kernel/mm/transparent_hugepage/enabled (never refuses THP) and free contiguous memory"
        }
        PageKind::Mthp(_) => "; check /sys/kernel/mm/transparent_hugepage/hugepages-*/enabled of that size",
        PageKind::Base | PageKind::Hugetlb(_) => "",
    }
}
