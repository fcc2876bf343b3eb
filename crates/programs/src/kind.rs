//! Which programs are known, by the names that they give themselves.

use super::{Area, areas};

/// A program that has rules of its own for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A Java virtual machine.
    Jvm,
    Postgres,
    Oracle,
    Mysql,
    /// Redis, Valkey or KeyDB.
    Redis,
    Mongo,
    Qemu,
    CloudHypervisor,
    Firecracker,
    /// A program of the Data Plane Development Kit.
    Dpdk,
    /// The Kubernetes node agent.
    Kubelet,
}

/// Names of executables. The kernel keeps 15 letters of a name, so longer ones are compared up to there.
const NAMES: [(&str, Kind); 27] = [
    ("java", Kind::Jvm),
    ("postgres", Kind::Postgres),
    ("postmaster", Kind::Postgres),
    ("edb-postgres", Kind::Postgres),
    ("mysqld", Kind::Mysql),
    ("mariadbd", Kind::Mysql),
    ("redis-server", Kind::Redis),
    ("valkey-server", Kind::Redis),
    ("keydb-server", Kind::Redis),
    ("mongod", Kind::Mongo),
    ("qemu-kvm", Kind::Qemu),
    ("kvm", Kind::Qemu),
    ("qemu-system-x86_64", Kind::Qemu),
    ("qemu-system-aarch64", Kind::Qemu),
    ("qemu-system-ppc64", Kind::Qemu),
    ("qemu-system-s390x", Kind::Qemu),
    ("qemu-system-i386", Kind::Qemu),
    ("qemu-system-riscv64", Kind::Qemu),
    ("cloud-hypervisor", Kind::CloudHypervisor),
    ("firecracker", Kind::Firecracker),
    ("dpdk-testpmd", Kind::Dpdk),
    ("testpmd", Kind::Dpdk),
    ("ovs-vswitchd", Kind::Dpdk),
    ("vpp_main", Kind::Dpdk),
    ("spdk_tgt", Kind::Dpdk),
    ("reactor_0", Kind::Dpdk),
    ("kubelet", Kind::Kubelet),
];

/// Options of DPDK's environment layer, which any program built with it takes.
const DPDK_OPTIONS: [&str; 5] = [
    "--huge-dir",
    "--socket-mem",
    "--file-prefix",
    "--proc-type=",
    "--in-memory",
];

/// Beginnings of the names of libraries.
const LIBRARIES: [(&str, Kind); 3] = [
    ("libjvm.so", Kind::Jvm),
    ("libj9vm", Kind::Jvm),
    ("librte_eal.so", Kind::Dpdk),
];

impl Kind {
    /// The kind of a process by its short name and its arguments.
    pub(super) fn of(name: &str, arguments: &[String]) -> Option<Self> {
        let program = arguments
            .first()
            .map_or("", |first| first.split([' ', ':']).next().unwrap_or_default());
        let program = program.rsplit('/').next().unwrap_or_default();
        let known = |(known, _): &(&str, Kind)| *known == program || known.get(..15).unwrap_or(known) == name;
        if let Some((_, kind)) = NAMES.into_iter().find(known) {
            return Some(kind);
        }
        if name.starts_with("ora_") || program.starts_with("ora_") {
            return Some(Self::Oracle);
        }
        let has_option = |argument: &String| DPDK_OPTIONS.iter().any(|option| argument.starts_with(option));
        arguments.iter().any(has_option).then_some(Self::Dpdk)
    }

    /// The kind of a process by the libraries that it mapped, whatever it calls itself: a JVM inside another program, a
    /// program linked with DPDK's environment layer.
    pub(super) fn of_areas(areas: &[Area]) -> Option<Self> {
        areas::known_files(areas, &LIBRARIES).next()
    }

    /// Does it run virtual machines?
    pub fn is_hypervisor(self) -> bool {
        matches!(self, Self::Qemu | Self::CloudHypervisor | Self::Firecracker)
    }

    /// Its name for users.
    pub fn title(self) -> &'static str {
        match self {
            Self::Jvm => "Java",
            Self::Postgres => "PostgreSQL",
            Self::Oracle => "Oracle Database",
            Self::Mysql => "MySQL",
            Self::Redis => "Redis",
            Self::Mongo => "MongoDB",
            Self::Qemu => "QEMU",
            Self::CloudHypervisor => "Cloud Hypervisor",
            Self::Firecracker => "Firecracker",
            Self::Dpdk => "DPDK",
            Self::Kubelet => "kubelet",
        }
    }
}
