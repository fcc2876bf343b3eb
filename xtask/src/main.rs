//! Man pages and completions, made from the program's own command line.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;
use hugewise::cli::Cli;

/// Makes the files that packages carry beside the program.
#[derive(Parser)]
enum Task {
    /// A man page for the program and for each of its commands
    Man {
        /// Where they go; made if it is not there
        directory: PathBuf,
    },
    /// Completions for every shell
    Completions {
        /// Where they go; made if it is not there
        directory: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Man { directory } => {
            std::fs::create_dir_all(&directory)?;
            clap_mangen::generate_to(Cli::command(), directory)?;
        }
        Task::Completions { directory } => {
            std::fs::create_dir_all(&directory)?;
            for &shell in Shell::value_variants() {
                clap_complete::generate_to(shell, &mut Cli::command(), "hugewise", &directory)?;
            }
        }
    }
    Ok(())
}
