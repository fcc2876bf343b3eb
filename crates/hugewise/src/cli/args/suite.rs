//! Arguments of `suite` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Arguments of `hugewise suite`.
#[derive(Args, Debug)]
pub struct Suite {
    /// List what would run, how long it takes, what is missing, and how to install it
    #[arg(long)]
    pub list: bool,
    /// Print the claims of the five publications, and the counterparts of each here
    ///
    /// Each row has the published figure, the value here, its origin (measured, simulated, by arithmetic, fitted, put
    /// in), and whether the two agree. Nothing is run: measured values come from saved results.
    #[arg(long, conflicts_with_all = ["list", "only", "experiments", "budget", "resume", "no_host_page"])]
    pub claims: bool,
    /// Run only these experiments
    ///
    /// A name selects itself and all names that begin with it and a hyphen: jbb, oltp, jbb-parallel.
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub only: Vec<String>,
    /// Run the experiments of this file instead of the built-in ones
    ///
    /// A TOML file in the form of workloads/experiments.toml. Workloads are built-in recipes, or recipes of your own by
    /// their path from the file's directory. Only you and root may be able to change it.
    #[arg(long, value_name = "FILE.toml")]
    pub experiments: Option<PathBuf>,
    /// Limit the time of all experiments together [default: the time that --list shows for each]
    ///
    /// Each experiment gets a share of it by its usual time. Unused time goes to the following ones. An experiment that
    /// cannot reach a verdict in its share shows an estimate.
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::duration, conflicts_with = "list")]
    pub budget: Option<Duration>,
    /// Continue with the results in this directory
    ///
    /// Finished experiments are not repeated; an interrupted one keeps its finished runs. Without it a new directory is
    /// created, and its name is printed.
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    pub resume: Option<PathBuf>,
    /// Do not time the page size of the host, which takes some seconds
    #[arg(long, conflicts_with = "list", hide_short_help = true)]
    pub no_host_page: bool,
}
