//! Manifests of Kubernetes: the pods that they describe, or that an operator makes of their objects.

use model::{Cause, Unread};

use super::garbled::empty;
use super::operators;
use super::pod::{self, Pod};
use super::yaml::{self, Node};

/// The pods; what a kubelet refuses of its configuration goes to `refused`.
pub(super) fn parse(path: &str, text: &str, refused: &mut Vec<Unread>) -> Result<Vec<Pod>, Unread> {
    let mut pods = Vec::new();
    let mut is_kubelet = false;
    for document in yaml::documents(path, text)? {
        if document.get("kind").and_then(Node::text) == Some("KubeletConfiguration") {
            is_kubelet = true;
            refused.extend(reserved(path, &document));
        }
        let items = document.get("items").map_or(&[][..], Node::items);
        for object in std::iter::once(&document).chain(items) {
            if let Some(spec) = spec(object) {
                pods.push(pod::pod(path, object, spec)?);
            } else {
                pods.extend(operators::pod(path, object)?);
            }
        }
    }
    if pods.is_empty() && !is_kubelet {
        return Err(empty(path, "no pod is in it (a Pod, or a template with containers)"));
    }
    Ok(pods)
}

/// Where the containers are: in a pod, in a template of one, in a template of a job.
fn spec(object: &Node) -> Option<&Node> {
    const PATHS: [&[&str]; 3] = [
        &["spec", "jobTemplate", "spec", "template", "spec"],
        &["spec", "template", "spec"],
        &["spec"],
    ];
    let specs = PATHS.iter().filter_map(|path| object.at(path));
    specs.into_iter().find(|spec| spec.get("containers").is_some())
}

/// hugetlb pages in `reservedMemory`: the memory manager compares each resource with kubeReserved, systemReserved and evictionHard, which take
/// no pages (kubernetes/enhancements, KEP-6252), so any amount differs.
fn reserved(path: &str, kubelet: &Node) -> Vec<Unread> {
    let is_static = kubelet.get("memoryManagerPolicy").and_then(Node::text) == Some("Static");
    let nodes = kubelet
        .get("reservedMemory")
        .filter(|_| is_static)
        .map_or(&[][..], Node::items);
    let limits = nodes
        .iter()
        .filter_map(|node| node.get("limits"))
        .flat_map(Node::entries);
    let pages = limits.filter(|(resource, _)| resource.starts_with("hugepages-"));
    let refused = pages.map(|(resource, node)| {
        let why = format!(
            "reservedMemory: {resource}: the kubelet does not start, as neither kubeReserved nor systemReserved can hold pages and the sums must be equal: leave it out"
        );
        Unread::new(Cause::Garbled, format!("{path}:{}", node.line), why)
    });
    refused.collect()
}
