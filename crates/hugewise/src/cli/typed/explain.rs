//! What was typed after `hugewise explain`.

use clap::Args;

/// `hugewise explain`
///
/// Report whether a program uses huge pages: how many pages, touched, reserved and spare; what it asked for; why it fell back; and the
/// next commands. Reads only.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  hugewise explain postgres
  hugewise explain 4711
  hugewise explain app.jar
  hugewise explain postgresql@15-main.service
  hugewise explain --root machine.tree java")]
pub struct Explain {
    /// PID, process name, `postgres`, `java`, `mysql`, `redis`, a virtual machine's name, a systemd unit, a container's id, or a file
    /// among the arguments
    #[arg(value_name = "TARGET")]
    pub target: String,
}
