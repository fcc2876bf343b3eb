//! Policies by name, and what each of them does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::names;

names! {
    /// Who decides where a world runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum Policy, "a policy" {
        /// ESX Server 2.5.2: home nodes; a move to the SMT sibling is free.
        #[serde(rename = "esx-2.5.2")]
        Esx252 = "esx-2.5.2",
        /// ESX Server 2.5.3: home nodes; a move to the SMT sibling has its price.
        #[serde(rename = "esx-2.5.3")]
        Esx253 = "esx-2.5.3",
        /// A queue for each CPU, and idle CPUs that take from busy ones.
        #[serde(rename = "linux-like")]
        LinuxLike = "linux-like",
        /// Each virtual CPU has one logical CPU.
        #[serde(rename = "pinned")]
        Pinned = "pinned",
        /// Latency sensitivity high: cores of their own for virtual CPUs whose reservation is granted.
        #[serde(rename = "latency-sensitivity-high")]
        LatencySensitive = "latency-sensitivity-high",
    }
}

impl Policy {
    /// The most logical CPUs that it uses: 16 under ESX Server 2.5.
    pub fn cpu_limit(self) -> Option<u32> {
        matches!(self, Self::Esx252 | Self::Esx253).then_some(16)
    }

    /// Is there one queue for each node, in which virtual machines have their home? Their virtual CPUs are then kept from running far apart.
    pub(super) fn has_home_nodes(self) -> bool {
        matches!(self, Self::Esx252 | Self::Esx253 | Self::LatencySensitive)
    }

    /// Is a move to the sibling as good as staying?
    pub(super) fn is_sibling_free(self) -> bool {
        self == Self::Esx252
    }
}
