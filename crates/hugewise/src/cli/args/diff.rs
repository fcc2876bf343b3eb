//! Arguments of `diff` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `hugewise diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The first result (JSON) or captured machine (FILE.tree or directory)
    pub a: PathBuf,
    /// The second, which is compared with the first
    pub b: PathBuf,
    /// Give no verdict on differences up to this
    ///
    /// Two runs of one machine differ, too. To measure by how much, repeat one run and compare the two.
    #[arg(long, value_name = "PERCENT", value_parser = crate::cli::values::percent, default_value = "5%")]
    pub allow: f64,
    /// Exit with 1 on these: worse, inconclusive, findings, backing, settings
    ///
    /// `worse`: a point is. `inconclusive`: a point of both has no verdict. `findings`: B has more warnings or errors.
    /// `backing`: a program has a smaller share on huge pages, by 5 percent points or more. `settings`: one differs.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT,..",
        hide_possible_values = true
    )]
    pub fail_if: Vec<DiffFailIf>,
}

/// Differences that set the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFailIf {
    /// Some point is worse
    Worse,
    /// Some point is not decided
    Inconclusive,
    /// Some rule found more
    Findings,
    /// Some program has less memory on huge pages
    Backing,
    /// Some setting differs
    Settings,
}
