//! Configuration files that were given by name: what they ask for, with no machine around them.

mod absent;
mod asks;
mod bottlerocket;
mod bounds;
mod compose;
mod config_map;
mod dockerd;
mod garbled;
mod guest;
mod incus;
mod ini;
mod java;
mod kata;
mod kernel;
mod kind;
mod libvirt;
mod locked;
mod manager;
mod manifest;
mod namespaces;
mod nix;
mod node;
mod nova;
mod operators;
mod pod;
mod profile;
mod provision;
mod proxmox;
mod quadlet;
pub(super) mod script;
pub(super) mod service;
mod shell;
mod shell_tokens;
mod starts;
mod take;
mod tokens;
mod units;
mod variables;
mod yaml;

#[cfg(test)]
mod provision_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use host::Snapshot;
use model::{Bytes, Unread};

use super::{Boot, BootLine, LimitLine, Parameters, PoolWrite, Setting, Settings, Vmware, as_taken, own_default};
use crate::messages::{self, Said};
use crate::{Kind, Limit, Lock, dpdk, image_names, page_options};
use starts::{Start, with_arguments};

pub use asks::Asks;
pub use bounds::Bounds;
pub use compose::Run;
pub use garbled::Refusal;
pub use guest::{Backing, Guest, Manager, Wrong, pages_at};
pub use ini::Server;
pub use java::Java;
pub use kata::SANDBOX;
pub use kind::{FileKind, GivenError, is_log_name};
pub use locked::Locked;
pub use nova::{Nova, Reserved};
pub use pod::{Asked, Container, Pod, Quantity, Volume};
pub(crate) use provision::is_template;
pub use script::HugeMount;
pub use service::Service;

/// All files together: they are judged as one machine's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Settings of every sysctl file, in the order in which the files were given.
    pub sysctl: Settings,
    pub boot: Vec<BootLine>,
    pub limits: Vec<LimitLine>,
    /// systemd services; drop-ins of one service are one.
    pub services: Vec<Service>,
    /// Files of variables of services: path and content.
    environment: Vec<(String, Vec<Setting>)>,
    java: Vec<Java>,
    /// How nodes of Elasticsearch and OpenSearch are to lock their memory, a setting for each of their files.
    nodes: Vec<Setting>,
    servers: Vec<Server>,
    /// Instances of Oracle.
    pub oracle: Vec<Parameters>,
    /// Pods of Kubernetes, also those in templates.
    pub pods: Vec<Pod>,
    /// The kubelet's policy by which all memory of a container comes from one node.
    pub aligned: Option<Setting>,
    /// Containers of compose files and of `docker run`.
    pub runs: Vec<Run>,
    /// What containers of Docker may lock that set nothing themselves, with its place.
    pub memlock_of_docker: Option<(Limit, String)>,
    /// What services may lock that set nothing themselves (`DefaultLimitMEMLOCK=` of systemd), with its place.
    pub default_memlock: Option<(Limit, String)>,
    /// Files of OpenStack's compute service.
    pub nova: Vec<Nova>,
    /// Virtual machines of libvirt and of hypervisors.
    pub guests: Vec<Guest>,
    /// Files of VMware: `.vmx` and ESX advanced settings.
    pub vmware: Vec<Vmware>,
    /// Settings of VPP, named `SECTION NAME`.
    pub vpp: Vec<Setting>,
    /// What commands set in the configuration of Open vSwitch, by its keys.
    ovs: Vec<Setting>,
    /// What scripts write to files of pools and to vm.nr_hugepages, in order.
    pub pool_writes: Vec<PoolWrite>,
    /// Where scripts mount hugetlbfs.
    pub mounts: Vec<HugeMount>,
    /// Known programs that scripts start.
    commands: Vec<Start>,
    /// What of scripts, and of tools' files, only a run shows, with its place.
    pub unresolved: Vec<String>,
    /// Everything that sets the THP policy.
    pub policies: Vec<Setting>,
    /// Lines that have no known form; what they ask for is not judged.
    pub garbled: Vec<Unread>,
    /// What programs say in logs.
    pub said: Vec<Said>,
    /// What is refused of nodes' files.
    pub refusals: Vec<Refusal>,
    kinds: BTreeSet<FileKind>,
    /// Is one of the sysctl files more than lines of tmpfiles.d or sysfs.conf?
    has_sysctl: bool,
}

