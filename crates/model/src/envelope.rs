//! The envelope that every JSON result shares: what ran, where, how, and its warnings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Reading, Warning};

/// A result with its provenance.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Envelope<T> {
    /// `hugewise/NAME/VERSION`: which shape `data` has.
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// The machine it is about.
    pub machine: Machine,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// The seed of every random choice: the same seed gives the same order.
    pub seed: u64,
    /// When it started, RFC 3339.
    pub started: String,
    /// Reservations about the result.
    pub warnings: Vec<Warning>,
    /// The result itself.
    pub data: T,
}

impl<T> Envelope<T> {
    /// The same without the result.
    #[must_use]
    pub fn about(&self) -> Envelope<()> {
        Envelope {
            schema: self.schema.clone(),
            tool: self.tool.clone(),
            machine: self.machine.clone(),
            command: self.command.clone(),
            seed: self.seed,
            started: self.started.clone(),
            warnings: self.warnings.clone(),
            data: (),
        }
    }
}

/// Name and version of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always `hugewise`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The machine a number came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// CPU model as it names itself.
    pub cpu: Reading<String>,
    /// Kernel release.
    pub kernel: Reading<String>,
    /// Hypervisor vendor, or `none` on bare metal.
    pub hypervisor: Reading<String>,
    /// Online logical CPUs.
    pub cpus: Reading<u64>,
    /// NUMA nodes.
    pub nodes: Reading<u64>,
    /// Memory in bytes.
    pub memory: Reading<Bytes>,
    /// Base page in bytes.
    pub base_page: Reading<Bytes>,
}
