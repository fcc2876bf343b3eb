//! The reasons why memory is on base pages, and their words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why base pages, in the order in which the kernel would refuse. `Display` is the sentence for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// This kernel has no THP, or its settings could not be read.
    PolicyUnread,
    /// The memory of a device or of the kernel (`io`, `pf`, `mm`, `de`): never transparent.
    Special,
    /// Page cache: its file system decides, and which one that is, or what it does, is not known.
    OfFile,
    /// Page cache of a file system that keeps it in small pages on this kernel.
    FileSystem,
    /// Page cache whose address and whose place in the file differ within a huge page.
    FileUnaligned,
    /// Page cache in small pages: it was read without MADV_HUGEPAGE, or written in small pieces.
    FileNotAdvised,
    /// The same in memory that was advised: the file was read or written before that.
    FileCached,
    /// A private writable mapping of a file: pages that were written are copies, which are base pages.
    FileCopies,
    /// Shared memory, and the machine's policy for it (`shmem_enabled`) is `never`.
    SharedNever,
    /// Shared memory, the policy for it is `advise`, and madvise(MADV_HUGEPAGE) was not called on it.
    SharedNotAdvised,
    /// ZGC's heap under the policy `advise`: the JVM advises it through mappings that it takes away again, so that its flags do
    /// not show it.
    HeapNotAdvised,
    /// A file of a tmpfs such as /dev/shm whose mount has no option `huge=` that allows it.
    OfTmpfs,
    /// A file of a tmpfs with `huge=advise`, and madvise(MADV_HUGEPAGE) was not called on it.
    TmpfsNotAdvised,
    /// madvise(MADV_NOHUGEPAGE) was called on it (`nh`).
    AdvisedAgainst,
    /// prctl(PR_SET_THP_DISABLE) here or in an ancestor.
    SwitchedOff,
    /// The machine's policy is `never`.
    PolicyNever,
    /// The machine's policy is `madvise`, and madvise(MADV_HUGEPAGE) was not called on it.
    NotAdvised,
    /// No aligned block of the PMD size fits in.
    TooSmall,
    /// Only the unaligned ends are backed by base pages: all that can be large is.
    Ends,
    /// The kernel's flags of the mapping were not read, because that would have held up a large process.
    FlagsUnread,
    /// The kernel says `THPeligible: 0` though nothing above forbids it: since Linux 6.18 that is how a process under
    /// PR_THP_DISABLE_EXCEPT_ADVISED looks.
    NotEligible,
    /// Eligible, but not allocated at the page fault (touched before the policy changed, fragmentation, a memory limit) and
    /// not collapsed by khugepaged since.
    NotGiven,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Self; 22] = [
        Self::PolicyUnread,
        Self::Special,
        Self::OfFile,
        Self::FileSystem,
        Self::FileUnaligned,
        Self::FileNotAdvised,
        Self::FileCached,
        Self::FileCopies,
        Self::SharedNever,
        Self::SharedNotAdvised,
        Self::HeapNotAdvised,
        Self::OfTmpfs,
        Self::TmpfsNotAdvised,
        Self::AdvisedAgainst,
        Self::SwitchedOff,
        Self::PolicyNever,
        Self::NotAdvised,
        Self::TooSmall,
        Self::Ends,
        Self::FlagsUnread,
        Self::NotEligible,
        Self::NotGiven,
    ];

    /// Could larger pages back the memory with other settings?
    pub fn can_change(self) -> bool {
        !matches!(
            self,
            Self::PolicyUnread
                | Self::Special
                | Self::OfFile
                | Self::FileSystem
                | Self::FileUnaligned
                | Self::FileCopies
                | Self::TooSmall
                | Self::Ends
        )
    }

    /// In a word or two, for tables.
    pub fn short(self) -> &'static str {
        match self {
            Self::PolicyUnread => "policy not read",
            Self::Special => "device or kernel",
            Self::OfFile => "file",
            Self::FileSystem => "file system",
            Self::FileUnaligned => "file not aligned",
            Self::FileNotAdvised => "file not advised",
            Self::FileCached => "file cached before",
            Self::FileCopies => "copies of a file",
            Self::SharedNever => "shmem never",
            Self::SharedNotAdvised => "shmem not advised",
            Self::HeapNotAdvised => "ZGC heap not advised",
            Self::OfTmpfs => "tmpfs huge=",
            Self::TmpfsNotAdvised => "tmpfs not advised",
            Self::AdvisedAgainst => "nohugepage",
            Self::SwitchedOff => "prctl",
            Self::PolicyNever => "policy never",
            Self::NotAdvised => "not advised",
            Self::TooSmall => "too small",
            Self::Ends => "ends only",
            Self::FlagsUnread => "flags not read",
            Self::NotEligible => "not eligible",
            Self::NotGiven => "not allocated",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PolicyUnread => "the THP policy could not be read",
            Self::Special => "memory of a device or of the kernel",
            Self::OfFile => "page cache, for which its file system decides",
            Self::FileSystem => "page cache of a file system that keeps it in small pages on this kernel",
            Self::FileUnaligned => "page cache whose address and place in the file differ within a huge page",
            Self::FileNotAdvised => {
                "page cache in small pages, as a file is read without MADV_HUGEPAGE or written in small pieces"
            }
            Self::FileCached => {
                "page cache in small pages: the file was read before MADV_HUGEPAGE was called, or written in small pieces"
            }
            Self::FileCopies => "copies of a file's pages that the program wrote, which are base pages",
            Self::SharedNever => {
                "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) is `never`"
            }
            Self::SharedNotAdvised => {
                "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) waits for advice (MADV_HUGEPAGE)"
            }
            Self::HeapNotAdvised => {
                "ZGC's heap, which a JVM with -XX:+UseTransparentHugePages advises only when it allocates the memory: the THP \
                 policy for it (shmem_enabled) has to be `advise` by then"
            }
            Self::OfTmpfs => "a file of a tmpfs, whose mount option `huge=` decides",
            Self::TmpfsNotAdvised => {
                "a file of a tmpfs with `huge=advise`, and the program did not advise this memory (MADV_HUGEPAGE)"
            }
            Self::AdvisedAgainst => "the program advised against huge pages (MADV_NOHUGEPAGE)",
            Self::SwitchedOff => "switched off for this process or an ancestor (PR_SET_THP_DISABLE)",
            Self::PolicyNever => "the machine's policy is `never`",
            Self::NotAdvised => {
                "the machine's policy is `madvise` and the program did not advise this memory (MADV_HUGEPAGE)"
            }
            Self::TooSmall => "no aligned block of the size of a huge page fits into the mapping",
            Self::Ends => "only the unaligned ends are backed by base pages",
            Self::FlagsUnread => "not known: reading the flags of so large a process would stall it",
            Self::NotEligible => {
                "the kernel reports it as not eligible, as for a process under PR_THP_DISABLE_EXCEPT_ADVISED"
            }
            Self::NotGiven => {
                "eligible, but no huge page was allocated at the fault, and khugepaged has not collapsed it"
            }
        })
    }
}
