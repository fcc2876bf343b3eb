//! Programs of the Data Plane Development Kit, and VPP's file.

use super::config::Setting;
use super::config::files::said;
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

#[cfg(test)]
mod tests {
    use super::{socket_mem, vpp};

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
