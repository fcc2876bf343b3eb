//! What a simulation takes of this machine, worked out before it starts.

use std::collections::BTreeMap;

use model::Bytes;

use super::engine::SECOND;
use super::policy::Policy;
use super::scenario::{Scenario, Sharers};
use super::{Ns, PAGES};

/// The most memory that a simulation takes, and bytes of each region and of what a content keeps of each region's number.
const MOST_BYTES: u64 = 1 << 29;
const REGION_BYTES: u64 = 64;
const CHUNK_BYTES: u64 = 56;
/// The most time that it takes, about: looks at regions and machines, of which a CPU makes so many a second (Zen 5 guest: 50 to 350 million).
const LONGEST_RUN: u64 = 60;
const LOOKS: u64 = 100_000_000;
/// A region that is made takes the time of so many looks.
const MAKING: u64 = 8;

impl Scenario {
    /// Can it be simulated so many times without taking this machine for long?
    ///
    /// # Errors
    /// What it would take, and what to change.
    pub(super) fn check_cost(&self, times: u64) -> Result<(), String> {
        let kept = self.policies.iter().map(|policy| self.kept(*policy)).max();
        let regions: u64 = self.vms.iter().map(|vm| u64::from(vm.regions())).sum();
        let bytes = regions * REGION_BYTES + kept.unwrap_or_default() * CHUNK_BYTES;
        if bytes > MOST_BYTES {
            return Err(format!(
                "the simulation would take {} of memory: expected at most {} (fewer or smaller virtual machines)",
                Bytes(bytes),
                Bytes(MOST_BYTES)
            ));
        }
        let looks = self.policies.iter().map(|policy| self.looks(*policy, regions));
        let seconds = looks.fold(0, u64::saturating_add).saturating_mul(times) / LOOKS;
        if seconds > LONGEST_RUN {
            return Err(format!(
                "the simulation would take about {seconds} s: expected at most {LONGEST_RUN} (fewer policies, draws or virtual machines, a \
                 shorter time, or longer steps)"
            ));
        }
        Ok(())
    }

    /// Regions' numbers of which something is kept for those that share.
    fn kept(&self, policy: Policy) -> u64 {
        let mut groups: BTreeMap<Sharers<'_>, u64> = BTreeMap::new();
        for (number, vm) in self.vms.iter().enumerate() {
            let most = groups.entry(self.shares_with(number, policy)).or_default();
            *most = u64::from(vm.regions()).max(*most);
        }
        groups.values().sum()
    }

    /// How often regions and machines are looked at, about: all are made, and show their activity every ten minutes; scans have their rates.
    fn looks(&self, policy: Policy, regions: u64) -> u64 {
        let seconds = self.duration_ns / SECOND;
        let (steps, machines) = (self.duration_ns / self.step_ns.max(1), self.vms.len() as u64);
        let every = |each: Ns| self.duration_ns / each.max(1);
        let pages = match policy {
            Policy::Ksm => every(self.ksm.each_page()),
            policy if policy.is_linux() => 0,
            _ => self
                .rates
                .scan
                .unwrap_or(self.pages() / 3600)
                .max(self.rates.rush)
                .saturating_mul(seconds),
        };
        let collapsed = self
            .khugepaged
            .each_region()
            .filter(|_| policy.is_linux())
            .map_or(0, every);
        let swapped = self.rates.swap.saturating_mul(2 * seconds);
        let scanned = pages.saturating_add(swapped) / u64::from(PAGES) + collapsed;
        regions * (MAKING + seconds / 600) + steps.saturating_mul(machines) + scanned
    }
}
