//! Where an arm runs: CPUs and memory nodes that the child is bound to. Pure.

use std::collections::BTreeMap;
use std::str::FromStr;

use host::CpuList;
pub use process::Bound;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One CPU of each core.
    Spread,
    /// All CPUs of one core.
    Pack,
    Pin(CpuList),
    /// CPUs and memory of one node.
    Node(u32),
    /// Memory of all nodes by turns.
    Interleave,
}

/// The parts of a machine that placements are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    pub cores: Vec<Vec<u32>>,
    pub nodes: BTreeMap<u32, Vec<u32>>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail =
            || format!("`{text}` is not a place (write spread, pack, pin=LIST such as pin=0-3, node:N or interleave)");
        match text {
            "spread" => Ok(Self::Spread),
            "pack" => Ok(Self::Pack),
            "interleave" => Ok(Self::Interleave),
            other => match (other.strip_prefix("pin="), other.strip_prefix("node:")) {
                (Some(list), _) => list.parse().map(Self::Pin).map_err(|_| fail()),
                (_, Some(node)) => node.parse().map(Self::Node).map_err(|_| fail()),
                _ => Err(fail()),
            },
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spread => f.pad("spread"),
            Self::Pack => f.pad("pack"),
            Self::Pin(list) => f.pad(&format!("pin={list}")),
            Self::Node(node) => f.pad(&format!("node:{node}")),
            Self::Interleave => f.pad("interleave"),
        }
    }
}

impl Place {
    /// What it means on this machine.
    ///
    /// # Errors
    /// If the machine has no such CPU or node.
    pub fn on(&self, ground: &Ground) -> Result<Bound, String> {
        let cpus = |cpus: Vec<u32>| Bound {
            cpus,
            ..Bound::default()
        };
        match self {
            Self::Spread => Ok(cpus(
                ground.cores.iter().filter_map(|core| core.first().copied()).collect(),
            )),
            Self::Pack => Ok(cpus(ground.cores.first().cloned().unwrap_or_default())),
            Self::Pin(list) => {
                let known = |cpu: u32| ground.cores.iter().any(|core| core.contains(&cpu));
                match list.iter().find(|&cpu| !known(cpu)) {
                    Some(cpu) => Err(format!("CPU {cpu} is not there, or this process may not use it")),
                    None => Ok(cpus(list.iter().collect())),
                }
            }
            Self::Node(node) => {
                let cpus = ground.nodes.get(node);
                let cpus = cpus.ok_or_else(|| format!("there is no node {node}"))?;
                Ok(Bound {
                    cpus: cpus.clone(),
                    nodes: vec![*node],
                    interleave: false,
                })
            }
            Self::Interleave => Ok(Bound {
                nodes: ground.nodes.keys().copied().collect(),
                interleave: true,
                ..Bound::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ground, Place};

    fn ground() -> Ground {
        Ground {
            cores: vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]],
            nodes: [(0, vec![0, 1, 4, 5]), (1, vec![2, 3, 6, 7])].into(),
        }
    }

    fn cpus(text: &str) -> Vec<u32> {
        let place: Place = text.parse().expect("a place");
        assert_eq!(place.to_string(), text);
        place.on(&ground()).expect("there").cpus
    }

    #[test]
    fn spread_takes_one_of_each_core_and_pack_all_of_one() {
        assert_eq!(cpus("spread"), [0, 1, 2, 3]);
        assert_eq!(cpus("pack"), [0, 4]);
        assert_eq!(cpus("pin=1,3"), [1, 3]);
        assert_eq!(cpus("node:1"), [2, 3, 6, 7]);
        assert!(cpus("interleave").is_empty());
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let pinned: Place = "pin=9".parse().expect("a place");
        assert!(pinned.on(&ground()).expect_err("no CPU 9").contains("CPU 9"));
        let node: Place = "node:2".parse().expect("a place");
        assert!(node.on(&ground()).is_err());
        assert!("cores:all".parse::<Place>().is_err());
    }
}
