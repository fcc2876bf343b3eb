//! Objects from which operators of Kubernetes make pods: virtual machines of KubeVirt, clusters of CloudNativePG.

use model::Unread;

use super::ini::Server;
use super::pod::{Asks, Container, Pod, Quantity, Volume, named, quantities};
use super::yaml::Node;
use crate::Kind;
use crate::config::Setting;

/// The pod that an operator makes of an object, as far as hugetlb pages go; `None` of other objects.
pub(super) fn pod(path: &str, object: &Node) -> Result<Option<Pod>, Unread> {
    let kind = object.get("kind").and_then(Node::text).unwrap_or_default();
    let version = object.get("apiVersion").and_then(Node::text).unwrap_or_default();
    match kind {
        "VirtualMachine" | "VirtualMachineInstance" if version.starts_with("kubevirt.io/") => machine(path, object),
        "Cluster" if version.starts_with("postgresql.cnpg.io/") => cluster(path, object),
        _ => Ok(None),
    }
}

/// The pod of a guest requests its memory in pages of that size, and mounts a hugetlbfs.
fn machine(path: &str, object: &Node) -> Result<Option<Pod>, Unread> {
    const PATHS: [&[&str]; 2] = [&["spec", "template", "spec", "domain"], &["spec", "domain"]];
    let domain = PATHS.iter().find_map(|path| object.at(path));
    let Some(domain) = domain else { return Ok(None) };
    let page = domain.at(&["memory", "hugepages", "pageSize"]);
    let asked = quantities(path, domain.at(&["resources", "requests"]))?;
    let memory =
        guest_memory(path, domain).or_else(|| asked.iter().find(|quantity| quantity.resource == "memory").cloned());
    let (limits, volumes, mounts) = match (page.and_then(Node::text), memory) {
        (Some(size), Some(memory)) => {
            let pages = Quantity {
                resource: format!("hugepages-{size}"),
                ..memory.clone()
            };
            let volume = Volume {
                place: memory.place.clone(),
                name: "hugepages".to_owned(),
                medium: format!("HugePages-{size}"),
            };
            let memory = Quantity {
                resource: "memory".to_owned(),
                ..memory
            };
            (vec![pages, memory], vec![volume], vec!["hugepages".to_owned()])
        }
        _ => (Vec::new(), Vec::new(), Vec::new()),
    };
    let place = format!("{path}:{}", domain.line);
    let container = Container {
        place: place.clone(),
        name: "the guest".to_owned(),
        requests: Vec::new(),
        limits,
        mounts,
        environment: Vec::new(),
        asks: None,
        java: None,
        postgres: None,
        mysql: None,
    };
    Ok(Some(of(place, object, container, volumes)))
}

fn guest_memory(path: &str, domain: &Node) -> Option<Quantity> {
    let node = domain.at(&["memory", "guest"])?;
    let written = node.text()?;
    Some(Quantity {
        place: format!("{path}:{}", node.line),
        resource: "guest".to_owned(),
        written: written.to_owned(),
        amount: super::pod::amount(written)?,
    })
}

/// Each instance has the resources of the cluster, and PostgreSQL's own default is to try.
fn cluster(path: &str, object: &Node) -> Result<Option<Pod>, Unread> {
    let Some(spec) = object.get("spec") else {
        return Ok(None);
    };
    let place = format!("{path}:{}", spec.line);
    let parameters = spec.at(&["postgresql", "parameters"]).map_or(&[][..], Node::entries);
    let settings = parameters.iter().filter_map(|(name, node)| {
        Some(Setting {
            place: format!("{path}:{}", node.line),
            name: name.to_ascii_lowercase(),
            value: node.text()?.to_owned(),
        })
    });
    let server = Server::new(Kind::Postgres, &place, settings.collect());
    let setting = server.settings.last("huge_pages");
    let asks = server.asks().then(|| Asks {
        place: setting.map_or_else(|| place.clone(), |set| set.place.clone()),
        written: setting.map_or_else(|| "huge_pages = try (default)".to_owned(), |set| set.value.clone()),
        program: "PostgreSQL",
        switch: "huge_pages: \"off\" in spec.postgresql.parameters",
    });
    let container = Container {
        place: place.clone(),
        name: "postgres".to_owned(),
        requests: quantities(path, spec.at(&["resources", "requests"]))?,
        limits: quantities(path, spec.at(&["resources", "limits"]))?,
        // PostgreSQL needs no path.
        mounts: vec!["none".to_owned()],
        environment: Vec::new(),
        asks,
        java: None,
        postgres: Some(server),
        mysql: None,
    };
    Ok(Some(of(place, object, container, Vec::new())))
}

fn of(place: String, object: &Node, container: Container, volumes: Vec<Volume>) -> Pod {
    Pod {
        place,
        name: named(object.get("metadata").unwrap_or(object)),
        containers: vec![container],
        volumes,
    }
}
