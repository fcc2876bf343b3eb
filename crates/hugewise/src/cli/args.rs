//! Arguments as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::findings::Severity;
use programs::config::given::FileKind;

pub use crate::show::Format;
pub use collapse::Collapse;
pub use compare::{Between, Compare, MOST_RUNS};
pub use diff::{Diff, DiffFailIf};
pub use explain::Explain;
pub use host_memory::HostMemory;
pub use measure::{Cores, Guest, Kernel, Latency, Measure, Migration, Tlb};
pub use placement::{Placement, PlacementCheck, PlacementDiff, Record};
pub use plan::Plan;
pub use predict::{Predict, Trace};
pub use ps::{By, Ps, Sort};
pub use scheduler::Scheduler;
pub use setup::{Apply, Undo, Verify};
pub use simulate::{Simulate, Translation};
pub use size::{Innodb, Jvm, Postgres, Reach, Size};
pub use suite::Suite;

mod collapse;
mod compare;
mod diff;
mod explain;
mod host_memory;
mod measure;
mod placement;
mod plan;
mod predict;
mod ps;
mod scheduler;
mod setup;
mod simulate;
mod size;
mod suite;

/// Find, measure, fix and prove what huge pages do
///
/// Results go to standard output, progress and warnings to standard error. Exit codes: 0 done; 1 bad news that the
/// command was asked to report by exit code; 2 not done; 130 interrupted, all settings restored unless the last line says
/// otherwise.
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