impl Given {
    /// Takes a file in. Without a `kind` the name decides and, failing that, the content.
    ///
    /// # Errors
    /// If the kind cannot be recognized, or the whole file does not have that kind's form. Single lines without form are kept
    /// in [`Given::garbled`].
    pub fn add(&mut self, path: &str, bytes: &[u8], kind: Option<FileKind>) -> Result<FileKind, GivenError> {
        let whole = String::from_utf8_lossy(bytes);
        let marked = whole.strip_prefix(garbled::BOM);
        let text = marked.unwrap_or(&whole);
        let kind = match kind {
            Some(kind) => kind.said(path, text)?,
            None => FileKind::of(path, text)?,
        };
        let mark = marked.and_then(|_| garbled::mark(path, text, kind));
        let is_by_line = matches!(kind, FileKind::Sysctl | FileKind::Limits);
        let text = if mark.is_some() || is_by_line { text } else { &*whole };
        if kind == FileKind::Log && !messages::is_log(text) {
            return Err(GivenError::NoMessage { path: path.to_owned() });
        }
        self.take(path, text, kind).map_err(GivenError::Garbled)?;
        self.garbled.extend(mark);
        self.kinds.insert(kind);
        for start in self.starts() {
            self.kinds.extend(start.java().map(|_| FileKind::Java));
            self.kinds
                .extend(start.server(Kind::Postgres).map(|_| FileKind::Postgres));
            self.kinds.extend(start.server(Kind::Mysql).map(|_| FileKind::Mysql));
        }
        Ok(kind)
    }

    /// As a machine takes them, which may lack nodes and page sizes that they name.
    #[must_use]
    pub fn on(mut self, snapshot: &Snapshot) -> Self {
        let topology = &snapshot.topology;
        let stray = self.pool_writes.iter().filter_map(|write| write.stray(topology));
        self.garbled.extend(stray);
        self.garbled.extend(absent::bound(&self, topology));
        self.pool_writes.retain(|write| write.stray(topology).is_none());
        for line in &mut self.boot {
            line.boot = match snapshot.boot_sizes() {
                Some(sizes) => {
                    let boot = Boot::parse_for(&line.words, Some(&sizes), own_default(snapshot));
                    as_taken(boot.without_gigantic(), snapshot)
                }
                None => std::mem::take(&mut line.boot).on_nodes(topology),
            };
        }
        self
    }

    /// What the services start.
    fn starts(&self) -> Vec<Start> {
        let services = self.services.iter();
        let alone = self.environment.iter().filter(|_| self.services.is_empty());
        // It is not known what gets these variables.
        let alone = alone.map(|(path, set)| Start {
            place: path.clone(),
            words: Vec::new(),
            environment: set.clone(),
            ..Start::default()
        });
        services
            .flat_map(|service| service.starts(&self.environment))
            .chain(self.runs.iter().map(Run::start))
            .chain(self.commands.iter().cloned())
            .chain(alone)
            .collect()
    }

    /// What the programs of services lock, with the service.
    pub fn locked(&self) -> Vec<(&Service, Locked)> {
        let (mut all, servers) = (Vec::new(), self.servers(Kind::Mysql));
        for service in &self.services {
            let starts = service.starts(&self.environment);
            let locked = starts
                .iter()
                .filter_map(|start| Locked::of(service, start, &servers, &self.nodes));
            all.extend(locked.map(|locked| (service, locked)));
        }
        all
    }

    /// How the program of a container is to lock its memory: by its command, a variable, or the file of a node.
    pub fn lock_of(&self, run: &Run) -> Option<Lock> {
        let is_node = run.has_node_file || image_names::is_node(&run.image);
        let of_file = || Lock::of_node(&run.words, &run.environment, &self.nodes).filter(|_| is_node);
        Lock::asked(&run.place, &run.words, &run.environment).or_else(of_file)
    }

    /// JVMs: command lines, and those that services start.
    pub fn java(&self) -> Vec<Java> {
        let starts = self.starts();
        let started = starts.iter().filter_map(Start::java);
        self.java.iter().cloned().chain(started).collect()
    }

