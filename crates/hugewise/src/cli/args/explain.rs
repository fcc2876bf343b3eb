//! Arguments of `explain` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::Args;
use model::Bytes;

/// Arguments of `hugewise explain`.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Explain this PID, name, virtual machine, systemd unit or container; one of several servers by `postgres:port=5433` or `postgres:DIR`
    #[arg(value_name = "TARGET", required_unless_present = "image")]
    pub target: Option<String>,
    /// Report which code of this executable, or of all below this directory, can ever be backed by huge pages
    ///
    /// Reads the headers of ELF files: alignment, place and length of each executable segment. Links are not followed, and other
    /// file systems not entered.
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "target")]
    pub image: Option<PathBuf>,
    /// Judge the code for huge pages of this size [default: that of a THP on this machine]
    #[arg(long, value_name = "SIZE", requires = "image", conflicts_with = "target",
          value_parser = crate::cli::values::page_size)]
    pub page_size: Option<Bytes>,
}
