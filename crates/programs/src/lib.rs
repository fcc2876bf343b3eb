//! The programs that use huge pages: what each is, how its own files configure it, what it needs, and what may prevent that.
//!
//! Every process gives its status, arguments and known environment variables; only those that could matter are looked
//! into further, the largest first, within a budget of time.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod config;
mod containers;
mod dpdk;
pub mod evidence;
mod facts;
pub mod gc_log;
pub(crate) mod glibc;
mod hsperfdata;
pub mod image;
mod image_names;
pub(crate) mod jvm;
mod kind;
mod locks;
mod log;
mod look;
pub mod messages;
mod mongo;
mod mysql;
mod oracle;
mod packages;
mod page_options;
pub mod postgres;
pub mod record;
mod redis;
pub mod size;
mod target;
mod tunables;
pub mod vms;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::process::ProcessPages;
use model::{Bytes, PageKind, Reading, Unread};

use crate::config::{Settings, Unit};
use crate::size::mysql::Innodb;
use host::CpuList;
use host::processes::MappingNodes;
use host::snapshot::Mount;

pub use config::Setting;
pub use dpdk::{is_of_vpp, mib_by_node, socket_mem};
pub use evidence::{Applied, Evidence};
pub(crate) use facts::zero_ended;
pub use glibc::library as glibc_library;
pub use host::groups::{GroupLevel, Groups, HugetlbLimit, Limit};
pub use host::processes::areas::{self, Area, parse_maps};
pub use image_names::name as image_name;
pub use jvm::{Jvm, JvmKind, is_of_hotspot};
pub use kind::{Kind, Load, Server};
pub use locks::{Lock, Locks, cut_off};
pub use log::{CutLog, LogLine, Logs};
pub(crate) use look::{MOST_TABLES, candidates};
pub use look::{RDMA, REGISTERED, programs};
pub use page_options::{HUGEPAGE_SIZE, RANDOMX_1G, page_options};
pub use postgres::auto_conf;
pub use record::{Capture, CaptureOptions, capture};
pub use target::{Listens, RunningServer, SharedMemory, Target, TargetError, age, running_server, targets};
pub use tunables::{TUNABLES, in_list, is_tunable};

/// One process with memory of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Its id, name and page kinds.
    pub pages: ProcessPages,
    /// What it is, if it is a program known here.
    pub kind: Reading<Option<Kind>>,
    /// Its arguments, the program's name first.
    pub arguments: Reading<Vec<String>>,
    /// Those of [`TUNABLES`] that are in its environment.
    pub tunables: Reading<BTreeMap<String, String>>,
    pub parent: Reading<u32>,
    /// Its effective and supplementary groups.
    pub groups: Reading<Vec<u32>>,
    /// Its effective capabilities, one bit each.
    pub capabilities: Reading<u64>,
    /// Memory that drivers have pinned, as of RDMA (`VmPin`).
    pub pinned: Reading<Bytes>,
    /// Memory that it has locked (`VmLck`).
    pub locked: Reading<Bytes>,
    /// The NUMA nodes that it may take memory from.
    pub nodes: Reading<CpuList>,
    /// The CPUs that it may run on.
    pub cpus: Reading<CpuList>,
    pub threads: Reading<u64>,
    /// What only those have that could matter: large ones, known ones, those with tunables.
    pub details: Option<Details>,
}

impl Details {
    /// Is it set not to use huge pages?
    pub fn is_off(&self) -> bool {
        let setting = self.setting.known().and_then(Option::as_ref);
        setting.is_some_and(|setting| setting.value == "off")
    }
}

/// A closer look at one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// Its mappings. The bytes behind them are unknown where counting them would hold up a large live process.
    pub areas: Reading<Vec<Area>>,
    /// Its hugetlb pages by node; read only for programs of DPDK, which hold pages beside guests.
    pub hugetlb_nodes: Reading<Vec<MappingNodes>>,
    /// Its soft limit of locked memory.
    pub memlock: Reading<Limit>,
    /// Its control group and those above.
    pub cgroup: Reading<Groups>,
    /// Its systemd service, if it runs as one.
    pub unit: Option<Reading<Unit>>,
    /// When it started, in seconds since boot.
    pub started: Reading<f64>,
    /// Its options as a Java virtual machine.
    pub jvm: Option<Reading<Jvm>>,
    /// The version of glibc that it mapped; read only where tunables depend on it.
    pub glibc: Reading<(u32, u32)>,
    /// hugetlbfs mounts as the process sees them; read only for programs that need a path.
    pub hugetlb_mounts: Reading<Vec<Mount>>,
    /// Can it see the files of THP in /sys? By its mounts, where all of them are known.
    pub thp_files: Reading<bool>,
    /// The version of the program; read only where advice depends on it.
    pub version: Reading<(u32, u32)>,
    /// The option file of MySQL, which includes others.
    pub option_file: Option<String>,
    /// A setting of the program's own files: `huge_pages` of PostgreSQL, `large-pages` of MySQL.
    pub setting: Reading<Option<Setting>>,
    /// All settings that a server runs with, as far as its files could be read: theirs, and over them those of its command line.
    pub settings: Settings,
    /// What decides the pages of MySQL and MariaDB, by their files and arguments; `None` where those could not be read.
    pub innodb: Option<Innodb>,
    /// The setting by which it is to lock its memory.
    pub lock: Reading<Option<Lock>>,
    /// Lines of the program's own files that it refuses or ignores.
    pub refused: Vec<Unread>,
}

