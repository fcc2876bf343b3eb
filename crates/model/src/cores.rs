//! The shape of a look at CPUs in pairs: how far apart they are, and which of them share a core.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// Every pair of the CPUs that were looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cores {
    /// The CPUs, in the order of the matrix.
    pub cpus: Vec<u32>,
    /// One entry per pair.
    pub pairs: Vec<Pair>,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// Two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The two.
    pub cpus: [u32; 2],
    /// Time in which a cache line goes from one to the other and back, in ns; `null` when they did not run at the same time.
    pub round_trip_ns: Option<Estimate>,
    /// How much longer the first takes for the same multiplications while the second multiplies too: 1 on separate cores,
    /// about 2 on SMT siblings; `null` when they did not run at the same time.
    pub slowdown: Option<Estimate>,
    /// What follows from the slowdown.
    pub relation: Relation,
}

/// What two CPUs are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// They share the execution units of one core, whatever the topology says.
    Twins,
    /// Each has a core of its own.
    Separate,
    /// Unknown.
    Unknown,
}

impl Cores {
    /// The pair of two CPUs, in either order.
    pub fn pair(&self, one: u32, two: u32) -> Option<&Pair> {
        self.pairs
            .iter()
            .find(|pair| pair.cpus == [one, two] || pair.cpus == [two, one])
    }

    /// Pairs that share a core.
    pub fn twins(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let twins = self.pairs.iter().filter(|pair| pair.relation == Relation::Twins);
        twins.map(|pair| pair.cpus)
    }
}

impl Relation {
    /// Judges a slowdown by its whole interval: two threads that multiply without pause on one core halve each other; on
    /// two cores they share nothing but power and the host's time.
    pub fn of(slowdown: Option<Estimate>) -> Self {
        match slowdown {
            Some(slowdown) if slowdown.low >= 1.5 => Self::Twins,
            Some(slowdown) if slowdown.high <= 1.25 => Self::Separate,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, Pair, Relation};
    use crate::Estimate;

    fn slowdown(low: f64, high: f64) -> Option<Estimate> {
        Some(Estimate {
            median: (low + high) / 2.0,
            low,
            high,
            samples: 20,
        })
    }

    #[test]
    fn only_an_interval_that_is_clearly_on_one_side_is_judged() {
        assert_eq!(Relation::of(slowdown(1.9, 2.1)), Relation::Twins);
        assert_eq!(Relation::of(slowdown(0.99, 1.02)), Relation::Separate);
        assert_eq!(Relation::of(slowdown(1.0, 2.0)), Relation::Unknown);
        assert_eq!(Relation::of(None), Relation::Unknown);
    }

    #[test]
    fn a_pair_is_found_in_either_order() {
        let cores = Cores {
            cpus: vec![0, 3],
            pairs: vec![Pair {
                cpus: [0, 3],
                round_trip_ns: None,
                slowdown: slowdown(1.9, 2.0),
                relation: Relation::Twins,
            }],
            seconds: 0.1,
        };
        assert_eq!([cores.pair(3, 0), cores.pair(0, 3)], [Some(&cores.pairs[0]); 2]);
        assert_eq!([cores.pair(0, 1), cores.pair(0, 0)], [None; 2]);
    }
}
