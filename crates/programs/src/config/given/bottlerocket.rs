//! User data of Bottlerocket: the settings of its API that are about pages.

use model::Unread;
use toml::de::{DeTable, DeValue};

use super::garbled::{Refusal, empty};
use super::node::{Setup, boot_line};
use super::pod::amount as amount_of;
use crate::config::{BootForm, BootLine, Setting};

const SYSCTL: &str = "settings.kernel.sysctl.";
const PARAMETERS: [&str; 2] = ["settings.boot.kernel-parameters.", "settings.boot.kernel."];
const STATIC: &str = "settings.kernel.hugepages.static.";
const TRANSPARENT: &str = "settings.kernel.hugepages.transparent.";

const LINK: &str = "https://bottlerocket.dev/en/os/1.45.x/api/settings/boot";

const LINK_OF_KUBELET: &str = "https://bottlerocket.dev/en/os/1.45.x/api/settings/kubernetes";
const SECTIONS: [&str; 3] = ["settings.kernel", "settings.boot", KUBERNETES];
const KUBERNETES: &str = "settings.kubernetes";

/// Sections that only such files have; inside of YAML they are indented.
pub(super) fn is_user_data(text: &str) -> bool {
    let is_ours = |name: &str| SECTIONS.iter().any(|section| name.starts_with(section));
    let mut names = text.lines().map(|line| line.strip_prefix('[').unwrap_or(line));
    let has_inside = || assignments(text).iter().any(|set| is_ours(&set.name));
    names.clone().any(is_ours) || (names.any(|name| name.starts_with("settings")) && has_inside())
}

pub(super) fn setup(path: &str, text: &str) -> Result<Setup, Unread> {
    let (all, mut setup) = (assignments(text), Setup::default());
    let (mut first, mut words): (Option<usize>, Vec<String>) = (None, Vec::new());
    for Assignment { line, name, values } in &all {
        let value = values.first().cloned().unwrap_or_default();
        let setting = |name: String| Setting::new(format!("{path}:{line}"), name, &value);
        if let Some(name) = name.strip_prefix(SYSCTL) {
            setup.sysctl.push(setting(name.to_owned()));
        } else if let Some(name) = PARAMETERS.iter().find_map(|section| name.strip_prefix(section)) {
            first = first.or(Some(*line));
            words.extend(values.iter().map(|value| format!("{name}={value}")));
        } else if let Some(size) = name.strip_prefix(STATIC).and_then(|rest| rest.strip_suffix(".count")) {
            let words = format!("hugepagesz={} hugepages={value}", size.trim_end_matches('i'));
            setup.boot.push(settings_line(format!("{path}:{line}"), &words));
        } else if let Some(name) = name.strip_prefix(TRANSPARENT) {
            setup
                .sysfs
                .push(setting(format!("/sys/kernel/mm/transparent_hugepage/{name}")));
        }
    }
    if let Some(line) = first {
        let place = format!("{path}:{line}");
        let refused = lost(&words, &all).into_iter();
        setup
            .refused
            .extend(refused.map(|(why, fix)| Refusal::new(&place, why, fix, LINK)));
        setup.boot.push(settings_line(place, &words.join(" ")));
    }
    setup.refused.extend(reserved(path, &all));
    setup.refused.extend(no_toml(path, text));
    let has_kubelet = all.iter().any(|set| set.name.starts_with(KUBERNETES));
    match setup.boot.is_empty() && setup.sysctl.is_empty() && setup.sysfs.is_empty() && !has_kubelet {
        true => Err(empty(
            path,
            "it sets neither parameters of the kernel nor sysctl nor huge pages",
        )),
        false => Ok(setup),
    }
}

/// hugetlb pages that the memory manager is to reserve on a node. It compares each resource with what kube-reserved, system-reserved and
/// eviction take from the node, which are no pages.
fn reserved(path: &str, all: &[Assignment]) -> Vec<Refusal> {
    let of = |set: &Assignment, name: &str| {
        let rest = set
            .name
            .strip_prefix(KUBERNETES)?
            .strip_prefix('.')?
            .strip_prefix(name)?;
        Some((rest.trim_start_matches('.').to_owned(), set.values.first()?.clone()))
    };
    let is_static = |set: &Assignment| of(set, "memory-manager-policy").is_some_and(|(_, policy)| policy == "Static");
    let is_off = |node: &str| {
        let is_it = |set: &Assignment| of(set, RESERVED) == Some((format!("{node}.enabled"), "false".to_owned()));
        all.iter().any(is_it)
    };
    let refused = |set: &Assignment| {
        let (rest, amount) = of(set, RESERVED)?;
        let (node, resource) = rest.split_once('.')?;
        let is_pages = resource.starts_with("hugepages-") && amount_of(&amount) != Some(0) && !is_off(node);
        let why = format!(
            "{RESERVED}: {resource}: the kubelet does not start: it has to be equal to kube-reserved, system-reserved and eviction together, which hold no pages"
        );
        let place = format!("{path}:{}", set.line);
        is_pages.then(|| {
            Refusal::new(
                &place,
                why,
                "delete the line, and reserve memory alone",
                LINK_OF_KUBELET,
            )
        })
    };
    match all.iter().any(is_static) {
        true => all.iter().filter_map(refused).collect(),
        false => Vec::new(),
    }
}

