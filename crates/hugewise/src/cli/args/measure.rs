//! Arguments of `measure` as typed. Their doc comments are the help texts and the man page.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use model::guest::GuestPage;
use model::latency::{self, Pattern};
use model::{Bytes, PageKind};

use crate::cli::values::page_kind;

/// Measurements.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// Measure latency by working set and page kind
    ///
    /// Times dependent loads in random order, on memory whose backing is proved. Each point has a 95 % CI, or a bound if it
    /// did not converge, or the reason why there is no number.
    Latency(Latency),
    /// Measure page faults, forks, process switches and mappings by page kind
    ///
    /// Runs real processes that load the kernel's memory management most: segv, pcd, nps and fw as in VMware's study of
    /// nested paging, page faults of every sort, mmap, exec. Each runs with one worker, two, and one for every CPU.
    Kernel(Kernel),
    /// Measure latency inside a KVM guest: guest page size by host backing
    ///
    /// A tiny KVM guest and the native process alternately run the same loop on the same memory, so only translation
    /// differs. First touches, exits and changes to guest page tables are timed too, with KVM's own counters beside
    /// them.
    ///
    /// If it cannot run, it exits with 2 and a message whose first word is stable: no-kvm (no /dev/kvm), kvm-denied (no
    /// permission), kvm-lacks (this KVM is too old), kvm-failed, no-guest-page, no-memory, guest-failed (the guest
    /// faulted or hung), not-obtained (none of the requested page kinds), no-cpu, no-watchdog, bad-input.
    Guest(Guest),
    /// Measure TLB geometry, walk cost and the host's page size, from timing alone
    ///
    /// Times one load a page over more and more pages, at many distances, and fits sets and ways to the costs. Needs no
    /// counters and no privilege, and works inside a VM, where CPUID masks the TLBs. What timing cannot show is `unknown`.
    Tlb(Tlb),
    /// Measure how far CPUs are apart, and which share a core
    ///
    /// Sends a cache line back and forth between every pair of CPUs, and lets both multiply at the same time. Two CPUs that
    /// halve each other's speed share a core, whatever topology a hypervisor shows.
    Cores(Cores),
    /// Measure the cost of moving a program to another CPU
    ///
    /// A thread reads and writes its memory on one CPU, is moved, and reads and writes it once on the other. The extra
    /// time of this pass over one before the move is the cost, by distance of the move and by memory size. Each cost
    /// has a 95 % CI, or a bound if visits disagree. Kinds of moves that this machine does not have are named.
    Migration(Migration),
}

/// Arguments of `hugewise measure migration`.
#[derive(Args, Debug)]
pub struct Migration {
    /// Move between these CPUs only [default: all that are allowed]
    #[arg(long, value_delimiter = ',', value_name = "N,..")]
    pub cpus: Vec<u32>,
    /// Use this much memory [default: 16K to the last-level cache, by factors of four]
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub sizes: Vec<Bytes>,
    /// Back the memory with base or thp pages
    #[arg(long, value_name = "KIND", default_value = "base", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["base", "thp"]).try_map(|kind| kind.parse::<PageKind>()))]
    pub pages: PageKind,
    /// Limit the time of all points together [default: 20s; 4s with --quick]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// Measure less of everything: under 6 seconds
    #[arg(long)]
    pub quick: bool,
}

/// Arguments of `hugewise measure latency`.
#[derive(Args, Debug)]
pub struct Latency {
    /// Measure these page kinds [default: base, thp, and hugetlb-2M if available]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..", value_parser = page_kind)]
    pub pages: Vec<PageKind>,
    /// Start at this working set [default: 16K]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub from: Option<Bytes>,
    /// End at this working set [default: 2G, or a quarter of available memory]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub to: Option<Bytes>,
    /// Measure just these working sets instead of two per doubling
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub sizes: Vec<Bytes>,
    /// Visit in this order: random-line, line-per-page, page-random, stride-SIZE
    ///
    /// random-line visits every line once. line-per-page visits one line of each page, which is almost pure translation.
    /// page-random visits pages in sequence, with hardly any translation.
    ///
    /// stride-SIZE visits one line every SIZE bytes, in ascending order, which prefetchers fetch ahead: at stride-512B an
    /// eighth of the lines. A chase in random order, as memtest's, is random-line.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PATTERN,..",
        default_value = "random-line"
    )]
    pub pattern: Vec<Pattern>,
    /// Read the line, write to it, or both as separate points
    #[arg(long, value_name = "ACCESS", default_value = "read", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["read", "write", "both"]).map(|word| accesses(&word)))]
    // Written so, the type is that of one value.
    pub access: std::vec::Vec<latency::Access>,
    /// Limit the time of all points together [default: 10s for a curve of one page kind]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// Where it runs, and whose pages it takes
    #[command(flatten)]
    pub placement: Placement,
    /// Draw a plot below the table even without a terminal
    #[arg(long, overrides_with = "no_plot")]
    pub plot: bool,
    /// Draw no plot below the table
    #[arg(long)]
    pub no_plot: bool,
}

