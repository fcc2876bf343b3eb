//! What was typed, word for word; its doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::findings::Severity;
use model::guest::GuestPage;
use model::latency::Pattern;
use model::{Bytes, PageKind};

/// Finds, measures, fixes and proves what large pages do
///
/// Results go to standard output, progress and doubts to standard error. Exit codes: 0 done; 1 findings at
/// or above --fail-on; 2 could not do it; 130 interrupted, all settings restored.
#[derive(Debug, Parser)]
#[command(name = "hugewise", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Read a captured machine instead of this one: a directory, or a FILE.tree from `hugewise snapshot`
    #[arg(long, global = true, value_name = "DIR|FILE.tree")]
    pub root: Option<PathBuf>,
    /// Form of the result [default: what --output's extension says, else text]
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    pub json: bool,
    /// Write the result to this file instead of standard output
    #[arg(long, short, global = true, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Seed of every random choice, part of the result [default: drawn anew]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u32>,
    /// No progress and no notes; doubts and errors stay
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// No colours (likewise when NO_COLOR is set, or the output is not a terminal)
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Do what would otherwise be refused or asked, such as overwriting a snapshot
    #[arg(long, short, global = true)]
    pub yes: bool,
}

/// Forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables, and plots on a terminal
    Text,
    /// Everything, with its provenance
    Json,
    /// One line per item
    Csv,
    /// Tables for documents
    Markdown,
    /// A picture of lines and text
    Svg,
    /// A picture of pixels
    Png,
    /// One page that opens offline
    Html,
    /// Findings for code scanning in CI (SARIF 2.1.0)
    Sarif,
    /// Findings for monitoring (Prometheus text)
    Prometheus,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everything worth knowing about this machine in one go
    Checkup(Checkup),
    /// What is wrong with this machine, and how to fix it
    Doctor(Doctor),
    /// Measure what memory and address translation cost
    #[command(subcommand)]
    Measure(Measure),
    /// Work out how many, and how far it reaches
    #[command(subcommand)]
    Size(Size),
    /// Which page kinds back which process
    Ps(Ps),
    /// Page kinds behind the virtual machines that run here
    Vm(Vm),
    /// Record a machine in one file, for --root
    Snapshot(Snapshot),
    /// Show a result again, in another form
    Report(Report),
    /// Print the JSON schema of a result
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
}

/// `hugewise checkup`
///
/// Reads the machine, finds what is wrong with it, looks at the page kinds behind its processes and virtual machines,
/// measures latency by page kind, natively and (where KVM can be used) in a guest, and says in three sentences what large pages would buy. Leaves a report
/// and a result file; changes nothing.
#[derive(Args, Debug)]
pub struct Checkup {
    /// Fewer working sets, no guest, and less time: under 20 seconds instead of 90
    #[arg(long)]
    pub quick: bool,
    /// The report; result.json goes beside it
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub report: PathBuf,
    /// Parts to leave out, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,..")]
    pub skip: Vec<Part>,
    /// Never take pages from a hugetlb pool
    #[arg(long)]
    pub no_pool: bool,
}

/// Parts of a checkup that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What is wrong with the machine
    Doctor,
    /// Page kinds behind processes and virtual machines
    Ps,
    /// Latency by working set and page kind
    Latency,
    /// The same inside a KVM guest
    Guest,
}

/// `hugewise doctor`
///
/// Applies every rule to the machine's settings and processes. Each finding has its evidence, what it costs, and what to
/// do; rules that could not be judged are listed with the reason. Changes nothing. Exit codes: 0 well; 1 findings at or
/// above --fail-on; 2 nothing could be read.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Least severity that makes the exit code 1
    #[arg(long, value_name = "error|warning|info", default_value = "warning")]
    pub fail_on: Severity,
    /// Only explain this rule, by id or name, without looking at the machine
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// Judge this file too: a virtual machine's .vmx, or a list of ESX advanced settings (may be given again)
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
}

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
    /// Time for all points together, such as 30s [default: 80 ms for each point]
    #[arg(long, value_name = "TIME", value_parser = super::meaning::duration)]
    pub budget: Option<std::time::Duration>,
    /// CPU to run on [default: one that is online and allowed]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// NUMA node to take the memory from [default: the CPU's own]
    #[arg(long, value_name = "N")]
    pub node: Option<u32>,
    /// Never take pages from a hugetlb pool beyond those that are free already
    #[arg(long)]
    pub no_pool: bool,
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

/// What to work out.
#[derive(Debug, Subcommand)]
pub enum Size {
    /// How much memory TLB entries reach, and how much of a working set that covers
    Reach(Reach),
}

/// `hugewise size reach`
#[derive(Args, Debug)]
pub struct Reach {
    /// Numbers of TLB entries
    #[arg(long, value_delimiter = ',', value_name = "N,..", default_value = "64,256,2048")]
    pub entries: Vec<u64>,
    /// Page sizes
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "4K,2M,1G")]
    pub pages: Vec<Bytes>,
    /// Working sets
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "8G,64G")]
    pub working_set: Vec<Bytes>,
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
    #[arg(long, value_name = "TIME", value_parser = super::meaning::duration)]
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
    #[arg(long, value_name = "ACCESS", value_parser = super::meaning::access, default_value = "read")]
    pub access: model::latency::Access,
    /// Time for the timed walks, without set-up and warming [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = super::meaning::duration)]
    pub budget: Option<std::time::Duration>,
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

/// `hugewise ps`
#[derive(Args, Debug)]
pub struct Ps {
    /// One process only
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// Every mapping of that process
    #[arg(long, requires = "pid")]
    pub vmas: bool,
    /// Order of the processes
    #[arg(long, value_enum, default_value = "large")]
    pub sort: Sort,
    /// Show that many processes at most
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

/// Order of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most memory on large pages first
    Large,
    /// Most resident memory first
    Total,
    /// By process id
    Pid,
}

/// `hugewise vm`
///
/// Every process that runs a virtual machine: what it was configured for, which page kinds back its memory, which pages
/// KVM maps for it, and where these differ.
#[derive(Args, Debug)]
pub struct Vm {
    /// What to do
    #[command(subcommand)]
    pub what: Option<VmWhat>,
}

/// What `hugewise vm` can do.
#[derive(Debug, Subcommand)]
pub enum VmWhat {
    /// List them (the same as without a word)
    List,
}

/// `hugewise snapshot`
#[derive(Args, Debug)]
pub struct Snapshot {
    /// The file to write; an existing one is only replaced with --yes
    #[arg(value_name = "FILE.tree")]
    pub file: PathBuf,
    /// The machine only, no processes
    #[arg(long)]
    pub no_processes: bool,
}

/// `hugewise report`
#[derive(Args, Debug)]
pub struct Report {
    /// A result of `hugewise checkup` or of any command's --json
    #[arg(value_name = "RESULT.json")]
    pub result: PathBuf,
}

/// `hugewise schema`
#[derive(Args, Debug)]
pub struct Schema {
    /// The result's name; without it, the names
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `hugewise completions`
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}
