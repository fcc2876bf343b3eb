//! How files below /sys hold after the next boot too, on systems that one configuration sets up.

use host::snapshot::hugetlb::{file_of_pool, path_in_pool};
use host::snapshot::thp::THP;
use model::Bytes;

use super::Distribution;

const NODES: &str = "/sys/devices/system/node/node";

impl Distribution {
    /// In its configuration, each file with its value; `None` where files of /etc are the way.
    pub fn keep_files(self, files: &[(String, String)]) -> Option<String> {
        let all = |form: fn(&str, &str) -> String, between: &str| {
            let lines: Vec<String> = files.iter().map(|(path, value)| form(path, value)).collect();
            lines.join(between)
        };
        match self {
            Self::NixOs => Some(format!(
                "systemd.tmpfiles.rules = [ {} ]; in the machine's configuration, then: nixos-rebuild switch",
                all(|path, value| format!("\"w {path} - - - - {value}\""), " ")
            )),
            Self::Talos => Some(format!(
                "set {} below machine.sysfs of its configuration",
                all(
                    |path, value| format!("{}: \"{value}\"", swapped(path.trim_start_matches("/sys/"))),
                    ", "
                )
            )),
            Self::Bottlerocket => Some(of_pool(files).unwrap_or_else(|| all(of_file, "; "))),
            _ => None,
        }
    }
}

/// With dots for slashes, and slashes for dots.
pub(super) fn swapped(path: &str) -> String {
    let other = |c: char| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    path.chars().map(other).collect()
}

/// Bottlerocket has settings for pools, whole or by node.
fn of_pool(files: &[(String, String)]) -> Option<String> {
    let counts: Vec<(Bytes, String)> = files
        .iter()
        .map(|(path, value)| count(path, value))
        .collect::<Option<_>>()?;
    let (page, _) = counts.first()?;
    let all: Vec<&str> = counts.iter().map(|(_, count)| count.as_str()).collect();
    Some(setting(&page.exact(), &all.join(",")))
}

/// It keeps no order of boot parameters, which `hugepagesz=1G hugepages=4` need.
pub(super) fn pool_setting(parameters: &str) -> Option<String> {
    one_pool(parameters).map(|(size, count)| setting(size, count))
}

/// The size and the count of the one pool that such parameters ask for.
fn one_pool(parameters: &str) -> Option<(&str, &str)> {
    let pool = parameters.strip_prefix("hugepagesz=")?.split_once(" hugepages=")?;
    Some(pool).filter(|(_, count)| !count.contains(' '))
}

/// The file of a pool that such parameters ask for, where nodes do not count. Only Talos writes it by itself, before any pod starts.
pub(super) fn of_run_time(parameters: &str) -> Option<String> {
    // The number may be one that is yet to come.
    let (size, count) = one_pool(parameters).filter(|(_, count)| !count.contains(':'))?;
    let size: Bytes = size.parse().ok()?;
    let path = path_in_pool(size, None, "nr_hugepages");
    Distribution::Talos.keep_files(&[(path, count.to_owned())])
}

fn setting(size: &str, count: &str) -> String {
    format!(
        "count = \"{count}\" below [settings.kernel.hugepages.static.\"{size}i\"] of its settings (1.64 and later), which holds from the next boot"
    )
}

/// `4`, or `0:4` of a node.
fn count(path: &str, value: &str) -> Option<(Bytes, String)> {
    let (size, _) = file_of_pool(path).filter(|(_, file)| *file == "nr_hugepages")?;
    let node = path.strip_prefix(NODES).and_then(|rest| rest.split_once('/'));
    let count = match node {
        Some((node, _)) => format!("{node}:{value}"),
        None => value.to_owned(),
    };
    Some((size, count))
}

/// And for two files of THP. All others need a container that writes them.
fn of_file(path: &str, value: &str) -> String {
    match path.strip_prefix(THP).and_then(|name| name.strip_prefix('/')) {
        Some(name @ ("enabled" | "defrag")) => {
            format!(
                "{name} = \"{value}\" below [settings.kernel.hugepages.transparent] of its settings (1.64 and later)"
            )
        }
        _ => format!("have a bootstrap container of its settings write {value} to {path} at each boot"),
    }
}

#[cfg(test)]
mod tests {
    use super::Distribution;
    use crate::config::OnBoot;

    #[test]
    fn each_system_has_its_own_way() {
        let kept = |own: Distribution, paths: &[&str], value: &str| {
            let files: Vec<(String, String)> = paths
                .iter()
                .map(|path| (format!("/sys/{path}"), value.to_owned()))
                .collect();
            own.keep_files(&files)
        };
        let thp = "kernel/mm/transparent_hugepage/enabled";
        let whole = "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
        let nodes =
            ["0", "1"].map(|node| format!("devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"));
        let nodes = [nodes[0].as_str(), nodes[1].as_str()];
        for (own, paths, starts) in [
            (
                Distribution::Talos,
                &[thp][..],
                "set kernel.mm.transparent_hugepage.enabled: \"4\" below machine.sysfs",
            ),
            (
                Distribution::Talos,
                &[whole][..],
                "set kernel.mm.hugepages.hugepages-1048576kB.nr_hugepages: \"4\" below machine.sysfs",
            ),
            (
                Distribution::Bottlerocket,
                &[thp][..],
                "enabled = \"4\" below [settings.kernel.hugepages.transparent]",
            ),
            (
                Distribution::Bottlerocket,
                &[whole][..],
                "count = \"4\" below [settings.kernel.hugepages.static.\"1Gi\"]",
            ),
            (
                Distribution::Bottlerocket,
                &nodes[..],
                "count = \"0:4,1:4\" below [settings.kernel.hugepages.static.\"2Mi\"]",
            ),
            (
                Distribution::Bottlerocket,
                &["kernel/mm/transparent_hugepage/khugepaged/defrag"][..],
                "have a bootstrap container of its settings write 4 to /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
            ),
            (
                Distribution::NixOs,
                &[thp, whole][..],
                "systemd.tmpfiles.rules = [ \"w /sys/kernel/mm/transparent_hugepage/enabled - - - - 4\" \"w /sys/kernel/mm/hugepages/",
            ),
        ] {
            let how = kept(own, paths, "4").expect("a way");
            assert!(how.starts_with(starts), "{how}");
        }
        let boot =
            Distribution::Bottlerocket.add_boot_parameters(&OnBoot::default(), "hugepagesz=1G hugepages=0:4,1:4");
        assert!(boot.starts_with("count = \"0:4,1:4\" below [settings.kernel"), "{boot}");
        let other = Distribution::Bottlerocket.add_boot_parameters(&OnBoot::default(), "transparent_hugepage=never");
        assert!(other.contains("boot.kernel-parameters"), "{other}");
        assert_eq!(kept(Distribution::Debian, &[thp], "4"), None);
    }
}
