//! The modelled cores, and which of them a CPU is like.

use serde::Deserialize;

/// Two cores that differ as server cores of the last years do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Core {
    /// A core of about 2017: four instructions a cycle, 224 in flight.
    Narrow,
    /// A recent core: six instructions a cycle, 512 in flight.
    Wide,
}

impl Core {
    pub const BOTH: [Self; 2] = [Self::Narrow, Self::Wide];

    /// The one that cores of a microarchitecture are like: none of those in between, or of others.
    pub(crate) fn of(microarchitecture: &str) -> Option<Self> {
        const NARROW: [&str; 5] = ["Nehalem", "Skylake server", "Zen 2", "Zen 3", "Neoverse N1"];
        const WIDE: [&str; 4] = ["Golden Cove", "Raptor Cove", "Redwood Cove", "Zen 5"];
        let is_one = |names: &[&str]| names.iter().any(|name| microarchitecture.starts_with(name));
        match (is_one(&NARROW), is_one(&WIDE)) {
            (true, _) => Some(Self::Narrow),
            (_, true) => Some(Self::Wide),
            _ => None,
        }
    }
}
