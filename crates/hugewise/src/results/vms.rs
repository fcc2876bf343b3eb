//! What `hugewise vm` answers: the virtual machines that run here, and what backs them.

use host::Source;
use model::Reading;
use model::process::Unseen;
use model::vms::Vm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The virtual machines of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VmList {
    /// One for each process that runs a machine, by process id.
    pub vms: Reading<Vec<Vm>>,
    /// Processes of which it is not known whether they run one.
    #[serde(default)]
    pub unseen: Unseen,
}

impl VmList {
    /// Those that run on the machine that `source` reads.
    pub fn of(source: &Source) -> Self {
        let (vms, unseen) = programs::vms::list(source);
        let vms = vms.map(|mut vms| {
            vms.sort_by_key(|vm| vm.pid);
            vms
        });
        Self { vms, unseen }
    }

    /// Those that are known.
    pub fn known(&self) -> &[Vm] {
        self.vms.known().map_or(&[], Vec::as_slice)
    }
}