/// Arguments of `hugewise measure tlb`.
#[derive(Args, Debug)]
pub struct Tlb {
    /// Measure these page kinds [default: base and thp]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..", value_parser = page_kind)]
    pub pages: Vec<PageKind>,
    /// Make fewer passes: under 10 seconds instead of 30
    #[arg(long)]
    pub quick: bool,
    /// Run on this CPU [default: one that is online and allowed]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Never grow a hugetlb pool: use only its free pages
    #[arg(long)]
    pub no_pool: bool,
}

/// Arguments of `hugewise measure cores`.
#[derive(Args, Debug)]
pub struct Cores {
    /// Measure these CPUs only [default: all that are allowed]
    #[arg(long, value_delimiter = ',', value_name = "N,..")]
    pub cpus: Vec<u32>,
    /// Make fewer rounds for each pair
    #[arg(long)]
    pub quick: bool,
}

/// Arguments of `hugewise measure kernel`.
#[derive(Args, Debug)]
pub struct Kernel {
    /// Measure just these operations, by name
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub ops: Vec<String>,
    /// Measure these page kinds, where they matter [default: base, thp, and hugetlb-2M if available]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..", value_parser = page_kind)]
    pub pages: Vec<PageKind>,
    /// Run this many workers, each on its own CPU [default: 1, 2, and one for every CPU]
    #[arg(long, value_delimiter = ',', value_name = "N,..", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Vec<u32>,
    /// Keep this many idle processes beside those of pcd [default: 4000; 1000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub live: Option<u32>,
    /// Give a parent that forks this much memory [default: 256M; 64M with --quick]
    #[arg(long, value_name = "SIZE")]
    pub resident: Option<Bytes>,
    /// Measure less of everything: under 6 seconds instead of 20
    #[arg(long)]
    pub quick: bool,
    /// Limit the time of all points together [default: 15s; 4s with --quick]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// Never grow a hugetlb pool: use only its free pages
    #[arg(long)]
    pub no_pool: bool,
}

/// Arguments of `hugewise measure guest`.
#[derive(Args, Debug)]
pub struct Guest {
    /// Use these page sizes in the guest's own tables
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "4K,2M,1G")]
    pub guest_pages: Vec<GuestPage>,
    /// Back the guest's memory with these page kinds [default: base, thp, hugetlb-2M, hugetlb-1G]
    #[arg(long, value_delimiter = ',', value_name = "KIND,..", value_parser = page_kind)]
    pub pages: Vec<PageKind>,
    /// Start at this working set [default: 1M]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub from: Option<Bytes>,
    /// End at this working set [default: 1G, or a quarter of available memory]
    #[arg(long, value_name = "SIZE", conflicts_with = "sizes")]
    pub to: Option<Bytes>,
    /// Measure just these working sets, at most 7
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub sizes: Vec<Bytes>,
    /// Visit in this order: random-line, line-per-page, page-random, stride-SIZE
    #[arg(long, value_name = "PATTERN", default_value = "random-line")]
    pub pattern: Pattern,
    /// Read the line, or write to it
    #[arg(long, value_name = "ACCESS", default_value = "read")]
    pub access: latency::Access,
    /// Limit the time of the timed walks, without set-up and warm-up [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// Where it runs, and whose pages it takes
    #[command(flatten)]
    pub placement: Placement,
}

/// Where a measurement runs, and whose pages it takes.
#[derive(Args, Debug)]
pub struct Placement {
    /// Run on this CPU [default: one that is online and allowed]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Take the memory from this NUMA node [default: the CPU's own]
    #[arg(long, value_name = "N")]
    pub node: Option<u32>,
    /// Never grow a hugetlb pool: use only its free pages
    #[arg(long)]
    pub no_pool: bool,
}

/// What a step does to its line; both as separate points.
fn accesses(word: &str) -> Vec<latency::Access> {
    latency::Access::named(word).map_or_else(|| latency::Access::ALL.to_vec(), |one| vec![one])
}