    /// JVMs of services without THP (`MemoryTHP=disable`), with that setting and its place.
    pub fn java_without_thp(&self) -> Vec<(Java, &(String, String))> {
        let mut all = Vec::new();
        for service in &self.services {
            if let Some(thp) = service.unit.thp.as_ref().filter(|(value, _)| value == "disable") {
                let starts = service.starts(&self.environment);
                all.extend(starts.iter().filter_map(Start::java).map(|java| (java, thp)));
            }
        }
        all
    }

    /// What programs of DPDK ask of each node, or of all together, with the directory whose hugetlbfs they take it of. One in a container is
    /// that of the container.
    pub fn socket_mem(&self) -> Vec<(Setting, Option<String>)> {
        let of_ovs = dpdk::asked_by_ovs(&self.ovs);
        let starts = self.starts();
        let in_container = |start: &Start| {
            compose::started(&start.words).is_some() || self.runs.iter().any(|run| run.place == start.place)
        };
        let of_start = |start: &Start| {
            let set = start.socket_mem().filter(|set| !dpdk::is_of_vpp(set))?;
            let directory = start.huge_dir().filter(|_| !in_container(start));
            Some((set, directory.map(str::to_owned)))
        };
        let started = starts.iter().filter_map(of_start);
        let directory = dpdk::directory_of_ovs(&self.ovs);
        started.chain(of_ovs.map(|set| (set, directory))).collect()
    }

    /// Memory that programs of DPDK ask of all nodes together, beside that of each: they accept one of both.
    pub fn asked_twice_of_dpdk(&self) -> Vec<Setting> {
        self.starts().iter().filter_map(Start::asks_twice).collect()
    }

    /// Where a program of DPDK is started that takes its pages by files: without a hugetlbfs of their size it has none. A script or a unit may mount one.
    pub fn takes_by_files(&self) -> Option<String> {
        let has_mount = !self.mounts.is_empty() || self.has_units_that_mount();
        let mut starts = self.starts().into_iter().filter(|_| !has_mount);
        starts.find(Start::takes_by_files).map(|start| start.place)
    }

    /// Do commands of units mount a hugetlbfs?
    pub fn has_units_that_mount(&self) -> bool {
        let mut texts = self.services.iter().flat_map(|service| &service.texts);
        texts.any(|(_, text)| text.contains("hugetlbfs"))
    }

    /// May a unit put a hugetlbfs at that path?
    pub fn may_be_mounted(&self, path: &str) -> bool {
        self.has_units_that_mount() || self.services.iter().any(|service| service.names_mount(path))
    }

