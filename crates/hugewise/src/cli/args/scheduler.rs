//! Arguments of `simulate scheduler` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::Args;
use studies::scheduler::Policy;
use studies::scheduler::explain::Preset;

/// Arguments of `hugewise simulate scheduler`.
#[derive(Args, Debug)]
pub struct Scheduler {
    /// Simulate the host and the virtual machines of this TOML file
    #[arg(value_name = "FILE.toml", required_unless_present = "preset")]
    pub file: Option<PathBuf>,
    /// Simulate IBM's study of ESX Server 2.5: ibm-2006, or one table of it as ibm-2006-table-2, -3 or -4
    ///
    /// Prints published throughput beside the results of four explanations, the fitted parameters with their runs, and
    /// the remaining error. The run that would separate them is not in the paper, and is predicted.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "policy"])]
    pub preset: Option<Preset>,
    /// Use this scheduler: esx-2.5.2, esx-2.5.3, linux-like, pinned or latency-sensitivity-high [default: that of the
    /// file, or else esx-2.5.3]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<Policy>,
}
