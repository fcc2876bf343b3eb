//! Files made from the program itself: man pages, completions, and reference pages.

mod reference;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use clap_complete::Shell;
use hugewise::cli::help::command;

/// Make the files that packages carry beside the program, and pages of the docs
#[derive(Parser)]
enum Task {
    /// Write a man page for the program and for each of its commands
    Man {
        /// Write them to this directory
        directory: PathBuf,
    },
    /// Write completions for every shell
    Completions {
        /// Write them to this directory
        directory: PathBuf,
    },
    /// Write the reference pages that follow from the program
    Reference {
        /// Write them to this directory
        #[arg(default_value = "docs/reference")]
        directory: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Man { directory } => {
            std::fs::create_dir_all(&directory)?;
            clap_mangen::generate_to(command(), directory)?;
        }
        Task::Completions { directory } => {
            std::fs::create_dir_all(&directory)?;
            for &shell in Shell::value_variants() {
                clap_complete::generate_to(shell, &mut command(), "hugewise", &directory)?;
            }
        }
        Task::Reference { directory } => {
            std::fs::create_dir_all(&directory)?;
            for (name, text) in reference::pages() {
                std::fs::write(directory.join(name), text)?;
            }
        }
    }
    Ok(())
}
