//! Objects from which operators of Kubernetes make pods: virtual machines of KubeVirt, clusters of PostgreSQL.

use model::{Cause, Unread};

use super::asks::{self, Asks};
use super::config_map;
use super::ini::Server;
use super::pod::{Container, IN_RESOURCES, Pod, Quantity, Volume, VolumeMount, memory, named, quantities, quantity};
use super::starts::Start;
use super::yaml::Node;
use crate::config::Setting;
use crate::{Kind, image_names};

/// Clusters of PostgreSQL, by kind and API group: CloudNativePG's, Zalando's, Crunchy Data's, and Percona's, which is made of the latter.
const CLUSTERS: [(&str, &str); 4] = [
    ("Cluster", "postgresql.cnpg.io"),
    ("postgresql", "acid.zalan.do"),
    ("PostgresCluster", "postgres-operator.crunchydata.com"),
    ("PerconaPGCluster", "pgv2.percona.com"),
];

const STACKGRES: &str = "stackgres.io";

/// Where such objects have the server's parameters, those of Crunchy Data's later versions last.
const PARAMETERS: [&[&str]; 3] = [
    &["postgresql", "parameters"],
    &["patroni", "dynamicConfiguration", "postgresql", "parameters"],
    &["config", "parameters"],
];

/// The pod that an operator makes of an object, as far as hugetlb pages go; `None` of other objects.
pub(super) fn pod(object: &Node) -> Result<Option<Pod>, Unread> {
    match object.object() {
        ("VirtualMachine" | "VirtualMachineInstance", "kubevirt.io") => machine(object),
        own if CLUSTERS.contains(&own) => cluster(object),
        _ => Ok(None),
    }
}

/// The pods that StackGres makes of the objects of a file: a cluster names its profile and its parameters; without a cluster one of each goes together.
pub(super) fn stackgres(objects: &[&Node]) -> Result<Vec<Pod>, Unread> {
    let of_kind = |name: &str| -> Vec<&Node> {
        let own = objects.iter().copied();
        own.filter(|object| object.object() == (name, STACKGRES)).collect()
    };
    let (profiles, configs) = (of_kind("SGInstanceProfile"), of_kind("SGPostgresConfig"));
    let clusters = of_kind("SGCluster");
    let of_clusters = clusters.iter().filter_map(|cluster| {
        let profile = by_name(&profiles, cluster.at(&["spec", "sgInstanceProfile"]))?;
        let config = by_name(&configs, cluster.at(&["spec", "configurations", "sgPostgresConfig"]))?;
        Some((*cluster, profile, config))
    });
    let mut all: Vec<(&Node, &Node, &Node)> = of_clusters.collect();
    if let ([profile], [config], []) = (&profiles[..], &configs[..], &clusters[..]) {
        all.push((profile, profile, config));
    }
    all.into_iter()
        .map(|(object, profile, config)| of_stackgres(object, profile, config))
        .collect()
}

fn by_name<'n>(all: &[&'n Node], name: Option<&Node>) -> Option<&'n Node> {
    let name = name?.text()?;
    let is_it = |object: &&Node| object.get("metadata").is_some_and(|metadata| named(metadata) == name);
    all.iter().copied().find(is_it)
}

/// Its container `patroni` gets the pages of the profile. It goes by the name of the cluster, or else of the profile.
fn of_stackgres(object: &Node, profile: &Node, config: &Node) -> Result<Pod, Unread> {
    let spec = profile.get("spec").unwrap_or(profile);
    let place = spec.place();
    let mut set = config.at(&["spec", "postgresql.conf"]).map_or_else(Vec::new, settings);
    // StackGres sets `off` where the parameters do not set it.
    let default = Setting::new(config.place(), "huge_pages", "off");
    set.insert(0, default);
    let server = Server::new(Kind::Postgres, &place, set);
    let is_off = server.settings.last("huge_pages").is_some_and(|set| set.value == "off");
    let mut limits = quantities(spec.get("hugePages"))?;
    for resource in ["cpu", "memory"] {
        let own = spec.get(resource).map(|node| quantity(resource, node));
        limits.extend(own.transpose()?);
    }
    let container = Container {
        place: place.clone(),
        name: "patroni".to_owned(),
        limits,
        sized_in: "spec.hugePages of its profile",
        asks: (!is_off).then(|| asks_of(&server)),
        postgres: Some(server),
        version: object.at(&["spec", "postgres", "version"]).and_then(major),
        ..Container::default()
    };
    Ok(Pod {
        place,
        name: named(object.get("metadata").unwrap_or(object)),
        containers: vec![container],
        ..Pod::default()
    })
}

