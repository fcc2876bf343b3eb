//! Manifests of Kubernetes: the pods that they describe, or that an operator makes of their objects.

use model::Unread;

use super::garbled::empty;
use super::operators;
use super::pod::{self, Pod};
use super::yaml::{self, Node};

pub(super) fn parse(path: &str, text: &str) -> Result<Vec<Pod>, Unread> {
    let mut pods = Vec::new();
    for document in yaml::documents(path, text)? {
        let items = document.get("items").map_or(&[][..], Node::items);
        for object in std::iter::once(&document).chain(items) {
            if let Some(spec) = spec(object) {
                pods.push(pod::pod(path, object, spec)?);
            } else {
                pods.extend(operators::pod(path, object)?);
            }
        }
    }
    if pods.is_empty() {
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
