//! Containers by name: control groups know them by id, and their engines know which name that is.

use serde_json::Value;

use host::Source;

/// Where Docker keeps one directory for each container, which is readable by root.
const DOCKER: &str = "/var/lib/docker/containers";
/// Where Podman keeps the list of all containers of root.
const PODMAN: &str = "/var/lib/containers/storage/overlay-containers/containers.json";
/// Where a kubelet keeps one link for each container, called `POD_NAMESPACE_CONTAINER-ID.log`.
const KUBELET: &str = "/var/log/containers";

/// The ids of all containers of that name. A pod's name means all of its containers.
pub(super) fn ids(source: &Source, name: &str) -> Vec<String> {
    let ways: [fn(&Source, &str) -> Vec<String>; 3] = [docker, podman, kubelet];
    ways.into_iter().flat_map(|way| way(source, name)).collect()
}

fn docker(source: &Source, name: &str) -> Vec<String> {
    let mut ids = source.list(DOCKER).known().cloned().unwrap_or_default();
    ids.retain(|id| {
        let configuration = json(source, &format!("{DOCKER}/{id}/config.v2.json"));
        let own = configuration["Name"].as_str().unwrap_or_default();
        own.trim_start_matches('/') == name
    });
    ids
}

fn podman(source: &Source, name: &str) -> Vec<String> {
    let containers = json(source, PODMAN);
    let has_name = |container: &&Value| {
        let names = container["names"].as_array();
        names.is_some_and(|names| names.iter().any(|own| own.as_str() == Some(name)))
    };
    let found = containers.as_array().into_iter().flatten().filter(has_name);
    found
        .filter_map(|container| Some(container["id"].as_str()?.to_owned()))
        .collect()
}

/// Null where there is no such file, or it is no JSON.
fn json(source: &Source, path: &str) -> Value {
    let text = source.text(path);
    let value = text.known().and_then(|text| serde_json::from_str(text).ok());
    value.unwrap_or_default()
}

fn kubelet(source: &Source, name: &str) -> Vec<String> {
    let links = source.list(KUBELET);
    let links = links.known().map_or(&[][..], Vec::as_slice).iter();
    let id = |link: &String| {
        let (before, id) = link.strip_suffix(".log")?.rsplit_once('-')?;
        let mut parts = before.split('_');
        let (pod, container) = (parts.next()?, parts.nth(1)?);
        (pod == name || container == name).then(|| id.to_owned())
    };
    links.filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::ids;
    use host::{Source, Tree};

    #[test]
    fn each_engine_s_names_lead_to_ids() {
        let tree = Tree::default()
            .file(
                "/var/lib/docker/containers/aa11/config.v2.json",
                r#"{"ID":"aa11","Name":"/web"}"#,
            )
            .file(
                "/var/lib/docker/containers/aa22/config.v2.json",
                r#"{"ID":"aa22","Name":"/webs"}"#,
            )
            .file(
                "/var/lib/containers/storage/overlay-containers/containers.json",
                r#"[{"id":"bb11","names":["db"],"image":"x"},{"id":"bb22","names":["other","web"]}]"#,
            )
            .file("/var/log/containers/shop-1_default_web-cc11.log", "")
            .file("/var/log/containers/shop-1_default_db-cc22.log", "");
        let source = Source::from_tree("test", tree);
        assert_eq!(ids(&source, "web"), ["aa11", "bb22", "cc11"]);
        assert_eq!(ids(&source, "shop-1"), ["cc22", "cc11"]);
        assert!(ids(&source, "none").is_empty());
    }
}
