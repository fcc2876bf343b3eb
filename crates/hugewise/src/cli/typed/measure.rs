//! What was typed after `measure`, word for word; its doc comments are the help texts and the man page.

use clap::{Args, Subcommand, ValueEnum};
use model::guest::GuestPage;
use model::latency::Pattern;
use model::{Bytes, PageKind};

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// Latency by working set and page kind
    Latency(Latency),
    /// What page faults, forks, process switches and mappings cost, natively
    Kernel(Kernel),
    /// The same rings inside a KVM guest: guest page size x host backing
    Guest(Guest),
    /// TLB geometry, walk cost and the host's page size, from timing alone
    Tlb(Tlb),
    /// How far CPUs are from each other, and which of them share a core
    Cores(Cores),
}

/// `hugewise measure latency`
#[derive(Args, Debug)]
pub struct Latency {
    /// Page kinds [default: base, thp, and hugetlb-2M where the kernel has it]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..")]
    pub pages: Vec<PageKind>,
    /// Smallest working set [default: 16K]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub from: Option<Bytes>,
    /// Largest working set [default: 2G or a quarter of the available memory, whichever is less]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub to: Option<Bytes>,
    /// Just these working sets instead of two per doubling
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub sizes: Vec<Bytes>,
    /// Orders of visits: random-line, line-per-page (TLB-bound), page-random, stride-SIZE
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PATTERN,..",
        default_value = "random-line"
    )]
    pub pattern: Vec<Pattern>,
    /// What a step does to its line
    #[arg(long, value_enum, default_value = "read")]
    pub access: Access,
    /// Time for all points together, such as 30s [default: 10 s for a curve of one page kind]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::meaning::duration)]
    pub budget: Option<std::time::Duration>,
    /// Where it runs, and whose pages it takes
    #[command(flatten)]
    pub placement: Placement,
    /// Draw a plot below the table also where no terminal is
    #[arg(long, overrides_with = "no_plot")]
    pub plot: bool,
    /// No plot below the table
    #[arg(long)]
    pub no_plot: bool,
}

/// `hugewise measure tlb`
///
/// Times one load per page over more and more pages, at many distances, and fits what it sees to sets and ways. Needs no
/// counters and no privilege, and works inside a VM, where CPUID hides the TLBs. What cannot be told is `unknown`.
#[derive(Args, Debug)]
pub struct Tlb {
    /// Page kinds [default: base and thp]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..")]
    pub pages: Vec<PageKind>,
    /// Fewer passes: under 10 seconds instead of 30
    #[arg(long)]
    pub quick: bool,
    /// CPU to run on [default: one that is online and allowed]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Never take pages from a hugetlb pool beyond those that are free already
    #[arg(long)]
    pub no_pool: bool,
}

/// `hugewise measure cores`
///
/// Sends a cache line back and forth between every pair of CPUs, and lets both multiply at the same time: two CPUs that
/// halve each other share a core, whatever the topology says that a hypervisor shows.
#[derive(Args, Debug)]
pub struct Cores {
    /// These CPUs only [default: all that are allowed]
    #[arg(long, value_delimiter = ',', value_name = "N,..")]
    pub cpus: Vec<u32>,
    /// Fewer rounds per pair
    #[arg(long)]
    pub quick: bool,
}

/// `hugewise measure kernel`
///
/// Real processes do what the kernel's memory management has most work with: segv, pcd, nps and fw as in VMware's study
/// of nested paging, page faults of every sort, mmap, exec. Each by one worker, by two, and by one for every CPU.
#[derive(Args, Debug)]
pub struct Kernel {
    /// Just these operations, by name
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub ops: Vec<String>,
    /// Page kinds where they matter [default: base, thp, and hugetlb-2M where the kernel has it]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..")]
    pub pages: Vec<PageKind>,
    /// Workers at the same time, each on a CPU of its own [default: 1, 2, and one for every CPU]
    #[arg(long, value_delimiter = ',', value_name = "N,..", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Vec<u32>,
    /// Idle processes among which pcd creates and destroys others [default: 4000; 1000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub live: Option<u32>,
    /// Memory of a parent that forks [default: 256M; 64M with --quick]
    #[arg(long, value_name = "SIZE")]
    pub resident: Option<Bytes>,
    /// Less of everything: under 6 seconds instead of 20
    #[arg(long)]
    pub quick: bool,
    /// Time for all points together [default: 15s; 4s with --quick]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::meaning::duration)]
    pub budget: Option<std::time::Duration>,
    /// Never take pages from a hugetlb pool beyond those that are free already
    #[arg(long)]
    pub no_pool: bool,
}

/// `hugewise measure guest`
///
/// A tiny KVM guest runs the very loop that is timed natively on the same memory by turns: what differs is translation.
/// Then what first touches, exits and changes to guest page tables cost, with KVM's own counters beside them.
///
/// If it cannot be done it ends with 2 and a message whose first word is stable: no-kvm (no /dev/kvm), kvm-denied (no
/// permission), kvm-lacks (this KVM is too old), kvm-failed, no-guest-page, no-memory, guest-failed (the guest faulted or
/// hung), not-obtained (none of the pages asked for, such as an empty pool), no-cpu, no-watchdog, bad-input.
#[derive(Args, Debug)]
pub struct Guest {
    /// Page sizes of the guest's own tables
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "4K,2M,1G")]
    pub guest_pages: Vec<GuestPage>,
    /// Page kinds behind the guest's memory [default: base, thp, hugetlb-2M and hugetlb-1G where the kernel has them]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..")]
    pub pages: Vec<PageKind>,
    /// Smallest working set [default: 1M]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub from: Option<Bytes>,
    /// Largest working set [default: 1G or a quarter of the available memory, whichever is less]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub to: Option<Bytes>,
    /// Just these working sets, 7 at most
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub sizes: Vec<Bytes>,
    /// Order of visits: random-line, line-per-page (TLB-bound), page-random, stride-SIZE
    #[arg(long, value_name = "PATTERN", default_value = "random-line")]
    pub pattern: Pattern,
    /// What a step does to its line: read or write
    #[arg(long, value_name = "ACCESS", value_parser = crate::cli::meaning::access, default_value = "read")]
    pub access: model::latency::Access,
    /// Time for the timed walks, without set-up and warming [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::meaning::duration)]
    pub budget: Option<std::time::Duration>,
    /// Where it runs, and whose pages it takes
    #[command(flatten)]
    pub placement: Placement,
}

/// Where a measurement runs, and whose pages it takes.
#[derive(Args, Debug)]
pub struct Placement {
    /// CPU to run on [default: one that is online and allowed]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// NUMA node to take the memory from [default: the CPU's own]
    #[arg(long, value_name = "N")]
    pub node: Option<u32>,
    /// Never take pages from a hugetlb pool beyond those that are free already
    #[arg(long)]
    pub no_pool: bool,
}

/// What a step of the chase does to its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// Loads the next pointer
    Read,
    /// Loads the next pointer and stores to the same line
    Write,
    /// Both, as separate points
    Both,
}
