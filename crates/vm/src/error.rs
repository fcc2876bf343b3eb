//! What can go wrong with a guest, each with what to do about it.

use std::io;

use model::guest::GuestPage;

use crate::pagetable::MapError;

/// Why a guest could not be made or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No `/dev/kvm`.
    #[error(
        "there is no /dev/kvm: load kvm_intel or kvm_amd, or, inside a VM, have nested virtualization switched on for it"
    )]
    Absent,
    /// `/dev/kvm` is there, but not for this user.
    #[error("/dev/kvm may not be opened by this user: join the group that owns it (mostly `kvm`), or run with sudo")]
    Denied,
    /// `/dev/kvm` could not be opened for another reason.
    #[error("/dev/kvm cannot be opened: {0}; is another hypervisor using the CPU's virtualization?")]
    Open(#[source] io::Error),
    /// A KVM that speaks another API.
    #[error("this kernel's KVM speaks API version {0}, not 12: it is too old for hugewise")]
    Api(i32),
    /// KVM lacks something that is needed.
    #[error("this kernel's KVM lacks {0}, which the guest needs: use a newer kernel")]
    Capability(&'static str),
    /// The virtual CPU cannot map pages of this size.
    #[error(
        "KVM offers its guests no {0} pages on this machine (they are not among the CPU features it supports, mostly so under shadow paging); leave them out with --guest-pages"
    )]
    GuestPage(GuestPage),
    /// A call to KVM failed.
    #[error("KVM refused to {what}: {source}")]
    Call {
        /// What was asked of it, as an infinitive.
        what: &'static str,
        source: io::Error,
    },
    /// Memory for the guest's own code and tables.
    #[error("{bytes} bytes for the guest's code and page tables cannot be allocated: {source}")]
    OutOfMemory { bytes: u64, source: io::Error },
    /// Memory that cannot be given to a guest.
    #[error("memory at {start:#x} of {len:#x} bytes cannot be given to a guest: {why}")]
    Memory {
        /// First address.
        start: u64,
        len: u64,
        why: &'static str,
    },
    /// The page tables cannot be built.
    #[error(transparent)]
    Tables(#[from] MapError),
    /// More code or more blocks than there is room for.
    #[error("{what}: {asked} asked for, {most} is the most")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        asked: u64,
        most: u64,
    },
    /// An exception in the guest, which has no handler for it.
    #[error("the guest faulted at instruction {rip:#x} (last page fault address {cr2:#x})")]
    Faulted { rip: u64, cr2: u64 },
    /// The guest left in a way that it should not.
    #[error("the guest left unexpectedly at instruction {rip:#x}: {exit}")]
    Exit {
        rip: u64,
        /// KVM's name for the exit.
        exit: String,
    },
    /// The guest did not come back in time.
    #[error(
        "the guest did not finish within {0:?} and was stopped; a busier or slower machine needs a smaller working set"
    )]
    Stuck(std::time::Duration),
    /// The timer that watches the guest could not be set.
    #[error("the watchdog over the guest cannot be set: {0}")]
    Watchdog(#[source] io::Error),
    /// KVM's statistics have another form than the kernel documents.
    #[error("KVM's statistics are garbled: {0}")]
    Stats(String),
}

impl Error {
    /// A stable word for scripts: what kind of obstacle this is.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Absent => "no-kvm",
            Self::Denied => "kvm-denied",
            Self::Api(_) | Self::Capability(_) => "kvm-lacks",
            Self::GuestPage(_) => "no-guest-page",
            Self::Open(_) | Self::Call { .. } | Self::Stats(_) => "kvm-failed",
            Self::OutOfMemory { .. } | Self::Memory { .. } => "no-memory",
            Self::Faulted { .. } | Self::Exit { .. } | Self::Stuck(_) => "guest-failed",
            Self::Tables(_) | Self::TooMuch { .. } => "bad-input",
            Self::Watchdog(_) => "no-watchdog",
        }
    }

    /// Turns a failed call into an error, for `map_err`.
    pub(crate) fn call(what: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> Self {
        move |source| Self::Call {
            what,
            source: io::Error::from_raw_os_error(source.errno()),
        }
    }
}
