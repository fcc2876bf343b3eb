//! What is known of each side, and which of it can be compared.

use host::Snapshot;
use model::Warning;
use model::compare::Compare;
use model::latency::Latency;

use crate::results::diff::Side;
use crate::results::{Checkup, Doctor, ProcessList};

/// What is known of one side.
#[derive(Debug)]
pub(crate) struct Material {
    pub side: Side,
    pub warnings: Vec<Warning>,
    pub parts: Parts,
}

/// The parts that can be compared.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub snapshot: Option<Snapshot>,
    pub doctor: Option<Doctor>,
    pub processes: Option<ProcessList>,
    pub latency: Option<Latency>,
    pub compare: Option<Compare>,
    /// Parts that it has, and that are not compared.
    pub left_out: Vec<&'static str>,
}

impl From<Checkup> for Parts {
    fn from(checkup: Checkup) -> Self {
        let others = [
            ("tlb", checkup.tlb.is_some()),
            ("guest", checkup.guest.is_some()),
            ("vms", checkup.vms.is_some_and(|vms| !vms.known().is_empty())),
        ];
        let left_out = others.iter().filter(|(_, is_there)| *is_there);
        Self {
            left_out: left_out.map(|(name, _)| *name).collect(),
            snapshot: Some(checkup.inventory),
            doctor: checkup.doctor,
            processes: checkup.processes,
            latency: checkup.latency,
            compare: None,
        }
    }
}