/// CAP_IPC_LOCK (linux/capability.h).
const IPC_LOCK: u32 = 14;

impl Program {
    pub fn pid(&self) -> u32 {
        self.pages.pid
    }

    /// `java (1234)`.
    pub fn title(&self) -> String {
        format!("{} ({})", self.pages.name, self.pages.pid)
    }

    /// A file of it below /proc, to name as a source.
    pub fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pages.pid)
    }

    /// Is it of that kind?
    ///
    /// # Errors
    /// If its name cannot be read.
    pub fn is(&self, kind: Kind) -> Result<bool, Unread> {
        self.kind.as_ref().into_result().map(|own| *own == Some(kind))
    }

    /// MariaDB by its name; it was `mysqld` up to 10.4.
    fn is_called_mariadb(&self) -> bool {
        let called = || self.arguments.known()?.first()?.rsplit('/').next();
        self.pages.name.starts_with("mariadb") || called().is_some_and(|name| name.starts_with("mariadb"))
    }

    /// Is it MariaDB, by its name or its option files?
    pub fn is_mariadb(&self) -> bool {
        let innodb = self.details.as_ref().and_then(|details| details.innodb);
        self.is_called_mariadb() || innodb.is_some_and(|innodb| innodb.is_mariadb)
    }

    /// What it is, for users; `None` if it is not known here.
    pub fn product(&self) -> Option<&'static str> {
        let kind = (*self.kind.known()?)?;
        let is = |name: &str| self.pages.name.starts_with(name);
        Some(match kind {
            Kind::Mysql if self.is_mariadb() => "MariaDB",
            Kind::Redis if is("valkey") => "Valkey",
            Kind::Redis if is("keydb") => "KeyDB",
            kind => kind.title(),
        })
    }

    /// A known environment variable.
    ///
    /// # Errors
    /// If its environment cannot be read.
    pub fn tunable(&self, name: &str) -> Result<Option<&str>, Unread> {
        let tunables = self.tunables.as_ref().into_result()?;
        Ok(tunables.get(name).map(String::as_str))
    }

    /// What its arguments set, by the names of its files; of Oracle the name of its instance (`sid`).
    pub fn set_by_arguments(&self) -> Vec<(String, String)> {
        let words = self.arguments.known().map_or(&[][..], Vec::as_slice);
        match self.kind.known().copied().flatten() {
            Some(Kind::Oracle) => oracle::sid(words)
                .map(|sid| ("sid".to_owned(), sid))
                .into_iter()
                .collect(),
            Some(kind) => kind.server().map_or_else(Vec::new, |server| (server.set_by)(words)),
            None => Vec::new(),
        }
    }

    /// The same as settings, with the command line as their place.
    pub fn typed(&self) -> Settings {
        let place = self.file("cmdline");
        let set = self.set_by_arguments().into_iter();
        set.map(|(name, value)| Setting::new(&place, name, value)).collect()
    }

    /// The first argument that begins so, without that beginning.
    pub fn argument(&self, prefix: &str) -> Option<&str> {
        self.arguments
            .known()?
            .iter()
            .find_map(|argument| argument.strip_prefix(prefix))
    }

    /// hugetlb pages of all sizes; none on a kernel without them.
    ///
    /// # Errors
    /// If its status cannot be read.
    pub fn hugetlb(&self) -> Result<Bytes, Unread> {
        match &self.pages.hugetlb {
            absent if absent.is_absent() && self.pages.rss.known().is_some() => Ok(Bytes(0)),
            told => told.clone().into_result(),
        }
    }

    /// Bytes of PMD-mapped THP.
    ///
    /// # Errors
    /// If its page kinds are not known.
    pub fn thp(&self) -> Result<Bytes, Unread> {
        let backing = self.pages.backing.as_ref().into_result()?;
        Ok(backing.of(PageKind::Thp))
    }

    /// Does it hold CAP_IPC_LOCK?
    ///
    /// # Errors
    /// If its status cannot be read.
    pub fn may_lock(&self) -> Result<bool, Unread> {
        let set = self.capabilities.as_ref().into_result()?;
        Ok(set >> IPC_LOCK & 1 == 1)
    }

    /// Its options as a Java virtual machine; `None` if it is none.
    ///
    /// # Errors
    /// If its name or arguments cannot be read.
    pub fn jvm(&self) -> Result<Option<&Jvm>, Unread> {
        if !self.is(Kind::Jvm)? {
            return Ok(None);
        }
        let jvm = self.details.as_ref().and_then(|details| details.jvm.as_ref());
        jvm.map(|jvm| jvm.as_ref().into_result()).transpose()
    }

    /// Its mappings, if it was looked into.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn areas(&self) -> Result<&[Area], Unread> {
        let areas = self.details.as_ref().map(|details| details.areas.as_ref());
        areas.map_or(Ok(&[]), |areas| areas.into_result().map(Vec::as_slice))
    }

    /// Its control groups, if it was looked into.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn cgroup(&self) -> Result<Option<&Groups>, Unread> {
        let groups = self.details.as_ref().map(|details| details.cgroup.as_ref());
        groups.map(Reading::into_result).transpose()
    }
}
