//! What can be wanted: a type for each kind of goal.

use host::CpuList;
use model::{Bytes, Collector};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// Pools of these sizes.
    Pool(PoolGoal),
    Thp(ThpGoal),
    /// A Java virtual machine.
    Jvm(JvmGoal),
    /// A server with its configuration file.
    Database(DatabaseGoal),
    Oracle(OracleGoal),
    /// Redis: no pool, but a policy.
    Redis,
    /// A virtual machine.
    Vm(VmGoal),
    Kubernetes(PoolGoal),
    /// Where a service runs.
    Placement(PlacementGoal),
}

/// `placement:nginx,cpus=0-3+8-11,memory=0,by=affinity`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGoal {
    /// The unit it runs as.
    pub service: String,
    /// The CPUs that it may use; without, all of the node of its memory.
    pub cpus: Option<CpuList>,
    /// The node that its memory comes from; without, the kernel's choice.
    pub memory: Option<u32>,
    pub by: PlacedBy,
}

model::names! {
    /// What keeps a service on its CPUs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PlacedBy, "what keeps a service on its CPUs" {
        /// The affinity that its processes start with, and may change.
        Affinity = "affinity",
        /// A cpuset that none of its processes can leave.
        Cpuset = "cpuset",
    }
}

/// `pool:2M=16,1G=4,node=0,group=kvm,mount=/dev/hugepages1G`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolGoal {
    /// Page sizes and pages.
    pub pools: Vec<(Bytes, u64)>,
    /// One node; without, all nodes with memory alike.
    pub node: Option<u32>,
    /// Group that may use them.
    pub group: Option<String>,
    pub mount: Option<String>,
}

/// `thp=madvise,defrag=defer+madvise,khugepaged.max_ptes_none=0,mthp-64K=always,service=redis`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThpGoal {
    /// Files below `/sys/kernel/mm/transparent_hugepage`, and what they shall hold.
    pub settings: Vec<(String, String)>,
    pub service: Option<String>,
}

/// `jvm:heap=3.5g,user=jboss,kind=hotspot,pages=2M,service=jboss,collector=g1,jdk=21`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmGoal {
    /// `-Xmx`.
    pub heap: Bytes,
    pub user: Option<String>,
    /// The group that may use large shared memory; without, the user's own.
    pub group: Option<String>,
    /// The unit it runs as.
    pub service: Option<String>,
    /// Which implementation; without, the usual one for the kernel's age.
    pub kind: Option<JvmKind>,
    /// Which pages; without, a pool of the default size.
    pub pages: JvmPages,
    /// Its garbage collector; without, the JVM's own choice.
    pub collector: Option<Collector>,
    /// Major version of the JDK.
    pub jdk: Option<u32>,
    /// `-XX:ReservedCodeCacheSize`; without, the JVM's default.
    pub code_cache: Option<Bytes>,
}

model::names! {
    /// Implementations by the options they take.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JvmKind, "a Java virtual machine" {
        HotSpot = "hotspot",
        /// Eclipse OpenJ9.
        OpenJ9 = "openj9",
        /// Sun's JDK 5 and 6, on System V shared memory.
        Sun = "sun",
    }
}

/// Which pages a JVM shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JvmPages {
    /// A pool of the default size.
    Default,
    Pool(Bytes),
    /// Transparent ones.
    Thp,
}

/// `postgres:FILE,pages=1G,service=postgresql`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseGoal {
    pub kind: programs::Kind,
    pub file: String,
    /// Page size; without, the default.
    pub page: Option<Bytes>,
    pub user: String,
    /// The unit it runs as; without (`service=none`), it is started by hand.
    pub service: Option<String>,
    /// Is it said to be MariaDB?
    pub is_mariadb: bool,
    /// InnoDB's buffer pool, where the file does not say it.
    pub buffer_pool: Option<Bytes>,
}

/// `oracle:sga=24G,user=oracle,instances=1`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleGoal {
    pub sga: Bytes,
    pub instances: u64,
    pub user: String,
}

/// `vm:64G,pages=1G,hypervisor=libvirt,node=0,count=1,name=guest`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmGoal {
    pub memory: Bytes,
    /// Page size; without, 2M.
    pub page: Bytes,
    pub hypervisor: Hypervisor,
    /// The node its memory is on; without, all alike.
    pub node: Option<u32>,
    pub count: u64,
    pub name: String,
}

impl VmGoal {
    /// The name of a guest that has none.
    pub const UNNAMED: &'static str = "guest";
}

model::names! {
    /// Hypervisors by how they are configured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Hypervisor, "a hypervisor" {
        Libvirt = "libvirt",
        Qemu = "qemu",
        CloudHypervisor = "cloud-hypervisor",
        /// VMware ESX: .vmx keys and advanced settings.
        Esx = "esx",
    }
}
