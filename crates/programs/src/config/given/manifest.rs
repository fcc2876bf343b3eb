//! Manifests of Kubernetes: the pods that they describe, or that an operator makes of their objects, and what nodes are set up with.

use model::{Bytes, Cause, Unread};

use super::config_map::ConfigMaps;
use super::garbled::empty;
use super::node::{self, Setup};
use super::operators;
use super::pod::{self, Pod};
use super::yaml::{self, Node};
use crate::config::Setting;

/// What a file of manifests has.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) pods: Vec<Pod>,
    pub(super) nodes: Vec<Setup>,
    pub(super) aligned: Option<Setting>,
    /// That no pod can be in it.
    pub(super) without_pod: Option<String>,
}

/// What a kubelet refuses of its configuration goes to `refused`.
pub(super) fn parse(path: &str, text: &str, refused: &mut Vec<Unread>) -> Result<Manifest, Unread> {
    let mut read = Manifest::default();
    let mut is_kubelet = false;
    let documents = yaml::documents(path, text)?;
    let all: Vec<&Node> = documents.iter().flat_map(objects).collect();
    read.pods.extend(operators::stackgres(&all)?);
    let maps = ConfigMaps::of(&all);
    for document in &documents {
        if document.text_of("kind") == Some("KubeletConfiguration") {
            is_kubelet = true;
            refused.extend(not_kept(document).chain(reserved(document)).chain(unequal(document)));
            read.aligned = aligned(document);
        }
        for object in objects(document) {
            if let Some(setup) = node::setup(object)? {
                read.nodes.push(setup);
                continue;
            }
            if let Some(pod) = operators::pod(object)? {
                read.pods.push(pod);
                continue;
            }
            let specs = specs(object);
            for spec in &specs {
                read.pods.push(pod::pod(object, spec, &maps)?);
            }
            // An object of an operator has resources without containers.
            if specs.is_empty() && object.get("kind").is_some() {
                let name = object.get("metadata").map_or_else(String::new, pod::named);
                read.pods.extend(operators::of_values(&name, object)?);
            }
        }
    }
    if read.pods.is_empty() && read.nodes.is_empty() && !is_kubelet {
        for document in documents.iter().filter(|document| document.get("kind").is_none()) {
            read.pods.extend(operators::of_values("the chart", document)?);
        }
    }
    if read.pods.is_empty() && read.nodes.is_empty() && !is_kubelet {
        let kinds: Option<Vec<&str>> = all.iter().map(|object| without_pod(object)).collect();
        let Some([first, ..]) = kinds.as_deref() else {
            return Err(empty(path, "no pod is in it (a Pod, or a template with containers)"));
        };
        read.without_pod = Some(format!("{path}: no pod is in it ({first}), so nothing in it is judged"));
    }
    Ok(read)
}

/// Groups of Kubernetes' own objects, beside those of workloads.
const GROUPS: [&str; 7] = [
    "",
    "autoscaling",
    "policy",
    "rbac.authorization.k8s.io",
    "networking.k8s.io",
    "storage.k8s.io",
    "scheduling.k8s.io",
];

/// The kind of an object of Kubernetes itself that has no pods and makes none: people keep it beside those that do.
fn without_pod(object: &Node) -> Option<&str> {
    const WITH: [&str; 4] = ["Pod", "PodTemplate", "ReplicationController", "List"];
    let (version, kind) = (object.text_of("apiVersion")?, object.text_of("kind")?);
    let (group, _) = version.split_once('/').unwrap_or_default();
    let is_with = group.is_empty() && WITH.iter().any(|with| with.eq_ignore_ascii_case(kind));
    (GROUPS.contains(&group) && !is_with).then_some(kind)
}

/// The objects of a document: those of a list, or itself.
fn objects(document: &Node) -> &[Node] {
    match document.items_of("items") {
        [] => std::slice::from_ref(document),
        items => items,
    }
}

/// Where containers are: in a pod, and in the templates of pods in other objects, whatever these call them (`podTemplate` of Elastic's).
fn specs(node: &Node) -> Vec<&Node> {
    let has_containers = node.get("containers").is_some_and(|all| !all.items().is_empty());
    let below = node.entries().iter().map(|(_, node)| node).chain(node.items());
    has_containers
        .then_some(node)
        .into_iter()
        .chain(below.flat_map(specs))
        .collect()
}

