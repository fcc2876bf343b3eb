//! Latency sensitivity high: which virtual machines get cores of their own, by their reservations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scenario::Scenario;
use super::topology::Topology;
use crate::size::esx::max_cores;

/// What a virtual machine asked for and what it got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    /// The virtual machine.
    pub vm: String,
    /// What cores of its own need: its virtual CPUs times the MHz of a core.
    pub needed_mhz: u64,
    /// What it reserves.
    pub reserved_mhz: u64,
    /// Cores that the host could still give before it.
    pub free_cores: u64,
    /// Why it shares cores with others; none if it has its own.
    pub denied: Option<Denied>,
}

/// Why there are no cores for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Denied {
    /// Its reservation is less than all of its virtual CPUs.
    NotFullyReserved,
    /// Too few cores are left.
    TooFewCores,
    /// No CPU would be left for the other virtual machines.
    NoneLeftForOthers,
}

/// What is granted, in the order of the virtual machines; those that are not latency sensitive are left out. Where one is denied, a core
/// is left for it.
pub(super) fn reservations(scenario: &Scenario, used: Topology) -> Vec<(usize, Reservation)> {
    let has_others = scenario.console.is_some() || scenario.vms.iter().any(|vm| !vm.is_latency_sensitive);
    let all = granted(scenario, used, has_others);
    match all.iter().any(|(_, reservation)| reservation.denied.is_some()) {
        true => granted(scenario, used, true),
        false => all,
    }
}

fn granted(scenario: &Scenario, used: Topology, has_others: bool) -> Vec<(usize, Reservation)> {
    let cores = u64::from(used.cores());
    let mut free = max_cores(cores, scenario.host_mhz as f64 / scenario.core_mhz.max(1) as f64);
    let mut left = cores - u64::from(has_others);
    let asking = scenario.vms.iter().enumerate();
    asking
        .filter(|(_, vm)| vm.is_latency_sensitive)
        .map(|(place, vm)| {
            let vcpus = u64::from(vm.vcpus);
            let needed_mhz = vcpus * scenario.core_mhz;
            let reserved_mhz = vm.reservation_mhz.unwrap_or(needed_mhz);
            let denied = match () {
                () if reserved_mhz < needed_mhz => Some(Denied::NotFullyReserved),
                () if vcpus > free => Some(Denied::TooFewCores),
                () if vcpus > left => Some(Denied::NoneLeftForOthers),
                () => None,
            };
            let free_cores = free;
            if denied.is_none() {
                (free, left) = (free - vcpus, left - vcpus);
            }
            let vm = vm.name.clone();
            let reservation = Reservation {
                vm,
                needed_mhz,
                reserved_mhz,
                free_cores,
                denied,
            };
            (place, reservation)
        })
        .collect()
}