/// What every command takes. `hugewise help options` shows them; the help of each command refers to that page.
#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Read a captured machine: a directory, a FILE.tree from `hugewise snapshot`, or what a terminal showed
    #[arg(long, global = true, value_name = "DIR|FILE")]
    pub root: Option<PathBuf>,
    /// Print the result in this format [default: by the extension of --output, else text]
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Print JSON: the same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    pub json: bool,
    /// Write the result to this file instead of standard output
    #[arg(long, short, global = true, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Set the seed of every random choice, which is part of the result [default: a new one]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u32>,
    /// Print no progress and no notes; warnings and errors are still printed
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print no colors, as with NO_COLOR set, or if the output is not a terminal
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Answer questions with yes, and allow what would be refused, such as overwriting a snapshot
    #[arg(long, short, global = true)]
    pub yes: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report everything about huge pages on this machine
    ///
    /// Reads the machine, finds what is wrong with it, and reports the page kinds behind its processes and virtual
    /// machines. Measures what huge pages save at a few working sets, latency by page kind and (with access to KVM) a
    /// guest. Reports the saving first, then the programs that use huge pages, what prevents more, and the commands to
    /// run next. Writes a report and a result file; changes nothing.
    Checkup(Checkup),
    /// Find what is wrong with this machine, and how to fix it
    ///
    /// Applies every rule to the machine's settings and processes. Each finding has its evidence, its consequence and a
    /// fix. Rules that could not be checked are listed with the reason. Changes nothing. Exit codes: 0 no finding; 1
    /// findings at or above --fail-on; 2 nothing could be read.
    Doctor(Doctor),
    /// Measure what memory and address translation cost
    #[command(subcommand)]
    Measure(Measure),
    /// Compare a program under several page policies
    ///
    /// Runs an unmodified program under several page policies ("arms") in interleaved blocks, and proves from outside
    /// which pages each run got. The verdict is better, worse, no difference, inconclusive, not in effect, or unknown.
    /// Arms change the program's own process. Hugetlb pages are borrowed, and switches of THP sizes set, only during
    /// their runs. Exit codes: 0 done; 1 what --fail-if names; 2 not done; 130 interrupted: finished runs are kept, and
    /// --resume continues with them.
    ///
    /// Shell commands in quotes, in place of one program, are compared with each other.
    ///
    /// With --live PID the program is a process that already runs. Its memory alternates between base and huge pages,
    /// and slices of its time are compared. The process is never stopped, and its page kinds are restored. If hugewise
    /// is killed by SIGKILL, they stay as they are at that moment. Needs root (CAP_SYS_NICE and the right to trace it)
    /// and Linux 6.7.
    Compare(Box<Compare>),
    /// Report where programs run, what moves, and what is pinned wrongly
    #[command(subcommand)]
    Placement(Placement),
    /// Run published experiments here, and compare with the published figures
    ///
    /// Each experiment is a recipe of real software, run under several page policies as by `hugewise compare`. The
    /// report has a page for each: the published figure with its source, the result here, and why they may differ.
    /// Results are saved in a directory; --resume continues with it. `--list` reports what is missing before anything
    /// runs. Exit codes: 0 done; 1 an experiment could not be run; 2 not done; 130 interrupted.
    Suite(Suite),
    /// Put memory of a running process on huge pages
    ///
    /// Collapses memory of a running, unmodified process into huge pages (MADV_COLLAPSE, Linux 6.1), range by range, and
    /// proves by its smaps what that changed. Settings of the kernel stay as they are. The pages stay huge until the process
    /// frees them or the kernel splits them under memory pressure. Children of the process are left alone. Needs root, or
    /// CAP_SYS_NICE and the right to trace the process.
    Collapse(Collapse),
    /// Calculate the changes that reach a goal on this machine
    ///
    /// Lists each change for this machine (or a captured one, with --root): the value before and after, the reason, and
    /// the risk. Changes nothing: `hugewise apply` takes the JSON, --format shell prints a script and --format ansible
    /// a playbook. Changes that this host cannot make itself are printed as instructions.
    Plan(Plan),
    /// Calculate page counts, TLB reach and reservations
    #[command(subcommand)]
    Size(Size),
    /// Simulate other machines and other settings
    #[command(subcommand)]
    Simulate(Simulate),
    /// Predict what huge pages would save a program, here or on another machine
    ///
    /// Captures windows of an unmodified program's run, or reads a trace. Runs them through the TLBs, page walks and
    /// caches of a machine for each page size, natively and behind a hypervisor. Reports the saving of each, with an
    /// interval over the windows and the unknowns. A program is started as by `hugewise compare`. ptrace steps one
    /// thread at a time, and the program's output is dropped. Needs x86-64; no root.
    Predict(Box<Predict>),
    /// Write windows of a program's run as a trace, for `predict` and `simulate`
    ///
    /// Starts an unmodified program, and steps one of its threads for short windows of its run (ptrace). The file holds
    /// the loads and stores of each window, the method, and its limits. Needs x86-64; no root.
    Trace(Trace),
    /// Make the changes of a plan
    ///
    /// Reads every value again and refuses a machine that differs from the plan. Each change is logged on disk before
    /// it is made, and read back after. If one fails, the earlier ones are reverted. Changes that this host cannot make
    /// itself are printed as instructions. Asks for confirmation; --yes confirms. Exit codes: 0 applied; 1 a pool got
    /// fewer pages than planned; 2 refused or failed, and nothing stays changed; 130 interrupted, everything reverted.
    Apply(Apply),
    /// Check that the changes of a plan are in effect
    ///
    /// Compares the plan with the machine in every layer, also after a reboot, and lists the processes that use such
    /// pages. Exit codes: 0 everything is set; 1 something is not; 2 not done.
    Verify(Verify),
    /// Revert applied changes
    ///
    /// Reverts every applied plan, or only the named one, the last change first. Leaves values that have changed since,
    /// and hugetlb pages in use. Both are reported and stay on record for the next time. Exit codes: 0 everything is
    /// reverted; 1 something is left; 2 not done.
    Undo(Undo),
    /// List what hugewise has changed, and when
    Status,
    /// Report whether a program uses huge pages, how many, and why not
    ///
    /// Counts pages touched, reserved and spare, lists the settings that decide, and ends with the next commands. TARGET is a
    /// PID, a process name, `postgres`, `java`, `mysql`, `redis`, a virtual machine, a systemd unit, a container's id, or a file
    /// among the arguments. Reads only.
    Explain(Explain),
    /// Report how two results or two machines differ
    ///
    /// A and B are two results of one kind (latency, checkup, compare, doctor, ps), or two captured machines. Lists settings,
    /// findings and page kinds that differ. Each measured point has an interval, and a verdict that holds for all points
    /// together. Exit codes: 0 done; 1 what --fail-if names; 2 not done.
    Diff(Diff),
    /// Report which page sizes back each process
    ///
    /// Resident memory includes hugetlb pages, and is split by page kind. Pool pages that no process maps are listed
    /// below the table. `?` marks values that could not be read.
    Ps(Ps),
    /// Report which page sizes back the virtual machines of this host
    ///
    /// Lists every process that runs a virtual machine: its configured page kind, the page kinds that back its memory,
    /// the pages that KVM maps for it, and where these differ.
    Vm(Vm),
    /// Capture this machine in one file, for --root
    ///
    /// The file is text. Known secrets are removed, and the command lists what it left out. Read the file before you
    /// send it.
    Snapshot(Snapshot),
    /// Print a saved result in another format
    Report(Report),
    /// Print the JSON schema of a result
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
}