const RESERVED: &str = "memory-manager-reserved-memory";

fn settings_line(place: String, words: &str) -> BootLine {
    BootLine {
        form: BootForm::Settings,
        ..boot_line(place, words)
    }
}

/// Why parameters of the kernel come to nothing, or to something else; and what helps.
fn lost(words: &[String], all: &[Assignment]) -> Vec<(&'static str, &'static str)> {
    let mut lost = Vec::new();
    if !words.iter().any(|word| word.contains("huge")) {
        return lost;
    }
    let sizes = words.iter().filter_map(|word| word.strip_prefix("hugepagesz="));
    let has_count = words.iter().any(|word| word.starts_with("hugepages="));
    if has_count && sizes.into_iter().any(|size| size != "2M") {
        lost.push((
            "Bottlerocket keeps no order of kernel-parameters, and `hugepages` before `hugepagesz` counts pages of the default size",
            "request them by settings.kernel.hugepages.static in place of both parameters (1.64 and later)",
        ));
    }
    let reboots = |set: &Assignment| set.name == "settings.boot.reboot-to-reconcile" && set.values == ["true"];
    if !all.iter().any(reboots) {
        lost.push((
            "user data comes after the kernel has started: without reboot-to-reconcile = true below [settings.boot] a new node runs without \
             these parameters",
            "add reboot-to-reconcile = true below [settings.boot]; or, for pages of the default size, set vm.nr_hugepages below \
             [settings.kernel.sysctl], which needs no reboot",
        ));
    }
    lost
}

/// A setting with its whole name.
struct Assignment {
    line: usize,
    name: String,
    values: Vec<String>,
}

fn no_toml(path: &str, text: &str) -> Option<Refusal> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let error = errors.first()?;
    let at = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
    let why = format!("no TOML: {}", error.message());
    let fix = "mend this line: Bottlerocket takes nothing of user data that is no TOML".to_owned();
    Some(Refusal::new(&format!("{path}:{line}"), why, fix, LINK))
}

/// In their order. What is no TOML is left out.
fn assignments(text: &str) -> Vec<Assignment> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let (document, _) = DeTable::parse_recoverable(text);
    let mut found = Vec::new();
    add("", document.get_ref(), &mut found);
    found.sort_by_key(|(at, _)| *at);
    let placed = |(at, set): (usize, Assignment)| Assignment {
        line: ends.partition_point(|end| *end < at) + 1,
        ..set
    };
    found.into_iter().map(placed).collect()
}

/// The assignments of a table, each with where it begins.
fn add(before: &str, table: &DeTable<'_>, found: &mut Vec<(usize, Assignment)>) {
    for (key, value) in table {
        let name = format!("{before}{}", key.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            add(&format!("{name}."), inner, found);
            continue;
        }
        let mut values = Vec::new();
        texts(value.get_ref(), &mut values);
        let set = Assignment { line: 0, name, values };
        found.push((key.span().start, set));
    }
}

