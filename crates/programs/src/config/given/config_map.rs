//! ConfigMaps of a file of manifests, from which its pods take variables and the files of their servers.

use super::ini;
use super::pod::named;
use super::yaml::Node;
use crate::Kind;
use crate::config::{Setting, Settings};

/// The ConfigMaps of a file by their names.
#[derive(Debug, Default)]
pub(super) struct ConfigMaps<'n>(Vec<(String, &'n Node)>);

impl<'n> ConfigMaps<'n> {
    pub(super) fn of(objects: &[&'n Node]) -> Self {
        let is_one = |object: &&Node| object.text_of("kind") == Some("ConfigMap");
        let maps = objects.iter().copied().filter(is_one);
        let all = maps.filter_map(|object| Some((named(object.get("metadata")?), object.get("data")?)));
        Self(all.collect())
    }

    fn data(&self, name: Option<&Node>) -> Option<&'n Node> {
        let name = name?.text()?;
        self.0.iter().find(|(own, _)| own == name).map(|(_, data)| *data)
    }

    /// The variables of whole maps that a container takes (`envFrom`).
    pub(super) fn variables(&self, container: &Node) -> Vec<Setting> {
        let sources = container.items_of("envFrom").iter();
        let maps = sources.filter_map(|source| self.data(source.at(&["configMapRef", "name"])));
        let set = maps.flat_map(Node::entries);
        set.filter_map(|(name, node)| node.setting(name)).collect()
    }

    /// What one variable of a container is, which is the value of a key.
    pub(super) fn variable(&self, variable: &Node) -> Option<&'n str> {
        let key = variable.at(&["valueFrom", "configMapKeyRef"])?;
        self.data(key.get("name"))?.text_of(key.text_of("key")?)
    }

    /// What the files in a pod's volumes set of its servers of a kind.
    pub(super) fn settings(&self, kind: Kind, volumes: &[Node]) -> Settings {
        let projected = volumes
            .iter()
            .filter_map(|volume| volume.at(&["projected", "sources"]))
            .flat_map(Node::items);
        let names = volumes
            .iter()
            .chain(projected)
            .filter_map(|volume| volume.at(&["configMap", "name"]));
        let files = names.filter_map(|name| self.data(Some(name))).flat_map(Node::entries);
        let set = files.flat_map(|(file, node)| of_file(kind, file, node).0);
        Settings(set.collect())
    }
}

/// What a file within another sets of a server: postgresql.conf, YAML of Patroni or of Spilo, my.cnf; nothing where it is another file.
pub(super) fn of_file(kind: Kind, file: &str, node: &Node) -> Settings {
    let path = &*node.path;
    // Its first line is behind that of its key.
    let text = "\n".repeat(node.key_line) + node.text().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_one = |ends: &[&str]| ends.iter().any(|end| file.ends_with(end));
    // Lines that the server refuses are those of its settings that decide on pages, which are looked at with the pod.
    let mut refused = Vec::new();
    let server = match kind {
        Kind::Postgres if has(&["postgresql:", "bootstrap:"]) && has(&["parameters:"]) => {
            ini::patroni(path, &text).ok()
        }
        Kind::Postgres
            if is_one(&["conf", "onfiguration"]) && has(&["shared_buffers", "huge_pages", "max_connections"]) =>
        {
            Some(ini::postgres(path, &text, &mut refused))
        }
        Kind::Mysql if has(&["[mysqld]", "[mariadb]", "[server]"]) => {
            Some(ini::mysql(path, &text, &mut refused, &mut Vec::new()))
        }
        _ => None,
    };
    server.map_or_else(Settings::default, |server| server.settings)
}

#[cfg(test)]
mod tests {
    use super::super::Given;

    #[test]
    fn pods_take_variables_and_files_of_servers_from_the_maps_of_their_file() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  patroni.yaml: |\n    bootstrap:\n      dcs:\n        postgresql:\n\
                    \x20         parameters: {shared_buffers: 256MB, max_connections: 300}\n  JAVA_OPTS: -Xmx1g\n---\n\
                    apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: db\n    image: patroni:2\n    envFrom:\n\
                    \x20   - configMapRef: {name: a}\n  - name: other\n    image: busybox\n    env:\n    - name: OPTS\n\
                    \x20     valueFrom: {configMapKeyRef: {name: a, key: JAVA_OPTS}}\n  volumes:\n  - name: c\n    configMap: {name: a}\n";
        let mut given = Given::default();
        given.add("p.yaml", text.as_bytes(), None).expect("a pod");
        let [db, other] = &given.pods[0].containers[..] else {
            panic!("{:?}", given.pods)
        };
        let server = db.postgres.as_ref().expect("a server");
        let set = server.settings.last("shared_buffers").expect("a setting");
        assert_eq!((set.place.as_str(), set.value.as_str()), ("p.yaml:9", "256MB"));
        assert!(db.environment.iter().any(|set| set.name == "JAVA_OPTS"), "{db:?}");
        assert_eq!(other.environment[0].value, "-Xmx1g");
        assert_eq!(other.postgres, None);
    }
}
