//! Programs of the Data Plane Development Kit, VPP's file, and commands that configure Open vSwitch.

use super::config::Setting;
use super::config::files::{Line, open_quote, said};
use super::kind::Known;
use super::page_options::value_of;

/// Options of its environment layer, which any program built with it takes.
const OPTIONS: [&str; 6] = [
    "--huge-dir",
    "--numa-mem",
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

/// MiB by node, with commas between, as `--socket-mem` has them, or `--numa-mem` (DPDK 25.11 and later).
pub fn socket_mem(arguments: &[String]) -> Option<&str> {
    let list = value_of(arguments, "--socket-mem").or_else(|| value_of(arguments, "--numa-mem"));
    list.filter(|_| arguments.iter().all(|word| word != "--no-huge"))
}

/// The MiB of each node, or of all together.
pub fn mib_by_node(set: &Setting) -> Option<Vec<u64>> {
    let number = |mib: &str| match mib.trim() {
        "" => Some(0),
        mib => mib.parse::<u64>().ok(),
    };
    set.value.split(',').map(number).collect()
}

/// What a command asks for, and by which option: MiB by node, or of all nodes together.
pub(crate) fn asked(words: &[String]) -> Option<(&'static str, &str)> {
    let by_node = socket_mem(words).map(|list| ("--socket-mem", list));
    by_node.or_else(|| whole(words)).or_else(|| of_vpp(words))
}

/// VPP's word in its section dpdk, which counts before release 19.04 alone (plugins/dpdk/device/init.c).
const OF_VPP: &str = "socket-mem";

/// Does a setting of [`memory`] have that word?
pub fn is_of_vpp(set: &Setting) -> bool {
    set.name == OF_VPP
}

/// The same of VPP, whose command may have the words of its file: `vpp unix { nodaemon } dpdk { socket-mem 64,64 }`.
fn of_vpp(words: &[String]) -> Option<(&'static str, &str)> {
    let name = OF_VPP;
    let at = words.iter().position(|word| word.rsplit('/').next() == Some("vpp"))?;
    let mut own = words[at + 1..].iter().flat_map(|word| word.split([' ', '{', '}']));
    own.find(|word| *word == name)?;
    let list = own.find(|word| !word.is_empty())?;
    Some((name, list))
}

/// The same as a setting of the command at that place.
pub(crate) fn memory(place: &str, words: &[String]) -> Option<Setting> {
    asked(words).map(|(name, mib)| Setting::new(place, name, mib))
}

/// MiB of all nodes together, by the option of a program that is known by its name.
pub(crate) fn whole(words: &[String]) -> Option<(&'static str, &str)> {
    let of_word = |(at, word): (usize, &String)| Some((at, memory_options(word)?));
    let (at, (short, long)) = words.iter().enumerate().find_map(of_word)?;
    // What follows `--` is for the program, not for DPDK.
    let own = words[at + 1..].split(|word| word == "--").next()?;
    let mib = value_of(own, long).or_else(|| short_value(own, short))?;
    let is_counted = mib.parse::<u64>().is_ok() && own.iter().all(|word| word != "--no-huge");
    is_counted.then_some((short, mib))
}

/// The short and the long option for memory of a program of this name, of DPDK or of SPDK.
fn memory_options(word: &str) -> Option<(&'static str, &'static str)> {
    match word.rsplit('/').next()? {
        "spdk_tgt" | "nvmf_tgt" | "iscsi_tgt" => Some(("-s", "--mem-size")),
        // Scripts of DPDK have other options.
        name if name == "testpmd" || (name.starts_with("dpdk-") && !name.ends_with(".py")) => {
            Some(("-m", "--memory-size"))
        }
        _ => None,
    }
}

/// The value of a short option, behind it or in the same word.
fn short_value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let mut words = words.iter().map(String::as_str);
    let rest = words.find_map(|word| word.strip_prefix(option))?;
    if rest.is_empty() { words.next() } else { Some(rest) }
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

/// The keys of Open vSwitch that decide what it asks of DPDK.
const OF_OVS: [&str; 5] = [
    "dpdk-socket-mem",
    "dpdk-alloc-mem",
    "dpdk-extra",
    "dpdk-init",
    "dpdk-hugepage-dir",
];

/// Does a script set what Open vSwitch asks of DPDK, or is it what Open vSwitch prints of that?
pub(crate) fn is_ovs(text: &str) -> bool {
    let has_key = |key: &&str| text.contains(&format!("other_config:{key}"));
    let is_set = text.contains("ovs-vsctl") && OF_OVS[..3].iter().any(has_key);
    is_set || said("", text, &['#']).any(|line| !in_braces(&line).is_empty())
}

/// `{dpdk-init="true", dpdk-socket-mem="1024,0"}`: its configuration as it prints it, and as a command may set all of it.
fn in_braces(line: &Line<'_>) -> Vec<Setting> {
    let Some((_, rest)) = line.text.split_once('{') else {
        return Vec::new();
    };
    let own = rest.split('}').next().unwrap_or_default();
    let setting = |pair: &str| {
        let (key, value) = pair.trim().split_once('=')?;
        OF_OVS
            .contains(&key)
            .then(|| line.setting(key, value.trim_matches(['"', '\''])))
    };
    own.split(", ").filter_map(setting).collect()
}

/// What such settings ask for, as one setting whose name ends in `socket-mem` where it is by node. Options in `dpdk-extra` win over the
/// settings for memory, and of those the one by node (lib/dpdk.c).
pub(crate) fn asked_by_ovs(settings: &[Setting]) -> Option<Setting> {
    let last = |name: &str| settings.iter().rfind(|set| set.name == name);
    let extra = last("dpdk-extra");
    let is_off = last("dpdk-init").is_some_and(|set| set.value == "false");
    if is_off || extra.is_some_and(|set| set.value.contains("--no-huge")) {
        return None;
    }
    let of_memory = || last("dpdk-socket-mem").or_else(|| last("dpdk-alloc-mem")).cloned();
    extra.and_then(of_extra).or_else(of_memory)
}

/// The directory whose hugetlbfs Open vSwitch takes its pages of, by the same rule.
pub(crate) fn directory_of_ovs(settings: &[Setting]) -> Option<String> {
    let last = |name: &str| settings.iter().rfind(|set| set.name == name);
    let of_extra = || {
        let extra = last("dpdk-extra")?.value.split_whitespace();
        let words: Vec<String> = extra.map(str::to_owned).collect();
        value_of(&words, "--huge-dir").map(str::to_owned)
    };
    of_extra().or_else(|| Some(last("dpdk-hugepage-dir")?.value.clone()))
}

/// The memory in options of DPDK. What a variable of the shell holds is not known: it is given as it is written.
fn of_extra(extra: &Setting) -> Option<Setting> {
    let words: Vec<String> = extra.value.split_whitespace().map(str::to_owned).collect();
    let whole = words.iter().skip_while(|word| *word != "-m").nth(1);
    let by_node = socket_mem(&words).map(|list| ("dpdk-extra --socket-mem", list));
    let asked = by_node.or_else(|| Some(("dpdk-extra -m", whole?.as_str())));
    let unknown = Some(("dpdk-extra", extra.value.as_str())).filter(|(_, value)| value.contains('$'));
    let (name, value) = asked.or(unknown)?;
    Some(Setting::new(&extra.place, name, value))
}

/// `ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem="1024,0"`: what such commands set, named by the keys. A command may go on in
/// further lines, and so may a value in quotes.
pub(crate) fn ovs(path: &str, text: &str) -> Vec<Setting> {
    let (mut settings, mut open) = (Vec::new(), None::<(Line<'_>, String, Option<char>)>);
    for line in said(path, text, &['#']) {
        settings.extend(in_braces(&line));
        let own = line.text.strip_suffix('\\').unwrap_or(line.text);
        let (first, mut written, before) = open.take().unwrap_or((line, String::new(), None));
        let quote = open_quote(before, own);
        let may_close = written.is_empty() || quote.is_none();
        written.push_str(own);
        written.push(' ');
        match may_close.then(|| shlex::split(&written)).flatten() {
            Some(words) => settings.extend(set_by(&first, &words)),
            None if written.contains(OTHER_CONFIG) => open = Some((first, written, quote)),
            None => {}
        }
    }
    if let Some((first, written, _)) = open {
        let words: Vec<String> = written.split_whitespace().map(str::to_owned).collect();
        settings.extend(set_by(&first, &words));
    }
    settings
}

const OTHER_CONFIG: &str = "other_config:";

/// What words of a command set.
fn set_by(line: &Line<'_>, words: &[String]) -> Vec<Setting> {
    let marks = ['"', '\'', ';'];
    let setting = |word: &String| {
        let pair = word.trim_matches(marks).strip_prefix(OTHER_CONFIG)?;
        let (key, value) = pair.split_once('=')?;
        Some(line.setting(key, value.trim_matches(marks)))
    };
    words.iter().filter_map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::{asked, asked_by_ovs, is_ovs, ovs, socket_mem, vpp};

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
    fn what_open_vswitch_prints_of_its_configuration() {
        let own = "{dpdk-init=\"true\", dpdk-lcore-mask=\"0x2\", dpdk-socket-mem=\"4096,0\", pmd-cpu-mask=\"0x3c\"}";
        for text in [
            own.to_owned(),
            format!("_uuid : 7b34\nother_config        : {own}\novs_version : \"3.1\"\n"),
        ] {
            assert!(is_ovs(&text), "{text}");
            let set = asked_by_ovs(&ovs("list.txt", &text));
            assert_eq!(set.map(|set| set.value), Some("4096,0".to_owned()), "{text}");
        }
        assert!(!is_ovs("other_config : {hw-offload=\"true\"}\n"));
    }

    #[test]
    fn a_command_of_open_vswitch_goes_on() {
        let start = "ovs-vsctl --no-wait set Open_vSwitch . other_config:dpdk-init=true \\\n";
        let asked = |rest: &str| {
            let set = asked_by_ovs(&ovs("ovs.sh", &format!("{start}{rest}")));
            set.map(|set| (set.place, set.value))
        };
        let by_node = Some(("ovs.sh:2".to_owned(), "4096,4096".to_owned()));
        let last = "  other_config:dpdk-socket-mem=\"512,0\"\n";
        for extra in [
            "other_config:dpdk-extra=\"-a 0000:03:00.0 --socket-mem 4096,4096\" \\\n",
            "other_config:dpdk-extra=\"-a 0000:03:00.0 \\\n --socket-mem 4096,4096\" \\\n",
            "'other_config:dpdk-extra=\"-a 0000:03:00.0 --socket-mem=4096,4096\"'\\\n",
        ] {
            assert_eq!(asked(&format!("  {extra}{last}")), by_node, "{extra}");
        }
        assert_eq!(
            asked(&format!(
                "  other_config:dpdk-extra=\"-a 0000:03:00.0 --no-huge\" \\\n{last}"
            )),
            None
        );
        // The other quote closes nothing, and a quote behind a backslash neither.
        let mixed = "  other_config:dpdk-extra=\"-a '0000:03:00.0 \\\n -d \\\"it's\\\" \\\n --socket-mem 4096,4096\"\n";
        assert_eq!(asked(mixed), by_node);
        // Quotes that stay open hide nothing.
        let open = asked("  other_config:dpdk-socket-mem=\"4096,4096\n");
        assert_eq!(open, by_node);
    }

    /// Each text behind an open quote is looked at once: these are 4 MB, the most that is read.
    #[test]
    fn a_quote_that_is_never_closed_takes_no_time() {
        let start = "ovs-vsctl set Open_vSwitch . other_config:dpdk-extra='--socket-mem 1,1\n";
        let text = format!("{start}{}", "x \"\n".repeat(1_000_000));
        let before = std::time::Instant::now();
        assert_eq!(ovs("ovs.sh", &text).len(), 1);
        assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
    }

    #[test]
    fn what_open_vswitch_asks_for_in_the_end() {
        let asked = |keys: &[&str]| {
            let lines = keys
                .iter()
                .map(|key| format!("ovs-vsctl set Open_vSwitch . other_config:{key}\n"));
            let text: String = lines.collect();
            assert!(is_ovs(&text), "{text}");
            asked_by_ovs(&ovs("ovs.sh", &text)).map(|set| (set.name, set.value))
        };
        let is = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        let (by_node, whole) = ("dpdk-socket-mem=\"1024,0\"", "dpdk-alloc-mem=2048");
        assert_eq!(asked(&[whole]), is("dpdk-alloc-mem", "2048"));
        assert_eq!(asked(&[by_node, whole]), is("dpdk-socket-mem", "1024,0"));
        let extra = "dpdk-extra=\"-a 0000:03:00.0 --socket-mem 64,64\"";
        assert_eq!(asked(&[by_node, extra]), is("dpdk-extra --socket-mem", "64,64"));
        assert_eq!(asked(&["dpdk-extra='-m 512'"]), is("dpdk-extra -m", "512"));
        assert_eq!(
            asked(&[by_node, "dpdk-extra=\"-w 0000:03:00.0\""]),
            is("dpdk-socket-mem", "1024,0")
        );
        assert_eq!(asked(&["dpdk-extra=\"$EXTRA\""]), is("dpdk-extra", "$EXTRA"));
        assert_eq!(asked(&[by_node, "dpdk-extra=--no-huge"]), None);
        assert_eq!(asked(&[by_node, "dpdk-init=false"]), None);
    }

    #[test]
    fn memory_of_each_node() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(socket_mem(&words("testpmd --socket-mem 1024,0 -- -i")), Some("1024,0"));
        assert_eq!(socket_mem(&words("testpmd --socket-mem=64")), Some("64"));
        assert_eq!(socket_mem(&words("testpmd --no-huge --socket-mem 64")), None);
        assert_eq!(socket_mem(&words("testpmd --numa-mem 64,0")), Some("64,0"));
        for (line, expected) in [
            (
                "numactl -m 0 /usr/bin/dpdk-testpmd -l 0-3 -m 16384 -- -i",
                Some(("-m", "16384")),
            ),
            ("dpdk-l3fwd -m512", Some(("-m", "512"))),
            ("testpmd --memory-size=64 -- -m 8", Some(("-m", "64"))),
            ("spdk_tgt -m 0x3 -s 4096", Some(("-s", "4096"))),
            ("dpdk-testpmd -m 64 --socket-mem 64,0", Some(("--socket-mem", "64,0"))),
            (
                "/usr/bin/vpp unix { nodaemon } dpdk { socket-mem 64,64 }",
                Some(("socket-mem", "64,64")),
            ),
            ("vpp -c /etc/vpp/startup.conf", None),
            ("testpmd -l 0-3 -- -m 8", None),
            ("testpmd --no-huge -m 64", None),
            ("dpdk-hugepages.py -m 2", None),
            ("python3 -m 64", None),
        ] {
            assert_eq!(asked(&words(line)), expected, "{line}");
        }
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
