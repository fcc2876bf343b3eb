//! Pods of Kubernetes: what their containers ask of hugetlb pages, and which volumes bring them.

mod quantities;

use std::collections::BTreeSet;
use std::path::Path;

use model::{Bytes, Unread};

use super::asks::{self, Asks};
use super::config_map::{self, ConfigMaps};
use super::ini::Server;
use super::java::Java;
use super::namespaces;
use super::provision::is_template;
use super::starts::Start;
use super::yaml::Node;
use crate::config::{Setting, Settings};
use crate::page_options::value_of;
use crate::{Kind, dpdk, image_names};
pub use quantities::{Quantity, Volume};
pub(super) use quantities::{amount, quantities, quantity};

/// A pod, or the template of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// `FILE:LINE` of its specification.
    pub place: String,
    /// Its name, or that of what makes it.
    pub name: String,
    /// Its containers, those that run first included.
    pub containers: Vec<Container>,
    /// The resources of all of them together (`spec.resources`), as those of a container without a name and a program.
    pub whole: Option<Container>,
    pub volumes: Vec<Volume>,
    /// Names of the volumes that are a hugetlbfs of the host.
    pub of_host: Vec<String>,
    /// The place of `hostUsers: false`: it has a user namespace of its own.
    pub own_users: Option<String>,
    /// Settings with which it does not start.
    pub(super) refused: Vec<Unread>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// `FILE:LINE`.
    pub place: String,
    pub name: String,
    /// Does it end before others start?
    pub is_init: bool,
    /// Empty where its operator chooses it.
    pub image: String,
    /// What it starts, the program first.
    pub words: Vec<String>,
    /// `resources.requests`.
    pub requests: Vec<Quantity>,
    /// `resources.limits`.
    pub limits: Vec<Quantity>,
    /// Where its object has these two, in words.
    pub sized_in: &'static str,
    pub mounts: Vec<VolumeMount>,
    /// Its environment, as far as it is written there.
    pub environment: Vec<Setting>,
    /// The program in it that is known to ask for hugetlb pages; a server of PostgreSQL may be set not to.
    pub asks: Option<Asks>,
    /// The JVM in it, as far as its command and variables show it.
    pub java: Option<Java>,
    /// The PostgreSQL server in it, with what its command sets.
    pub postgres: Option<Server>,
    /// The major version of that server, by its image or its object.
    pub version: Option<u32>,
    /// The MySQL or MariaDB server in it, if its command has `--large-pages`.
    pub mysql: Option<Server>,
    /// `ulimit -l` in a hook of its start: it holds for the hook's shell alone.
    pub hook: Option<Setting>,
}

/// A volume in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMount {
    /// The volume's name.
    pub volume: String,
    pub directory: String,
}

/// Pages of a size, and what asks for them.
pub type Asked<'p> = (Bytes, &'p Container, &'p Quantity);

impl Pod {
    /// What has resources: its containers, and itself.
    pub fn holders(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(&self.whole)
    }

    /// What it needs of each page size at a time: what itself has, or else what its containers have.
    pub fn hugetlb(&self) -> Vec<Asked<'_>> {
        let all = self.holders().flat_map(Container::hugetlb);
        let sizes: BTreeSet<Bytes> = all.map(|(page, ..)| page).collect();
        let whole = Vec::from_iter(&self.whole);
        let asked = |page: Bytes| match of_size(&whole, page) {
            none if none.is_empty() => self.by_container(page),
            own => own,
        };
        sizes.into_iter().flat_map(asked).collect()
    }

    /// The most that its containers need of a page size at a time.
    pub fn by_container(&self, page: Bytes) -> Vec<Asked<'_>> {
        let stages = self.stages().into_iter().map(|stage| of_size(&stage, page));
        let most = stages.max_by_key(|all| all.iter().map(|(.., own)| Bytes(own.amount)).sum::<Bytes>());
        most.unwrap_or_default()
    }

    /// The pages that a container may take: its own, and of sizes that it does not name those of the pod.
    pub fn allowed<'p>(&'p self, container: &'p Container) -> Vec<Asked<'p>> {
        let mut all = container.hugetlb();
        for asked in self.whole.iter().flat_map(Container::hugetlb) {
            if all.iter().all(|(page, ..)| *page != asked.0) {
                all.push(asked);
            }
        }
        all
    }

    /// Containers whose memory is limited, by their own limit or that of the pod.
    pub(super) fn limited(&self) -> impl Iterator<Item = &Container> {
        let is_limited = |container: &Container| container.limits.iter().any(|limit| limit.resource == "memory");
        let are_all = self.whole.as_ref().is_some_and(is_limited);
        let containers = self.containers.iter();
        containers.filter(move |container| are_all || is_limited(container))
    }

    /// Containers that run at a time: each that ends before others start, beside the sidecars before it, and at last all that stay.
    fn stages(&self) -> Vec<Vec<&Container>> {
        let (mut stay, mut stages): (Vec<&Container>, Vec<Vec<&Container>>) = (Vec::new(), Vec::new());
        for container in &self.containers {
            if container.is_init {
                stages.push(stay.iter().copied().chain([container]).collect());
            } else {
                stay.push(container);
            }
        }
        stages.push(stay);
        stages
    }
}

