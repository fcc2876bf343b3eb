//! What is around a simulated CPU: other virtual CPUs and other nodes.

use crate::walk::scatter::Scatter;

/// Each field is `None` where a file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Virtual CPUs (natively CPUs) that share the page tables; 1.
    pub vcpus: Option<u16>,
    /// Cycles of an interrupt of another CPU and its handler, without exits.
    pub ipi: Option<f64>,
    /// Exits for each of them in a guest: up to 2, one where it is sent and one where it arrives.
    pub ipi_exits: Option<f64>,
    /// The share of the page-table reads from memory that go to another node; 0.
    pub remote_tables: Option<f64>,
    /// What such a read takes, relative to one from this node.
    pub remote_cost: Option<f64>,
    /// Where a guest's base pages lie in its memory; in order.
    pub scatter: Option<Scatter>,
}

/// The most virtual CPUs.
pub const MOST_VCPUS: u16 = 1024;

impl Surroundings {
    /// Virtual CPUs.
    pub fn vcpus(self) -> u16 {
        self.vcpus.unwrap_or(1).max(1)
    }

    /// What a page-table read from memory takes on average, relative to one from this node.
    pub(crate) fn table_memory(self) -> f64 {
        let (share, cost) = (self.remote_tables.unwrap_or(0.0), self.remote_cost.unwrap_or(1.0));
        1.0 + share * (cost - 1.0)
    }

    /// What is wrong with them, if anything.
    pub(super) fn wrong(self) -> Option<&'static str> {
        let fits = |value: Option<f64>, from: f64, to: f64| value.is_none_or(|value| (from..=to).contains(&value));
        let all = [
            (
                self.vcpus.is_none_or(|vcpus| (1..=MOST_VCPUS).contains(&vcpus)),
                "vcpus: expected 1 to 1024",
            ),
            (fits(self.ipi, 0.0, 1e9), "ipi_cycles: expected a number from 0 on"),
            (fits(self.ipi_exits, 0.0, 2.0), "ipi_exits: expected 0 to 2"),
            (
                fits(self.remote_tables, 0.0, 1.0),
                "remote_tables: expected a share, 0 to 1",
            ),
            (
                fits(self.remote_cost, 1.0, 1000.0),
                "remote_cost: expected a factor from 1 on",
            ),
            (
                self.remote_tables.is_none_or(|share| share == 0.0) || self.remote_cost.is_some(),
                "remote_tables needs remote_cost: what a read from another node takes, relative to one from this node",
            ),
        ];
        all.into_iter().find(|(is_right, _)| !is_right).map(|(_, why)| why)
    }
}
