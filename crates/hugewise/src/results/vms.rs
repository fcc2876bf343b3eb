//! What `hugewise vm` answers: the virtual machines that run here, and what backs them.

use host::Source;
use model::Reading;
use model::vms::Vm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The virtual machines of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VmList {
    /// One for each process that runs a machine, by process id.
    pub vms: Reading<Vec<Vm>>,
}

impl VmList {
    /// Those that run on the machine that `source` reads.
    pub fn of(source: &Source) -> Self {
        let vms = programs::vms::list(source).map(|mut vms| {
            vms.sort_by_key(|vm| vm.pid);
            vms
        });
        Self { vms }
    }

    /// Those that are known.
    pub fn known(&self) -> &[Vm] {
        self.vms.known().map_or(&[], Vec::as_slice)
    }
}