/// What these containers ask of pages of one size.
fn of_size<'c>(containers: &[&'c Container], page: Bytes) -> Vec<Asked<'c>> {
    let all = containers.iter().flat_map(|container| container.hugetlb());
    all.filter(|(size, ..)| *size == page).collect()
}

pub(super) const IN_RESOURCES: &str = "its limits and requests";

impl Container {
    /// Bytes of hugetlb pages by size: limits, and requests where there is none.
    pub fn hugetlb(&self) -> Vec<Asked<'_>> {
        let limited = |asked: &&Quantity| self.limits.iter().any(|limit| limit.resource == asked.resource);
        let requests = self.requests.iter().filter(|asked| !limited(asked));
        let all = self.limits.iter().chain(requests);
        all.filter_map(|quantity| Some((quantity.page()?, self, quantity)))
            .collect()
    }

    /// Pages that it asks for under a name that no kubelet offers.
    pub fn misnamed(&self) -> Option<&Quantity> {
        let is_misnamed = |own: &&Quantity| {
            let is_huge = own.resource.to_ascii_lowercase().starts_with("hugepage");
            is_huge && own.amount > 0 && own.page().is_none() && !is_template(&own.resource)
        };
        self.limits.iter().chain(&self.requests).find(is_misnamed)
    }

    /// Is it the pod itself?
    pub fn is_whole(&self) -> bool {
        self.name.is_empty()
    }

    /// What a program of DPDK in it asks for.
    pub fn dpdk(&self) -> Option<Setting> {
        dpdk::memory(&self.place, &self.words)
    }

    /// The mount on which a path lies.
    pub fn mount_of(&self, path: &str) -> Option<&VolumeMount> {
        let holds = |mount: &&VolumeMount| Path::new(path).starts_with(&mount.directory);
        let mounts = self.mounts.iter().filter(holds);
        mounts.max_by_key(|mount| mount.directory.len())
    }

    /// The value of an option of its command, as one word or two.
    pub fn option(&self, name: &str) -> Option<&str> {
        value_of(&self.words, name)
    }
}

/// What the containers of a pod have in common.
struct Around<'n> {
    volumes: &'n [Node],
    /// The volumes that are a hugetlbfs of the host.
    of_host: Vec<String>,
    maps: &'n ConfigMaps<'n>,
}

pub(super) fn pod<'n>(object: &Node, spec: &'n Node, maps: &'n ConfigMaps<'n>) -> Result<Pod, Unread> {
    let volumes = spec.items_of("volumes");
    let of_host: Vec<String> = volumes
        .iter()
        .filter(|node| asks::is_of_host(node))
        .map(named)
        .collect();
    let around = Around { volumes, of_host, maps };
    // A sidecar goes on beside the others.
    let is_init = |node: &Node| node.text_of("restartPolicy") != Some("Always");
    let first = spec.items_of("initContainers").iter().map(|node| (node, is_init(node)));
    let all = first.chain(spec.items_of("containers").iter().map(|node| (node, false)));
    let containers = all.map(|(node, is_init)| {
        Ok(Container {
            is_init,
            ..container(node, &around)?
        })
    });
    let containers: Result<Vec<_>, Unread> = containers.collect();
    let users = spec.get("hostUsers").filter(|node| node.text() == Some("false"));
    let sysctls = spec.at(&["securityContext", "sysctls"]).map_or(&[][..], Node::items);
    let refused = sysctls.iter().filter_map(|node| {
        let name = node.get("name")?.text()?;
        namespaces::refused(node.place(), name)
    });
    Ok(Pod {
        refused: refused.collect(),
        place: spec.place(),
        name: named(object.get("metadata").unwrap_or(object)),
        containers: containers?,
        whole: spec.get("resources").map(whole).transpose()?,
        volumes: volumes.iter().filter_map(volume).collect(),
        of_host: around.of_host,
        own_users: users.map(Node::place),
    })
}

pub(super) fn named(node: &Node) -> String {
    let name = node.text_of("name");
    name.unwrap_or("without a name").to_owned()
}

/// What a pod has beside what its containers have.
fn whole(node: &Node) -> Result<Container, Unread> {
    Ok(Container {
        place: node.place(),
        requests: quantities(node.get("requests"))?,
        limits: quantities(node.get("limits"))?,
        sized_in: "limits and requests of the pod's resources",
        ..Container::default()
    })
}