/// The pod of a guest requests its memory in pages of that size, and mounts a hugetlbfs.
fn machine(object: &Node) -> Result<Option<Pod>, Unread> {
    const PATHS: [&[&str]; 2] = [&["spec", "template", "spec", "domain"], &["spec", "domain"]];
    let domain = PATHS.iter().find_map(|path| object.at(path));
    let Some(domain) = domain else { return Ok(None) };
    let page = domain.at(&["memory", "hugepages", "pageSize"]);
    let asked = quantities(domain.at(&["resources", "requests"]))?;
    let requested = asked.into_iter().find(|quantity| quantity.resource == "memory");
    let (guest, refused) = (
        guest_memory(domain),
        Vec::from_iter(page.and_then(|_| beyond(domain, requested.as_ref()))),
    );
    // Its pod gets pages for the smaller of both (renderresources.go, WithHugePages()).
    let memory = match (guest, requested) {
        (Some(guest), Some(requested)) if requested.amount >= guest.amount => Some(guest),
        (guest, requested) => requested.or(guest),
    };
    let (limits, volumes, mounts) = match (page.and_then(Node::text), memory) {
        (Some(size), Some(memory)) => {
            let key = Some(if memory.resource == GUEST { GUEST } else { "memory" });
            let pages = Quantity {
                resource: format!("hugepages-{size}"),
                key,
                ..memory.clone()
            };
            let volume = Volume {
                place: memory.place.clone(),
                name: "hugepages".to_owned(),
                medium: format!("HugePages-{size}"),
            };
            let memory = Quantity {
                resource: "memory".to_owned(),
                key,
                ..memory
            };
            let mount = VolumeMount {
                volume: volume.name.clone(),
                directory: "/dev/hugepages".to_owned(),
            };
            (vec![pages, memory], vec![volume], vec![mount])
        }
        _ => (Vec::new(), Vec::new(), Vec::new()),
    };
    let place = domain.place();
    let container = Container {
        place: place.clone(),
        name: "the guest".to_owned(),
        limits,
        sized_in: IN_RESOURCES,
        mounts,
        ..Container::default()
    };
    Ok(Some(Pod {
        place,
        name: named(object.get("metadata").unwrap_or(object)),
        containers: vec![container],
        volumes,
        refused,
        ..Pod::default()
    }))
}

/// A guest that has more memory than its pod gets pages for.
fn beyond(domain: &Node, requested: Option<&Quantity>) -> Option<Unread> {
    let (guest, requested) = (guest_memory(domain)?, requested?);
    let why = format!(
        "requests.memory: {} is less than the guest's {}, and its pod gets pages for the smaller of both: the guest does not start, as all of its memory is taken at once (leave \
         requests.memory out, or have both equal)",
        requested.written, guest.written
    );
    (requested.amount < guest.amount).then(|| Unread::new(Cause::Garbled, requested.place.clone(), why))
}

/// The memory of a guest, whose pod gets some more.
const GUEST: &str = "guest";

fn guest_memory(domain: &Node) -> Option<Quantity> {
    let node = domain.at(&["memory", "guest"])?;
    let written = node.text()?;
    Some(Quantity {
        place: node.place(),
        resource: GUEST.to_owned(),
        key: None,
        written: written.to_owned(),
        amount: super::pod::amount(written)?,
    })
}

/// What makes pods of PostgreSQL, whose own default is to try.
fn cluster(object: &Node) -> Result<Option<Pod>, Unread> {
    let Some(spec) = object.get("spec") else {
        return Ok(None);
    };
    let place = spec.place();
    let parameters = PARAMETERS.iter().filter_map(|keys| spec.at(keys));
    let set = parameters.flat_map(settings);
    let server = Server::new(Kind::Postgres, &place, set.collect());
    // Crunchy Data's has resources for each set of instances, and sets huge_pages = off where they name no hugetlb pages (its pull request 3581).
    let sets = spec.items_of("instances");
    let instances = if sets.is_empty() {
        std::slice::from_ref(spec)
    } else {
        sets
    };
    // Earlier ones do not, which a parameter of another name shows that was to switch them off.
    let may_ask = sets.is_empty() || !server.misspelt().is_empty();
    let containers = instances.iter().map(|node| {
        let resources = |key| quantities(node.at(&["resources", key]));
        Ok(Container {
            place: node.place(),
            name: match sets {
                [] => "postgres".to_owned(),
                _ => named(node),
            },
            requests: resources("requests")?,
            limits: resources("limits")?,
            sized_in: IN_RESOURCES,
            asks: may_ask.then(|| asks_of(&server)),
            postgres: Some(server.clone()),
            version: version(spec),
            ..Container::default()
        })
    });
    Ok(Some(Pod {
        place: place.clone(),
        name: named(object.get("metadata").unwrap_or(object)),
        containers: containers.collect::<Result<_, Unread>>()?,
        ..Pod::default()
    }))
}