    /// Options of programs that ask for pages of a size.
    pub fn page_options(&self) -> Vec<Setting> {
        let starts = self.starts();
        let of = |start: &Start| {
            let options = page_options(&start.words).into_iter();
            let said = |value: String| if value.is_empty() { "set".to_owned() } else { value };
            let line = |(name, value): (&'static str, String)| Setting::new(&start.place, name, said(value));
            options.map(line).collect::<Vec<Setting>>()
        };
        starts.iter().flat_map(of).collect()
    }

    /// Where a command with this option is started.
    pub fn starts_with_option(&self, option: &str) -> Option<String> {
        let has = |start: &Start| start.words.iter().any(|word| word == option);
        self.starts().into_iter().find(has).map(|start| start.place)
    }

    /// Sizes of the pages that VPP's buffers and heap are on, whatever their number; `None` is the default size.
    pub fn vpp_pages(&self) -> Vec<Option<Bytes>> {
        let size = |name: &str| self.of_vpp(name).map(|set| set.value.parse().ok());
        let is_started = || {
            self.starts()
                .iter()
                .any(|start| start.from(|name| name == "vpp").is_some())
        };
        let asks = !self.vpp.is_empty() || is_started();
        let buffers = asks.then(|| size("buffers page-size").flatten());
        buffers.into_iter().chain(size("memory main-heap-page-size")).collect()
    }

    /// The setting of VPP that holds in the end.
    pub fn of_vpp(&self, name: &str) -> Option<&Setting> {
        self.vpp.iter().rfind(|set| set.name == name)
    }

    /// What VPP asks of each node, in its file or in its command, which later releases ignore.
    pub fn socket_mem_of_vpp(&self) -> Option<Setting> {
        let of_command = || self.starts().iter().filter_map(Start::socket_mem).find(dpdk::is_of_vpp);
        self.of_vpp("dpdk socket-mem").cloned().or_else(of_command)
    }

    /// Servers of a kind.
    pub fn servers(&self, kind: Kind) -> Vec<Server> {
        let files: Vec<&Server> = self.servers.iter().filter(|server| server.kind == kind).collect();
        let starts = self.starts();
        let started = starts.iter().filter_map(|start| start.server(kind));
        let mut servers = with_arguments(ini::together(&files), started);
        let is_one = servers.len() == 1;
        for only in servers.iter_mut().filter(|server| is_one && server.nodes.is_none()) {
            let mut services = self.services.iter().filter(|service| service.is_named_for(kind));
            only.nodes = services.find_map(Service::nodes).and_then(|list| list.parse().ok());
        }
        servers
    }

    /// Lines that have no known form, or that the program refuses or ignores for which they are.
    pub fn refused(&self) -> Vec<Unread> {
        let java = self.java();
        let in_pods = self.containers().filter_map(|container| container.java.as_ref());
        let options = java.iter().chain(in_pods).flat_map(Java::refused);
        let of_containers = self.pods.iter().flat_map(|pod| &pod.refused);
        let of_containers = of_containers.chain(self.runs.iter().flat_map(|run| &run.refused));
        let mut all: Vec<Unread> = self
            .garbled
            .iter()
            .chain(of_containers)
            .cloned()
            .chain(options)
            .collect();
        let servers = self.servers(Kind::Postgres);
        let in_pods = self.containers().filter_map(|container| container.postgres.as_ref());
        for misspelt in servers.iter().chain(in_pods).flat_map(Server::misspelt) {
            // Several instances may have one file.
            if !all.contains(&misspelt) {
                all.push(misspelt);
            }
        }
        all
    }

    /// What is not judged, with its place: what only a run shows, and what files of servers include and was not given.
    pub fn not_read(&self) -> impl Iterator<Item = String> {
        self.unresolved.iter().cloned().chain(ini::not_given(&self.servers))
    }

    /// Was a file of that kind given?
    pub fn has(&self, kind: FileKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Do the files show how large pools are?
    pub fn sets_pools(&self) -> bool {
        self.has(FileKind::Cmdline) || self.has_sysctl
    }

    /// Was any file given?
    pub fn has_any(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Containers of all pods.
    pub fn containers(&self) -> impl Iterator<Item = &Container> {
        self.pods.iter().flat_map(|pod| &pod.containers)
    }

    /// What settings of servers and of the kernel say at that place, with the kind of server.
    pub fn written_at(&self, place: &str) -> Vec<(Option<Kind>, Setting)> {
        let servers = [Kind::Postgres, Kind::Mysql].map(|kind| self.servers(kind)).concat();
        let in_pods = self
            .containers()
            .flat_map(|container| [&container.postgres, &container.mysql]);
        let of_servers = servers.iter().chain(in_pods.flatten());
        let of_servers =
            of_servers.flat_map(|server| server.settings.iter().map(move |line| (Some(server.kind), line)));
        let all = of_servers.chain(self.sysctl.iter().map(|line| (None, line)));
        all.filter(|(_, line)| line.place == place)
            .map(|(kind, line)| (kind, line.clone()))
            .collect()
    }

    /// Environment variables that services and containers are started with: where, name, value.
    pub fn environment(&self) -> impl Iterator<Item = &Setting> {
        let services = self.services.iter().flat_map(|service| &service.environment);
        let services = services.chain(self.environment.iter().flat_map(|(_, set)| set));
        let runs = self.runs.iter().flat_map(|run| &run.environment);
        services
            .chain(runs)
            .chain(self.containers().flat_map(|container| &container.environment))
    }

    /// Is it a variable of a container with a limit of memory?
    pub fn limits_memory(&self, line: &Setting) -> bool {
        let of_pods = self.pods.iter().flat_map(Pod::limited);
        let of_runs = self.runs.iter().filter(|run| run.memory.is_some());
        let mut all = of_pods
            .flat_map(|container| &container.environment)
            .chain(of_runs.flat_map(|run| &run.environment));
        all.any(|set| set == line)
    }
}
