//! What was typed, word for word; its doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use host::config::given::FileKind;
use model::findings::Severity;

pub use collapse::Collapse;
pub use compare::{Compare, Design, FailIf, Order};
pub use explain::Explain;
pub use measure::{Access, Cores, Guest, Kernel, Latency, Measure, Tlb};
pub use plan::Plan;
pub use ps::{By, Ps, Sort};
pub use setup::{Apply, Undo, Verify};
pub use size::{Innodb, Jvm, Ksm, Postgres, Reach, Size};

mod collapse;
mod compare;
mod explain;
mod measure;
mod plan;
mod ps;
mod setup;
mod size;

/// Finds, measures, fixes and proves what large pages do
///
/// Results go to standard output, progress and warnings to standard error. Exit codes: 0 done; 1 findings at
/// or above --fail-on; 2 could not do it; 130 interrupted, all settings restored unless the last line says otherwise.
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
    /// No progress and no notes; warnings and errors stay
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
    /// A plan as a shell script
    Shell,
    /// A plan as an Ansible playbook
    Ansible,
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
    /// Did it help my program, beyond noise?
    Compare(Box<Compare>),
    /// Put memory of a running process onto large pages
    Collapse(Collapse),
    /// Work out which changes bring this machine to a goal
    Plan(Plan),
    /// Work out how many, and how far it reaches
    #[command(subcommand)]
    Size(Size),
    /// Make the changes of a plan
    Apply(Apply),
    /// Is what was asked for there, and does anybody use it?
    Verify(Verify),
    /// Walk back to what stood there before
    Undo(Undo),
    /// What hugewise has changed and when
    Status,
    /// Are my huge pages in use, how many, and why not?
    Explain(Explain),
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
    /// TLB levels, walk costs, and the host's page size, from timing
    Tlb,
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
    /// Judge configuration files instead of a machine (may be given again: they are judged together); with --root, as files
    /// that are to hold on that machine
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// What the files are, where name and content do not tell: sysctl, cmdline, limits, unit, java, postgres, mysql, pod,
    /// libvirt, qemu, vmware
    #[arg(long = "as", value_name = "KIND", requires = "file")]
    pub kind: Option<FileKind>,
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