/// A value, or those of a list.
fn texts(value: &DeValue<'_>, all: &mut Vec<String>) {
    match value {
        DeValue::Array(items) => items.iter().for_each(|item| texts(item.get_ref(), all)),
        DeValue::String(text) => all.push(text.to_string()),
        DeValue::Integer(number) => all.push(number.as_str().to_owned()),
        DeValue::Boolean(is_on) => all.push(is_on.to_string()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{assignments, is_user_data, setup};

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let places = |value: &str| -> Vec<String> {
            let text = format!("[settings.kernel.sysctl]\n\"vm.nr_hugepages\" = \"64\"\n{value}\n");
            let refused = setup("a.toml", &text).expect("settings").refused;
            refused.into_iter().map(|refusal| refusal.unread.place).collect()
        };
        assert_eq!(places("\"vm.nr_hugepages\" = \"8G\""), ["a.toml:3"]);
        assert!(places("\"vm.max_map_count\" = \"65530\"").is_empty());
    }

    #[test]
    fn sections_and_lists_are_read() {
        let text = "[settings.kernel]\nsysctl.\"vm/nr_hugepages\" = \"64\" # pages\nsysctl.'vm.max_map_count' = '65530'\n\
                    [settings.kernel.hugepages.static.\"1Gi\"]\ncount = 2\n\
                    [settings]\nboot.kernel-parameters.\"hugepagesz\" = [\n  \"1G\",\n]\nboot.kernel.\"hugepages\" = [\"3\"]\nmotd = ''\n";
        let read = setup("a.toml", text).expect("settings");
        let set: Vec<&str> = read.sysctl.iter().map(|set| set.place.as_str()).collect();
        assert_eq!(set, ["a.toml:2", "a.toml:3"]);
        let lines: Vec<&str> = read.boot.iter().map(|line| line.words.as_str()).collect();
        assert_eq!(lines, ["hugepagesz=1G hugepages=2", "hugepagesz=1G hugepages=3"]);
        assert_eq!(read.boot[1].place, "a.toml:7");
        let why: Vec<&str> = read.refused.iter().map(|refused| refused.unread.why.as_str()).collect();
        assert!(
            why[0].contains("keeps no order") && why[1].contains("reboot-to-reconcile"),
            "{why:?}"
        );
    }

    #[test]
    fn the_memory_manager_reserves_no_pages() {
        let refused = |text: &str| {
            let text = format!("[settings.kubernetes]\n{text}");
            assert!(is_user_data(&text), "{text}");
            let read = setup("a.toml", &text).expect("settings");
            let places = read.refused.iter().map(|refused| refused.unread.place.clone());
            places.collect::<Vec<_>>()
        };
        let node = "[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\n\"memory\" = \"993Mi\"\n";
        let policy = "memory-manager-policy = \"Static\"\n";
        let pages = "\"hugepages-2Mi\" = \"10Mi\"\n";
        assert_eq!(refused(&format!("{policy}{node}{pages}")), ["a.toml:6"]);
        for right in [
            format!("{policy}{node}"),
            format!("{node}{pages}"),
            format!("{policy}{node}\"hugepages-2Mi\" = \"0\"\n"),
            format!("{policy}{}{pages}", node.replace("true", "false")),
            "max-pods = 110\n".to_owned(),
        ] {
            assert!(refused(&right).is_empty(), "{right}");
        }
    }

    #[test]
    fn a_text_of_several_lines_is_a_value() {
        for motd in [
            "\"\"\"hello\nworld\"\"\"",
            "'''\nit's\n'''",
            "\"\"\"\\\"\"\"\n\"\"\"\"\"",
        ] {
            let text = format!("[settings]\nmotd = {motd}\n[settings.kernel.sysctl]\n\"vm.nr_hugepages\" = \"8G\"\n");
            let read = setup("a.toml", &text).expect("settings");
            let set: Vec<String> = read
                .sysctl
                .iter()
                .map(|set| format!("{}={}", set.name, set.value))
                .collect();
            assert_eq!(set, ["vm.nr_hugepages=8G"], "{text}");
        }
    }

    #[test]
    fn inline_tables_are_sections() {
        let sysctl = |text: &str| {
            let read = setup("a.toml", text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
            let set = read.sysctl.iter();
            set.map(|set| format!("{}={}", set.name, set.value)).collect::<Vec<_>>()
        };
        for text in [
            "[settings.kernel]\nsysctl = { \"vm.nr_hugepages\" = \"8G\" }\n",
            "settings = { motd = \"x\", kernel = { sysctl = { \"vm.nr_hugepages\" = \"8G\" }, lockdown = \"none\" } }\n",
            "settings.kernel.sysctl = { \"vm.nr_hugepages\" = \"8G\" }\n[settings.boot]\n\"vm.x\" = 1\n",
            "[settings.ntp]\nat = 1979-05-27T07:32:00Z\n[settings.kernel.sysctl]\n\"vm.nr_hugepages\" = \"8G\"\n",
        ] {
            assert_eq!(sysctl(text), ["vm.nr_hugepages=8G"], "{text}");
        }
        let both = "[settings]\na = { b = 1 }\nkernel.sysctl.\"vm.b\" = \"2\"\nkernel.sysctl.\"vm.a\" = \"1\"\n";
        assert_eq!(sysctl(both), ["vm.b=2", "vm.a=1"]);
        for text in [
            "settings.kernel.sysctl = { \"vm.nr_hugepages\" = \"8G\" }\n",
            "settings = { kernel = { sysctl = { \"vm.nr_hugepages\" = \"8G\" } } }\n",
            "[settings]\nboot = { kernel-parameters = { \"hugepages\" = [\"4\"] } }\n",
        ] {
            assert!(is_user_data(text), "{text}");
        }
        for text in [
            "[settings]\nmotd = \"x\"\n",
            "settings:\n  kernel: 1\n",
            "  [settings.kernel]\n  lockdown = \"none\"\n",
        ] {
            assert!(!is_user_data(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_end(text in "[\\[\\]={}\"'#a-z.0-9é\n ]{0,60}") {
            let _ = assignments(&text);
        }
    }
}