fn container(node: &Node, around: &Around<'_>) -> Result<Container, Unread> {
    let mounts = node.items_of("volumeMounts");
    let variables = node.items_of("env");
    let mut environment = around.maps.variables(node);
    environment.extend(variables.iter().filter_map(|node| variable(node, around.maps)));
    let lists = ["command", "args"].into_iter().filter_map(|key| node.get(key));
    let words: Vec<&Node> = lists.flat_map(Node::items).collect();
    let limits = quantities(node.at(&["resources", "limits"]))?;
    let start = Start {
        image: image(node).unwrap_or_default().to_owned(),
        memory: memory(&limits),
        ..start(node, &words, &environment)
    };
    let over_files = |mut server: Server| {
        let of_files = around.maps.settings(server.kind, around.volumes);
        let of_variables = configuration(server.kind, variables);
        server.settings = of_files.with(&of_variables).with(&server.settings);
        server
    };
    let postgres = start.server(Kind::Postgres).map(over_files);
    let postgres = postgres.map(|server| over_image(server, node));
    let mysql = start.server(Kind::Mysql).map(over_files).filter(Server::asks);
    let switch = "without --large-pages";
    let of_mysql = |_: &Server| Asks::new(start.place.clone(), "--large-pages", "the server", switch);
    let asks = asks::of_start(node, &words, &start)
        .or_else(|| mysql.as_ref().map(of_mysql))
        .or_else(|| asks::of_mounts(mounts, &around.of_host));
    let mount = |node: &Node| VolumeMount {
        volume: named(node),
        directory: node.text_of("mountPath").unwrap_or("/").to_owned(),
    };
    Ok(Container {
        asks,
        java: start.java(),
        mysql,
        postgres,
        version: image(node).and_then(image_names::postgres_version),
        place: start.place,
        name: named(node),
        is_init: false,
        image: start.image,
        words: start.words,
        requests: quantities(node.at(&["resources", "requests"]))?,
        limits,
        sized_in: IN_RESOURCES,
        mounts: mounts.iter().map(mount).collect(),
        environment,
        hook: hook(node),
    })
}

/// The limit of a container's memory.
pub(super) fn memory(limits: &[Quantity]) -> Option<(Bytes, Setting)> {
    let limit = limits.iter().find(|limit| limit.resource == "memory")?;
    let set = Setting::new(&limit.place, limit.field(), &limit.written);
    Some((Bytes(limit.amount), set))
}

/// A server's settings over those that its image sets.
fn over_image(mut server: Server, node: &Node) -> Server {
    if let Some(count) = image(node).and_then(image_names::max_connections) {
        let own = Settings(vec![Setting::new(server.path.clone(), "max_connections", count)]);
        server.settings = own.with(&server.settings);
    }
    server
}

/// What variables set of a server that hold a whole configuration of Patroni.
fn configuration(kind: Kind, variables: &[Node]) -> Settings {
    const NAMES: [&str; 2] = ["PATRONI_CONFIGURATION", "SPILO_CONFIGURATION"];
    let is_one = |node: &&Node| node.text_of("name").is_some_and(|name| NAMES.contains(&name));
    let values = variables.iter().filter(is_one).filter_map(|node| node.get("value"));
    let set = values.flat_map(|value| config_map::of_file(kind, "", value).0);
    Settings(set.collect())
}

fn hook(node: &Node) -> Option<Setting> {
    let command = node.at(&["lifecycle", "postStart", "exec", "command"])?;
    let mut words = command.items().iter().filter_map(Node::text);
    let word = words.find(|word| word.contains("ulimit -l"))?;
    Some(Setting::new(command.place(), "postStart", word))
}

/// What it starts: words of a shell's command are words, and an image of PostgreSQL starts it with options alone, as does one of any name
/// whose data directory is set.
fn start(node: &Node, words: &[&Node], environment: &[Setting]) -> Start {
    let words = words.iter().filter_map(|node| node.text());
    let mut words: Vec<String> = words.flat_map(|word| shlex::split(word).unwrap_or_default()).collect();
    let is_option = words.first().is_none_or(|word| word.starts_with('-'));
    let of_image = image(node).and_then(image_names::command);
    let of_data = asks::data(environment).map(|_| "postgres");
    if let Some(program) = of_image.or(of_data).filter(|_| is_option) {
        words.insert(0, program.to_owned());
    }
    Start {
        place: node.place(),
        words,
        environment: environment.to_vec(),
        ..Start::default()
    }
}

pub(super) fn image(node: &Node) -> Option<&str> {
    node.get("image")?.text()
}

fn variable(node: &Node, maps: &ConfigMaps<'_>) -> Option<Setting> {
    let value = node.text_of("value").or_else(|| maps.variable(node))?;
    Some(Setting::new(node.place(), node.text_of("name")?, value))
}

fn volume(node: &Node) -> Option<Volume> {
    let medium = node.at(&["emptyDir", "medium"])?;
    let text = medium.text()?;
    let is_huge = text.to_ascii_lowercase().starts_with("hugepage");
    is_huge.then(|| Volume {
        place: medium.place(),
        name: named(node),
        medium: text.to_owned(),
    })
}

#[cfg(test)]
mod tests;
