//! Arguments of `simulate` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Bytes;
use sim::translation::Mode;
use sim::translation::patterns::Pattern;
use sim::translation::study::Setting;
use sim::translation::study::preset::Preset;
use sim::translation::sweep::Shard;
use sim::translation::trace::TraceFormat;

/// Simulations.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Simulate what address translation costs natively, nested or with shadow paging
    ///
    /// Runs a pattern of accesses through the TLBs, page walks and caches of a machine, for each page size in guest and host. Reports
    /// miss rates, page-table entries read, and cycles by cause. What no public source gives is swept, and its effect is printed.
    /// Nothing is measured, and this machine is not needed.
    Translation(Box<Translation>),
    /// Simulate every combination of machines, inputs, memory, pages, modes and parameters
    ///
    /// FILE.toml has a list for each of them. Each combination is a point, and each finished point is a line of JSON in the file of points.
    /// A sweep that was killed goes on from there: give the same command again. One seed gives the same points on any machine, with any
    /// number of threads. --shard simulates a part, so that an engine can spread a sweep over machines; --merge puts the parts together.
    Sweep(Sweep),
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

/// Arguments of `hugewise simulate sweep`.
#[derive(Args, Debug)]
pub struct Sweep {
    /// Simulate the combinations of this file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Keep finished points in this file, and go on from those in it [default: FILE.jsonl, of a shard FILE.1-of-4.jsonl]
    #[arg(long, value_name = "FILE.jsonl")]
    pub points: Option<PathBuf>,
    /// Simulate this part alone, such as 1/4 for the first of four
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Simulate nothing: put together the points of these files, which must hold all shards
    #[arg(long, value_name = "FILE.jsonl", num_args = 1.., conflicts_with_all = ["shard", "threads"])]
    pub merge: Vec<PathBuf>,
    /// Simulate on this many threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
}

/// Arguments of `hugewise simulate translation`.
#[derive(Args, Debug)]
pub struct Translation {
    /// Simulate this CPU of the table, a machine in a TOML file, or this machine as measured (`here`) [default: the CPU of this machine, by
    /// the table]
    ///
    /// `list` prints the table's CPUs.
    #[arg(long, value_name = "ID|here|FILE.toml|list")]
    pub machine: Option<String>,
    /// Take this result for --machine here (repeatable) [default: result.json in this directory, else measure now]
    ///
    /// A result of `measure tlb`, `measure latency` or `checkup`. Without any, measuring takes half a minute.
    #[arg(long, value_name = "RESULT.json")]
    pub measured: Vec<PathBuf>,
    /// Simulate a publication: esx35-large-pages, nehalem-ept, vcf-spr, vcf-icelake or vcf-tlb-table
    ///
    /// Prints each published value beside the simulated one, and whether that was fitted or predicted. Machine, pattern, memory and pages
    /// are those of the publication.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["machine", "measured", "pattern", "working_sets", "mode", "vcpus", "pages", "guest_pages", "host_pages", "baseline", "warm_up", "trace", "curve"])]
    pub preset: Option<Preset>,
    /// Access memory so: random, chase, zipf, stream, stride, btree, gc, heap or churn
    ///
    /// random: independent loads anywhere. chase: a ring through all lines. zipf: popular pages, exponent 0.99. stream and stride: 8 bytes, or
    /// a page and a line, from load to load. btree: index lookups with a log. gc: objects are marked, then moved. heap: a Java heap of that size
    /// in use. churn: short processes that map, use and unmap 1M each.
    #[arg(long, value_name = "PATTERN", default_value = "random")]
    pub pattern: Pattern,
    /// Run the accesses of this trace instead: a file, or a pipe
    ///
    /// valgrind's lackey (--trace-mem=yes), drmemtrace (raw), ChampSim, flat addresses of 8 bytes (little endian), or `hugewise trace`. The
    /// trace is read once, in a bounded part of memory. Unpack compressed traces: `xz -dc FILE | hugewise simulate translation --trace
    /// /dev/stdin`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "working_sets"])]
    pub trace: Option<PathBuf>,
    /// Read the trace as this: lackey, drmemtrace, champsim, u64 or hugewise [default: by its content]
    #[arg(long, value_name = "FORMAT", requires = "trace", hide_short_help = true)]
    pub trace_format: Option<TraceFormat>,
    /// Translate the instruction fetches of the trace, too; without it loads and stores alone
    #[arg(long, requires = "trace", hide_short_help = true)]
    pub fetches: bool,
    /// Access this much memory
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "64M,1G,16G")]
    pub working_sets: Vec<Bytes>,
    /// Translate so: native, nested (EPT, NPT), shadow or agile [default: native, and nested or else shadow]
    ///
    /// agile is agile paging (ISCA 2016), which no CPU has: shadow paging, but nested below page tables that are written often.
    #[arg(long, value_delimiter = ',', value_name = "MODE,..")]
    pub mode: Vec<Mode>,
    /// Run this many threads, each on a virtual CPU with TLBs of its own [default: 1]
    ///
    /// They belong to one process and share its page tables. An invalidation interrupts all other virtual CPUs (shootdown).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "trace")]
    pub vcpus: Option<u16>,
    /// Use pages of these sizes, in the host the same as in the guest [default: all that the CPU has of 4K, 2M and 1G]
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub pages: Vec<Bytes>,
    /// Use these pages in the guest, each with each of --host-pages
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE,..",
        conflicts_with = "pages",
        requires = "host_pages"
    )]
    pub guest_pages: Vec<Bytes>,
    /// Use these pages in the host
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", requires = "guest_pages")]
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
    /// Run this many accesses before them [default: as many as --accesses of a pattern, none of a trace]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub warm_up: Option<u64>,
}
