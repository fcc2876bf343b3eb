//! Arguments of `explain` as typed. Their doc comments are the help texts and the man page.

use clap::Args;

/// Arguments of `hugewise explain`.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Explain this PID, name, virtual machine, systemd unit or container
    #[arg(value_name = "TARGET")]
    pub target: String,
}
