//! The shape of what is pinned wrongly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Each mistake.
    pub mistakes: Vec<Mispinned>,
    /// Threads that were looked at.
    pub threads: u64,
    /// Those that used at least half of a CPU.
    pub busy: u64,
    /// Those whose CPUs could not be read.
    pub unread: u64,
    /// Seconds of looking; 0 of a captured machine, where a thread is busy that was running or runnable.
    pub seconds: f64,
}

/// One mistake of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mispinned {
    /// Which.
    pub mistake: Mistake,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The threads that it is about.
    pub threads: Vec<u32>,
    /// Where they are, or may be.
    pub cpus: Vec<u32>,
    /// Where they had better be.
    pub better: Vec<u32>,
    /// The NUMA nodes that it is about.
    pub nodes: Vec<u32>,
    /// A share in percent, where it is about one.
    pub percent: Option<f64>,
    /// Lines that fix it, any of them.
    pub fixes: Vec<Fix>,
}

crate::names! {
    /// What can be wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Mistake {
        /// Two busy threads share a core, and another core is idle.
        SharedCore = "shared-core",
        /// Several busy threads are pinned to one CPU, and another is idle.
        SharedCpu = "shared-cpu",
        /// The first thread of a process is pinned, the others are not.
        FirstThreadOnly = "first-thread-only",
        /// vCPUs of a virtual machine are pinned to siblings of one core, and the guest does not know.
        VcpusOnSiblings = "vcpus-on-siblings",
        /// vCPUs of a virtual machine that fits on one node are on several.
        VcpusOnNodes = "vcpus-on-nodes",
        /// Most memory is on another node than all of the CPUs.
        RemoteMemory = "remote-memory",
        /// A cpuset asks for CPUs that it does not get.
        CpusetCut = "cpuset-cut",
        /// Several busy threads may use several isolated CPUs, among which the scheduler does not balance.
        IsolatedTogether = "isolated-together",
    }
}

/// A line that fixes a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// Where it goes.
    pub with: FixWith,
    /// The line.
    pub line: String,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FixWith {
    /// A shell, now.
    Shell,
    /// The command that starts the program.
    Start,
    /// The `[Service]` section of the unit.
    Systemd,
    /// `hugewise plan`, whose plan `hugewise apply` carries out: it writes that section, and `hugewise undo` takes it back.
    Plan,
    /// The file of the cpuset.
    Cpuset,
    /// `<cputune>` of the libvirt domain.
    Libvirt,
    /// The VMX file.
    Vmx,
}
