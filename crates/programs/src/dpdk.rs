//! Programs of the Data Plane Development Kit, VPP's file, and commands that configure Open vSwitch.

use super::config::Setting;
use super::config::files::{Line, said};
use super::kind::Known;

/// Options of its environment layer, which any program built with it takes.
const OPTIONS: [&str; 5] = [
    "--huge-dir",
    "--socket-mem",
    "--file-prefix",
    "--proc-type=",
    "--in-memory",
];

pub(crate) const KNOWN: Known = Known {
    libraries: &["librte_eal.so"],
    has_signs: |_, arguments| {
        let mut words = arguments.iter();
        words.any(|word| OPTIONS.iter().any(|option| word.starts_with(option)))
    },
    ..Known::new(
        "DPDK",
        &["dpdk"],
        &[
            "dpdk-testpmd",
            "testpmd",
            "ovs-vswitchd",
            "vpp_main",
            "spdk_tgt",
            "reactor_0",
        ],
    )
};

/// MiB by node, with commas between, as `--socket-mem` has them.
pub fn socket_mem(arguments: &[String]) -> Option<&str> {
    if arguments.iter().any(|word| word == "--no-huge") {
        return None;
    }
    let mut words = arguments.iter().skip_while(|word| !word.starts_with("--socket-mem"));
    match words.next()?.split_once('=') {
        Some((_, list)) => Some(list),
        None => words.next().map(String::as_str),
    }
}

/// VPP's startup.conf: sections in braces, in them names with a word behind each. They are named `SECTION NAME`.
pub(crate) fn vpp(path: &str, text: &str) -> Vec<Setting> {
    let (mut sections, mut last) = (Vec::new(), "");
    let mut settings = Vec::new();
    for line in said(path, text, &['#']) {
        let own = line.text.split('#').next().unwrap_or_default();
        // Braces need no blanks around them.
        let marks = own
            .split_inclusive(['{', '}'])
            .flat_map(|part| match part.strip_suffix(['{', '}']) {
                Some(words) => [words, &part[words.len()..]],
                None => [part, ""],
            });
        for word in marks.flat_map(str::split_whitespace) {
            match word {
                "{" => sections.push(last),
                "}" => drop(sections.pop()),
                value => settings.push(line.setting(format!("{} {last}", sections.join(" ")), value)),
            }
            last = word;
        }
    }
    settings
}

/// Does a script set what Open vSwitch asks of DPDK?
pub(crate) fn is_ovs(text: &str) -> bool {
    text.contains("ovs-vsctl") && text.contains("other_config:dpdk-socket-mem")
}

/// `ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem="1024,0"`: what such commands set, named by the keys. A command may go on in further lines.
pub(crate) fn ovs(path: &str, text: &str) -> Vec<Setting> {
    let marks = ['"', '\'', ';'];
    let of_line = |line: Line<'_>| -> Vec<Setting> {
        let words = line.text.split_whitespace().map(|word| word.trim_matches(marks));
        let pairs = words.filter_map(|word| word.strip_prefix("other_config:")?.split_once('='));
        pairs
            .map(|(key, value)| line.setting(key, value.trim_matches(marks)))
            .collect()
    };
    said(path, text, &['#']).flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_ovs, ovs, socket_mem, vpp};

    #[test]
    fn what_commands_of_open_vswitch_set() {
        let text = "#!/bin/sh\n# ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem=1\n\
                    ovs-vsctl --no-wait set Open_vSwitch . other_config:dpdk-init=true\n\
                    sudo ovs-vsctl set open . \\\n other_config:dpdk-socket-mem=\"2048,0\"\n";
        assert!(is_ovs(text) && !is_ovs("ovs-vsctl add-br br0\n"));
        let last = |name: &str| {
            let settings = ovs("ovs.sh", text);
            let set = settings.iter().rfind(|set| set.name == name);
            set.map(|set| (set.value.clone(), set.place.clone()))
        };
        assert_eq!(
            last("dpdk-socket-mem"),
            Some(("2048,0".to_owned(), "ovs.sh:5".to_owned()))
        );
    }

    #[test]
    fn memory_of_each_node() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(socket_mem(&words("testpmd --socket-mem 1024,0 -- -i")), Some("1024,0"));
        assert_eq!(socket_mem(&words("testpmd --socket-mem=64")), Some("64"));
        assert_eq!(socket_mem(&words("testpmd --no-huge --socket-mem 64")), None);
    }

    #[test]
    fn sections_of_vpp_end_at_their_braces() {
        let text = "unix { nodaemon }\n# dpdk { socket-mem 1 }\ndpdk {\n dev 0000:02:00.0 { name a }\n socket-mem 1024,1024 # each\n}\nbuffers {page-size 1G}\n";
        let settings = vpp("startup.conf", text);
        let value = |name: &str| {
            settings
                .iter()
                .find(|set| set.name == name)
                .map(|set| set.value.as_str())
        };
        assert_eq!(value("dpdk socket-mem"), Some("1024,1024"));
        assert_eq!(value("buffers page-size"), Some("1G"));
        assert_eq!(value("dpdk 0000:02:00.0 name"), Some("a"));
        assert_eq!(value("unix socket-mem"), None);
    }
}