fn is_static(kubelet: &Node) -> bool {
    kubelet.text_of("memoryManagerPolicy") == Some("Static")
}

/// The policy by which all memory of a container comes from one node.
fn aligned(kubelet: &Node) -> Option<Setting> {
    let name = "topologyManagerPolicy";
    let policy = kubelet.get(name).filter(|_| is_static(kubelet))?;
    policy.setting(name).filter(|policy| policy.value == "single-numa-node")
}

/// hugetlb pages that are to be kept for daemons: parseResourceList() takes no such resource.
fn not_kept(kubelet: &Node) -> impl Iterator<Item = Unread> {
    let places = ["kubeReserved", "systemReserved"].into_iter();
    let all = places.flat_map(|key| {
        kubelet
            .get(key)
            .map_or(&[][..], Node::entries)
            .iter()
            .map(move |own| (key, own))
    });
    let pages = all.filter(|(_, (resource, _))| resource.starts_with("hugepages-"));
    pages.map(|(key, (resource, node))| {
        let why = format!(
            "{key}: {resource}: the kubelet does not start, as it keeps cpu, memory, ephemeral-storage and pid only (`cannot reserve`): leave it out"
        );
        Unread::new(Cause::Garbled, node.place(), why)
    })
}

/// hugetlb pages in `reservedMemory`: the memory manager compares each resource with kubeReserved, systemReserved and evictionHard, which take
/// no pages (kubernetes/enhancements, KEP-6252), so any amount but 0 differs.
fn reserved(kubelet: &Node) -> Vec<Unread> {
    let nodes = kubelet
        .get("reservedMemory")
        .filter(|_| is_static(kubelet))
        .map_or(&[][..], Node::items);
    let limits = nodes
        .iter()
        .filter_map(|node| node.get("limits"))
        .flat_map(Node::entries);
    let is_any = |node: &Node| node.text().and_then(pod::amount) != Some(0);
    let pages = limits.filter(|(resource, node)| resource.starts_with("hugepages-") && is_any(node));
    let refused = pages.map(|(resource, node)| {
        let why = format!(
            "reservedMemory: {resource}: the kubelet does not start, as neither kubeReserved nor systemReserved can hold pages and the sums must be equal: leave it out"
        );
        Unread::new(Cause::Garbled, node.place(), why)
    });
    refused.collect()
}

/// Memory in `reservedMemory` that is in sum another than what kubeReserved, systemReserved and evictionHard keep, which the kubelet compares. Not judged where one of
/// them is not in this file: an option or a file beside it may say it.
fn unequal(kubelet: &Node) -> Option<Unread> {
    let reserved = kubelet.get("reservedMemory").filter(|_| is_static(kubelet))?;
    let amount = |node: &Node| node.text().and_then(pod::amount);
    let sum = |all: Vec<Option<u64>>| all.into_iter().try_fold(0u64, |sum, own| sum.checked_add(own?));
    let of_nodes = reserved
        .items()
        .iter()
        .filter_map(|node| node.at(&["limits", "memory"]));
    let has = sum(of_nodes.map(amount).collect())?;
    let eviction = kubelet.get("evictionHard");
    let by_default = eviction.is_none() || kubelet.text_of("mergeDefaultEvictionSettings") == Some("true");
    let eviction = match eviction.and_then(|own| own.get("memory.available")) {
        Some(own) => amount(own),
        None => Some(if by_default { Bytes::mib(100).0 } else { 0 }),
    };
    let [kube, system] = ["kubeReserved", "systemReserved"].map(|key| kubelet.at(&[key, "memory"]).and_then(amount));
    let wants = sum(vec![kube, system, eviction])?;
    let why = format!(
        "reservedMemory: memory is {} on all nodes together: the kubelet does not start, as kubeReserved, systemReserved and evictionHard (100M by default) keep {}, and the sums must be equal",
        Bytes(has).exact(),
        Bytes(wants).exact()
    );
    (has != wants).then(|| Unread::new(Cause::Garbled, reserved.place(), why))
}
