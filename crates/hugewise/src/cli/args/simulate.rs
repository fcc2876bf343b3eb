//! Arguments of `simulate` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Bytes;
use predict::trace::TraceFormat;
use studies::paging::Preset;
use translation::Mode;
use translation::patterns::Pattern;
use translation::study::{Setting, guest_pages};

/// Simulations.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Simulate what address translation costs natively, nested or with shadow paging
    ///
    /// Runs a pattern of accesses through the TLBs, page walks and caches of a machine, for each page size in guest and
    /// host. Reports miss rates, page-table entries read, and cycles by cause. Values without a public source are
    /// swept, and their effect is printed. Nothing is measured, and this machine is not needed.
    Translation(Box<Translation>),
    /// Simulate which virtual CPUs run where and wait how long, under several schedulers
    ///
    /// Runs virtual machines on a host with SMT and NUMA nodes, event by event. Reports CPU time, waits, moves and fairness. The host, the
    /// machines and the costs are in a TOML file. Nothing is measured, and this machine is not needed.
    Scheduler(super::Scheduler),
    /// Simulate memory under overcommit: huge pages, sharing, ballooning and swap under several policies
    ///
    /// Runs the memory of virtual machines on a host, step by step. Reports what backs it, huge pages broken, memory saved, swap traffic and
    /// time lost to translation. The host and the machines are in a TOML file, in a capture, or those of a publication. Nothing is measured.
    Host(super::HostMemory),
}

/// Arguments of `hugewise simulate translation`.
#[derive(Args, Debug)]
pub struct Translation {
    /// Simulate this CPU of the table, or a machine in a TOML file [default: here, this machine's CPU by the table]
    ///
    /// `list` prints the table's CPUs. Each of several machines with each pattern and number of virtual CPUs is a
    /// separate result: a text, or with --json a line.
    #[arg(long, value_delimiter = ',', value_name = "ID|here|FILE.toml|list,..")]
    pub machine: Vec<String>,
    /// Simulate a publication: esx35-large-pages, nehalem-ept, vcf-spr, vcf-icelake or vcf-tlb-table
    ///
    /// Prints each published value beside the simulated one, and whether that was fitted or predicted. Machine, pattern, memory and pages
    /// are those of the publication.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["machine", "pattern", "working_sets", "mode", "vcpus", "pages", "guest_pages", "host_pages", "baseline", "warm_up", "trace", "curve"])]
    pub preset: Option<Preset>,
    /// Use this access pattern: random, chase, zipf, stream, stride, memtest, sparse, btree, gc, heap or churn
    ///
    /// random: independent loads anywhere. chase: a ring through all lines. zipf: popular pages, exponent 0.99. stream and stride: 8 bytes, or
    /// a page and a line, from load to load. memtest: a chain down by 512 bytes, pass by pass through all lines. sparse: a chain through one
    /// line of each 2M. btree: index lookups with a log. gc: objects are marked, then moved. heap: a Java heap of that size in use. churn:
    /// short processes that map, use and unmap 1M each.
    #[arg(long, value_delimiter = ',', value_name = "PATTERN,..", default_value = "random")]
    pub pattern: Vec<Pattern>,
    /// Run the accesses of this trace instead: a file, or a pipe
    ///
    /// valgrind's lackey (--trace-mem=yes), drmemtrace (raw), ChampSim, flat addresses of 8 bytes (little endian), or `hugewise trace`. The
    /// trace is read once, in a bounded part of memory. Unpack compressed traces: `xz -dc FILE | hugewise simulate translation --trace
    /// /dev/stdin`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "working_sets"])]
    pub trace: Option<PathBuf>,
    /// Read the trace as this: lackey, drmemtrace, champsim, u64 or hugewise [default: by its content]
    #[arg(long, value_name = "FORMAT", requires = "trace", conflicts_with_all = ["preset", "pattern", "working_sets", "vcpus"], hide_short_help = true)]
    pub trace_format: Option<TraceFormat>,
    /// Translate the instruction fetches of the trace, too; without it loads and stores alone
    #[arg(long, requires = "trace", conflicts_with_all = ["preset", "pattern", "working_sets", "vcpus"], hide_short_help = true)]
    pub fetches: bool,
    /// Access this much memory
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "64M,1G,16G")]
    pub working_sets: Vec<Bytes>,
    /// Use this translation: native, nested (EPT, NPT) or shadow [default: native, and nested or else shadow]
    #[arg(long, value_delimiter = ',', value_name = "MODE,..")]
    pub mode: Vec<Mode>,
    /// Run this many threads, each on a virtual CPU with its own TLBs [default: 1]
    ///
    /// They belong to one process and share its page tables. An invalidation interrupts all other virtual CPUs (shootdown).
    #[arg(long, value_delimiter = ',', value_name = "N,..", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "trace")]
    pub vcpus: Vec<u16>,
    /// Use pages of these sizes, in the host the same as in the guest [default: all that the CPU has of 4K, 2M and 1G]
    ///
    /// 4K+30% backs 30 % of the aligned 2 MiB ranges by 2M pages and the rest by 4K pages, as on a fragmented machine.
    /// Ranges are chosen at random. The host then has 4K pages.
    #[arg(long, value_delimiter = ',', value_name = "SIZE[+SHARE],..", value_parser = guest_pages)]
    pub pages: Vec<(Bytes, Option<u8>)>,
    /// Use these pages in the guest, each with each of --host-pages
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE[+SHARE],..",
        value_parser = guest_pages,
        conflicts_with = "pages",
        requires = "host_pages"
    )]
    pub guest_pages: Vec<(Bytes, Option<u8>)>,
    /// Use these pages in the host
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE,..",
        requires = "guest_pages",
        conflicts_with = "pages"
    )]
    pub host_pages: Vec<Bytes>,
    /// Report times relative to this setting, such as native:4K or nested:4K/2M [default: the first one]
    #[arg(long, value_name = "MODE:GUEST[/HOST]", hide_short_help = true)]
    pub baseline: Option<Setting>,
    /// Report misses by the number of TLB entries, too: how many would be enough
    ///
    /// Of a fully associative TLB with LRU replacement, from 16 to 131072 entries, for each page size.
    #[arg(long, conflicts_with = "vcpus", hide_short_help = true)]
    pub curve: bool,
    /// Count this many accesses in each case [default: 1000000 of a pattern, all of a trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub accesses: Option<u64>,
    /// Run this many accesses before the counted ones [default: as many as --accesses of a pattern, none of a trace]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub warm_up: Option<u64>,
}
