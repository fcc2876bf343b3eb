//! The reasons why memory is on base pages, and their words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

model::table! {
    /// Why base pages, in the order in which the kernel would refuse. `Display` is the sentence for users.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Reason: (&'static str, &'static str) {
        /// This kernel has no THP, or its settings could not be read.
        PolicyUnread = ("policy not read", "the THP policy could not be read"),
        /// The memory of a device or of the kernel (`io`, `pf`, `mm`, `de`): never transparent.
        Special = ("device or kernel", "memory of a device or of the kernel"),
        /// Page cache: its file system decides, and which one that is, or what it does, is not known.
        OfFile = ("file", "page cache, for which its file system decides"),
        /// Page cache of a file system that keeps it in small pages on this kernel.
        FileSystem = ("file system", "page cache of a file system that keeps it in small pages on this kernel"),
        /// Page cache whose address and whose place in the file differ within a huge page.
        FileUnaligned = (
            "file not aligned",
            "page cache whose address and place in the file differ within a huge page",
        ),
        /// Page cache in small pages: it was read without MADV_HUGEPAGE, or written in small pieces.
        FileNotAdvised = (
            "file not advised",
            "page cache in small pages, as a file is read without MADV_HUGEPAGE or written in small pieces",
        ),
        /// The same in memory that was advised: the file was read or written before that.
        FileCached = (
            "file cached before",
            "page cache in small pages: the file was read before MADV_HUGEPAGE was called, or written in small pieces",
        ),
        /// A private writable mapping of a file: pages that were written are copies, which are base pages.
        FileCopies = ("copies of a file", "copies of a file's pages that the program wrote, which are base pages"),
        /// Shared memory, and the machine's policy for it (`shmem_enabled`) is `never`.
        SharedNever = (
            "shmem never",
            "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) is `never`",
        ),
        /// Shared memory, the policy for it is `advise`, and madvise(MADV_HUGEPAGE) was not called on it.
        SharedNotAdvised = (
            "shmem not advised",
            "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) waits for advice (MADV_HUGEPAGE)",
        ),
        /// ZGC's heap under the policy `advise`: the JVM advises it through mappings that it takes away again, so that its flags do
        /// not show it.
        HeapNotAdvised = (
            "ZGC heap not advised",
            "ZGC's heap, which a JVM with -XX:+UseTransparentHugePages advises as it allocates the memory: shmem_enabled was not yet `advise` then, or the machine's policy was `never` (JDK 17 and 21)",
        ),
        /// A file of a tmpfs such as /dev/shm whose mount has no option `huge=` that allows it.
        OfTmpfs = ("tmpfs huge=", "a file of a tmpfs, whose mount option `huge=` decides"),
        /// A file of a tmpfs with `huge=advise`, and madvise(MADV_HUGEPAGE) was not called on it.
        TmpfsNotAdvised = (
            "tmpfs not advised",
            "a file of a tmpfs with `huge=advise`, and the program did not advise this memory (MADV_HUGEPAGE)",
        ),
        /// madvise(MADV_NOHUGEPAGE) was called on it (`nh`).
        AdvisedAgainst = ("nohugepage", "the program advised against huge pages (MADV_NOHUGEPAGE)"),
        /// prctl(PR_SET_THP_DISABLE) here or in an ancestor.
        SwitchedOff = ("prctl", "switched off for this process or an ancestor (PR_SET_THP_DISABLE)"),
        /// The machine's policy is `never`.
        PolicyNever = ("policy never", "the machine's policy is `never`"),
        /// The machine's policy is `madvise`, and madvise(MADV_HUGEPAGE) was not called on it.
        NotAdvised = (
            "not advised",
            "the machine's policy is `madvise` and the program did not advise this memory (MADV_HUGEPAGE)",
        ),
        /// No aligned block of the PMD size fits in.
        TooSmall = ("too small", "no aligned block of the size of a huge page fits into the mapping"),
        /// Only the unaligned ends are backed by base pages: all that can be large is.
        Ends = ("ends only", "only the unaligned ends are backed by base pages"),
        /// The kernel's flags of the mapping were not read, because that would have held up a large process.
        FlagsUnread = ("flags not read", "not known: reading the flags of so large a process would stall it"),
        /// The kernel says `THPeligible: 0` though nothing above forbids it: since Linux 6.18 that is how a process under
        /// PR_THP_DISABLE_EXCEPT_ADVISED looks.
        NotEligible = (
            "not eligible",
            "the kernel reports it as not eligible, as for a process under PR_THP_DISABLE_EXCEPT_ADVISED (Linux 6.18 and later)",
        ),
        /// Eligible, but not allocated at the page fault (touched before the policy changed, fragmentation, a memory limit) and
        /// not collapsed by khugepaged since.
        NotGiven = (
            "not allocated",
            "eligible, but no huge page was allocated at the fault, and khugepaged has not collapsed it",
        ),
    }
}

impl Reason {
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
        self.row().0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().1)
    }
}