/// Options of a JVM beside the resources of a chart or of an operator's object: in texts and variables, and by their names (Strimzi's `jvmOptions`).
fn java_options(values: &Node) -> Vec<Setting> {
    let texts = values.entries().iter().filter_map(|(name, node)| node.setting(name));
    let texts = texts.filter(|set| set.value.contains("-X"));
    let lists = ["env", "extraEnv", "extraEnvs", "extraEnvVars"].iter();
    let variables = lists.flat_map(|key| values.items_of(key));
    let variables = variables.filter_map(|node| node.get("value")?.setting(node.text_of("name")?));
    let own = values.get("jvmOptions").map_or(&[][..], Node::entries).iter();
    let own = own.flat_map(|(name, node)| {
        let more = node.entries().iter().filter(move |_| name == "-XX");
        let more = more.filter_map(|(option, value)| {
            let option = match value.text()? {
                "true" => format!("-XX:+{option}"),
                "false" => format!("-XX:-{option}"),
                text => format!("-XX:{option}={text}"),
            };
            Some(Setting::new(value.place(), "jvmOptions", option))
        });
        let size = node.text().map(|size| format!("{name}{size}"));
        let size = size.map(|option| Setting::new(node.place(), "jvmOptions", option));
        size.into_iter().chain(more)
    });
    texts.chain(variables).chain(own).collect()
}

/// The server of PostgreSQL whose file is a text beside the resources of a chart.
fn beside(values: &Node) -> Option<Server> {
    let texts = values.entries().iter();
    let set = texts.flat_map(|(name, node)| config_map::of_file(Kind::Postgres, name, node).0);
    let set: Vec<Setting> = set.collect();
    (!set.is_empty()).then(|| Server::new(Kind::Postgres, &values.place(), set))
}

/// The containers of a chart's values: wherever these have resources with hugetlb pages, by the key above them.
pub(super) fn of_values(name: &str, values: &Node) -> Result<Vec<Pod>, Unread> {
    let resources = |key| quantities(values.at(&["resources", key]));
    let (requests, limits) = (resources("requests")?, resources("limits")?);
    let mut asked = requests.iter().chain(&limits);
    let mut pods = Vec::new();
    let start = Start {
        place: values.place(),
        environment: java_options(values),
        memory: memory(&limits),
        ..Start::default()
    };
    let java = start
        .java()
        .filter(|_| limits.iter().any(|limit| limit.resource == "memory"));
    if java.is_some() || asked.any(|quantity| quantity.resource.starts_with("hugepages-")) {
        let place = start.place;
        let container = Container {
            place: place.clone(),
            name: name.to_owned(),
            asks: asks::of_options(&start.environment),
            java,
            postgres: beside(values),
            environment: start.environment,
            requests,
            limits,
            sized_in: IN_RESOURCES,
            ..Container::default()
        };
        // The name of the pod is the template's.
        pods.push(Pod {
            place,
            containers: vec![container],
            ..Pod::default()
        });
    }
    for (name, below) in values.entries() {
        pods.extend(of_values(name, below)?);
    }
    Ok(pods)
}

/// The major version of the server of a cluster, written alone or in the name of its image.
fn version(spec: &Node) -> Option<u32> {
    let own = spec
        .get("postgresVersion")
        .or_else(|| spec.at(&["postgresql", "version"]));
    let image = ["imageName", "image", "dockerImage"]
        .iter()
        .find_map(|key| spec.get(key)?.text());
    own.and_then(major).or_else(|| image_names::postgres_version(image?))
}

fn major(node: &Node) -> Option<u32> {
    node.text()?.split('.').next()?.parse().ok()
}

/// Parameters of PostgreSQL, as YAML has them.
pub(super) fn settings(parameters: &Node) -> Vec<Setting> {
    let setting = |(name, node): &(String, Node)| node.setting(name.to_ascii_lowercase());
    parameters.entries().iter().filter_map(setting).collect()
}

fn asks_of(server: &Server) -> Asks {
    let set = server.settings.last("huge_pages");
    Asks {
        place: set.map_or(&server.path, |set| &set.place).clone(),
        written: set.map_or("huge_pages = try (default)", |set| &set.value).to_owned(),
        program: "PostgreSQL",
        switch: "huge_pages: \"off\" among the server's parameters",
    }
}