/// Arguments of `hugewise checkup`.
#[derive(Args, Debug)]
pub struct Checkup {
    /// Measure less: no guest, fewer working sets, under 20 seconds instead of 60
    #[arg(long)]
    pub quick: bool,
    /// Stop within this time: `90s`, `3m` [default: 60s, with --quick 20s]
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// Write the report to this file, and result.json beside it, unless --output takes the JSON
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub report: PathBuf,
    /// Leave out these parts
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,..")]
    pub skip: Vec<Part>,
    /// Never grow a hugetlb pool: use only its free pages
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
    /// What huge pages save, and latency by working set and page kind
    Latency,
    /// TLB levels, walk costs, and the host's page size, from timing
    Tlb,
    /// The same inside a KVM guest
    Guest,
}

/// Arguments of `hugewise doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Exit with 1 from this severity on
    #[arg(long, value_name = "error|warning|info", default_value = "warning")]
    pub fail_on: Severity,
    /// Explain this rule, by id or name, without reading the machine
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// List every rule, without reading the machine
    #[arg(long, conflicts_with_all = ["explain", "file"])]
    pub rules: bool,
    /// List the rules that could not be judged, and why
    #[arg(long, short)]
    pub verbose: bool,
    /// Check configuration files and logs instead of a machine (repeatable)
    ///
    /// Files given together are checked together. With --root they are checked against that machine.
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Name the kind of the files, if name and content do not show it
    ///
    /// One of sysctl, cmdline, limits, unit, environment, java, postgres, mysql, pod, compose, libvirt, qemu, firecracker, proxmox, vmware, dpdk, node, incus,
    /// tuned, script, provision, kata, oracle, nova, log, elasticsearch.
    #[arg(long = "as", value_name = "KIND", requires = "file")]
    pub kind: Option<FileKind>,
}

/// Arguments of `hugewise vm`.
#[derive(Args, Debug)]
pub struct Vm {
    /// The action.
    #[command(subcommand)]
    pub what: Option<VmWhat>,
}

/// Actions of `hugewise vm`.
#[derive(Debug, Subcommand)]
pub enum VmWhat {
    /// List them: the same as without an action
    List,
}

/// Arguments of `hugewise snapshot`.
#[derive(Args, Debug)]
pub struct Snapshot {
    /// Write this file; an existing one is replaced only with --yes
    #[arg(value_name = "FILE.tree")]
    pub file: PathBuf,
    /// Capture the machine only, without processes
    #[arg(long)]
    pub no_processes: bool,
}

/// Arguments of `hugewise report`.
#[derive(Args, Debug)]
pub struct Report {
    /// Read this result of `hugewise checkup` or of any command with --json, or several as text
    #[arg(value_name = "RESULT.json", required = true)]
    pub results: Vec<PathBuf>,
    /// Draw only this chart, as SVG; a wrong name lists the available charts
    #[arg(long, value_name = "NAME")]
    pub chart: Option<String>,
    /// Judge the runs of a comparison again, by the same rules; refuse a result whose runs are inconsistent
    #[arg(long, conflicts_with = "chart")]
    pub recheck: bool,
    /// Judge by this metric of the runs (repeatable) [default: those of the result]
    #[arg(long, value_name = "NAME", requires = "recheck", conflicts_with = "chart")]
    pub metric: Vec<String>,
    /// Ignore differences below this [default: that of the result]
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::values::percent, requires = "recheck", conflicts_with = "chart")]
    pub smallest_effect: Option<f64>,
}

/// Arguments of `hugewise schema`.
#[derive(Args, Debug)]
pub struct Schema {
    /// Name the result; without it the names are listed
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `hugewise completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Name the shell
    pub shell: clap_complete::Shell,
}
