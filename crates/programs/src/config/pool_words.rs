//! The pools that a boot line asks for, with more of them: each count is for the size before it, so the order of the words counts.

use host::Snapshot;
use host::parse::memparse;
use model::Bytes;

use super::{Boot, Config};

/// A boot line to which parameters are to be added.
#[derive(Clone, Debug, Default)]
pub struct OnBoot {
    line: String,
    /// The size that a count without one is for.
    default: Option<Bytes>,
}

/// Words in place of others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    old: String,
    pub(super) new: String,
}

impl Change {
    /// Up to the place where it is made.
    pub(super) fn what(&self) -> String {
        let Self { old, new } = self;
        match old.as_str() {
            "" => format!("add `{new}` to"),
            old => format!("write `{new}` in place of `{old}` in"),
        }
    }

    /// Are there counts of several sizes?
    pub(super) fn has_sizes(&self) -> bool {
        self.new.matches(COUNT).count() > 1
    }

    pub(super) fn instead(&self) -> String {
        match self.old.as_str() {
            "" => String::new(),
            old => format!(" in place of `{old}`"),
        }
    }
}

impl OnBoot {
    /// That of the next boot, which is the one to edit, or, where none is known, that of the running kernel.
    pub fn of(snapshot: &Snapshot, config: &Config) -> Self {
        let running = || snapshot.kernel.command_line.known().map(String::as_str);
        let next = config.next_boot.as_ref().map(|next| next.words.as_str());
        Self {
            line: next.or_else(running).unwrap_or_default().to_owned(),
            default: snapshot.memory.get("Hugepagesize").known().copied(),
        }
    }

    /// The change to the line, up to the place where it is made.
    pub fn what(&self, parameters: &str) -> String {
        match self.with(parameters) {
            Some(change) => change.what(),
            None => format!("add `{parameters}` to"),
        }
    }

    /// What its words for pools become; `None` where it is enough to add the parameters, by whatever tool.
    pub(super) fn with(&self, parameters: &str) -> Option<Change> {
        let default = Boot::parse(&self.line, None).default_size.or(self.default);
        let default = default.unwrap_or(Bytes::mib(2));
        let own = sized(parameters, default);
        let old = sized(&self.line, default);
        let size = format!("hugepagesz={}", default.exact());
        let is_other = |(size, word): &(Bytes, &str)| word.starts_with(DEFAULT) && *size != default;
        let kept = match own.iter().any(is_other) {
            true => with_sizes(&old, &size),
            false => old.clone(),
        };
        if kept == old && own.iter().all(|(_, word)| word.starts_with(DEFAULT)) {
            return None;
        }
        let merged = own.iter().fold(kept, |all, &(size, word)| with_word(all, size, word));
        let (old, new) = match old.is_empty() || merged == old {
            true => (Vec::new(), own),
            false => (old, merged),
        };
        let is_repeated = |name: &&str| new.iter().filter(|(_, word)| word.starts_with(*name)).count() > 1;
        if new.starts_with(&old) && !["hugepagesz=", COUNT].iter().any(is_repeated) {
            return None;
        }
        let others = parameters.split_whitespace().filter(|word| !is_of_pools(word));
        let new: Vec<&str> = others.chain(new.iter().map(|(_, word)| *word)).collect();
        let old: Vec<&str> = old.iter().map(|(_, word)| *word).collect();
        Some(Change {
            old: old.join(" "),
            new: new.join(" "),
        })
    }
}

const DEFAULT: &str = "default_hugepagesz=";
const COUNT: &str = "hugepages=";

fn is_of_pools(word: &str) -> bool {
    [DEFAULT, "hugepagesz=", COUNT]
        .iter()
        .any(|name| word.starts_with(name))
}

/// The words for pools, each with the page size that it is about.
fn sized(line: &str, default: Bytes) -> Vec<(Bytes, &str)> {
    let mut size = default;
    let words = line.split_whitespace().filter(|word| is_of_pools(word));
    words
        .map(|word| {
            if let Some((_, value)) = word.split_once("hugepagesz=") {
                size = memparse(value).unwrap_or(Bytes(0));
            }
            (size, word)
        })
        .collect()
}

/// With the page size, `named` so, before each count that is for the default size without saying so.
fn with_sizes<'a>(all: &[(Bytes, &'a str)], named: &'a str) -> Vec<(Bytes, &'a str)> {
    let mut is_said = false;
    let words = all.iter().flat_map(|&(size, word)| {
        is_said |= word.starts_with("hugepagesz=");
        let is_silent = !is_said && word.starts_with(COUNT);
        is_silent.then_some((size, named)).into_iter().chain([(size, word)])
    });
    words.collect()
}

/// With a word more: a new count takes the place of the old one for that size.
fn with_word<'a>(mut all: Vec<(Bytes, &'a str)>, size: Bytes, word: &'a str) -> Vec<(Bytes, &'a str)> {
    let is_default = word.starts_with(DEFAULT);
    let is_same = |&(other, there): &(Bytes, &str)| match is_default {
        true => there.starts_with(DEFAULT),
        false => other == size && there.starts_with(COUNT),
    };
    let is_named = |(other, _): &(Bytes, &str)| *other == size;
    match all.iter().position(is_same) {
        Some(at) if is_default || word.starts_with(COUNT) => all[at] = (size, word),
        None if is_default => all.insert(0, (size, word)),
        None if word.starts_with(COUNT) => {
            let after = all.iter().rposition(is_named).map_or(all.len(), |at| at + 1);
            all.insert(after, (size, word));
        }
        _ if all.iter().any(is_named) => {}
        _ => all.push((size, word)),
    }
    all
}

#[cfg(test)]
mod tests {
    use host::{Snapshot, Source, Tree};

    use super::OnBoot;
    use crate::config::{Config, Distribution};

    const TWO: &str = "quiet hugepagesz=2M hugepages=512";
    const MORE: &str = "hugepagesz=1G hugepages=64";

    fn on(line: &str) -> OnBoot {
        OnBoot {
            line: line.to_owned(),
            default: None,
        }
    }

    fn changed(line: &str, parameters: &str) -> Option<(String, String)> {
        on(line).with(parameters).map(|change| (change.old, change.new))
    }

    #[test]
    fn pools_of_other_sizes_stay_with_their_counts() {
        let change = |line: &str, parameters: &str| changed(line, parameters).map(|(_, new)| new);
        let both = "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=64";
        for (line, parameters, new) in [
            (TWO, MORE, Some(both)),
            (TWO, "hugepagesz=2M hugepages=700", Some("hugepagesz=2M hugepages=700")),
            (
                both,
                "hugepagesz=2M hugepages=7",
                Some("hugepagesz=2M hugepages=7 hugepagesz=1G hugepages=64"),
            ),
            ("hugepages=512", MORE, Some("hugepages=512 hugepagesz=1G hugepages=64")),
            ("hugepages=512", "hugepagesz=2M hugepages=7", Some("hugepages=7")),
            (
                "default_hugepagesz=1G hugepages=4",
                "hugepagesz=2M hugepages=7",
                Some("default_hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=7"),
            ),
            (
                "default_hugepagesz=1G hugepagesz=1G hugepages=4",
                "hugepagesz=2M",
                Some("default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=2M"),
            ),
            ("quiet", both, Some(both)),
            ("quiet", MORE, None),
            (MORE, MORE, None),
            ("default_hugepagesz=1G", MORE, None),
            (TWO, "transparent_hugepage=never", None),
            (TWO, "default_hugepagesz=1G", None),
        ] {
            assert_eq!(change(line, parameters).as_deref(), new, "{line} + {parameters}");
        }
        assert_eq!(
            changed(TWO, MORE).map(|(old, _)| old).as_deref(),
            Some("hugepagesz=2M hugepages=512")
        );
        assert_eq!(changed("quiet", both).map(|(old, _)| old).as_deref(), Some(""));
    }

    #[test]
    fn a_count_without_a_size_keeps_its_own_under_another_default() {
        for (line, parameters, new) in [
            (
                "hugepages=10 hugepagesz=1G hugepages=1",
                "default_hugepagesz=1G",
                Some("default_hugepagesz=1G hugepagesz=2M hugepages=10 hugepagesz=1G hugepages=1"),
            ),
            (
                "default_hugepagesz=1G hugepages=4",
                "default_hugepagesz=2M",
                Some("default_hugepagesz=2M hugepagesz=1G hugepages=4"),
            ),
            (
                "hugepages=512",
                "default_hugepagesz=1G hugepagesz=1G hugepages=4",
                Some("default_hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512"),
            ),
            ("hugepages=10", "default_hugepagesz=2M", None),
            ("quiet", "default_hugepagesz=1G", None),
            ("hugepages=10", "transparent_hugepage=never", None),
        ] {
            let change = changed(line, parameters).map(|(_, new)| new);
            assert_eq!(change.as_deref(), new, "{line} + {parameters}");
        }
        let grubby = Distribution::RedHat.add_boot_parameters(&on("hugepages=10"), "default_hugepagesz=1G");
        assert!(!grubby.contains("grubby --update"), "{grubby}");
    }

    /// The words of a line that is edited, in place of which others are to be written.
    #[test]
    fn the_line_of_the_next_boot_is_the_one_that_is_edited() {
        let there = |grub: Option<&str>| {
            let tree = Tree::new()
                .line("/proc/cmdline", "quiet hugepagesz=2M hugepages=417792")
                .line("/etc/os-release", "ID=debian");
            let tree = match grub {
                Some(words) => tree.line("/etc/default/grub", format!("GRUB_CMDLINE_LINUX=\"{words}\"")),
                None => tree,
            };
            let source = Source::from_tree("test", tree);
            let snapshot = Snapshot::take(&source);
            OnBoot::of(&snapshot, &Config::read(&source, &snapshot)).what(MORE)
        };
        let instead = |pages: u64| {
            let there = format!("hugepagesz=2M hugepages={pages}");
            format!("write `{there} {MORE}` in place of `{there}` in")
        };
        assert_eq!(there(Some("hugepagesz=2M hugepages=450000")), instead(450_000));
        assert_eq!(there(None), instead(417_792));
    }

    #[test]
    fn no_tool_is_named_that_would_lose_them() {
        use Distribution::{Bottlerocket, Kernelstub, NixOs, Ostree, RedHat, Suse, Talos};
        let there = on(TWO);
        for (own, tool) in [
            (RedHat, "grubby --update"),
            (Suse, "update-bootloader"),
            (Kernelstub, "kernelstub -a"),
            (Ostree, "--append"),
            (Talos, "extraKernelArgs"),
        ] {
            let how = own.add_boot_parameters(&there, MORE);
            assert!(!how.contains(tool), "{how}");
            assert!(
                own.add_boot_parameters(&OnBoot::default(), MORE).contains(tool),
                "{own:?}"
            );
        }
        let nix = NixOs.add_boot_parameters(&there, MORE);
        assert!(
            nix.contains("\"hugepages=512\" \"hugepagesz=1G\" \"hugepages=64\""),
            "{nix}"
        );
        let own = Bottlerocket.add_boot_parameters(&there, MORE);
        assert!(own.starts_with("count = \"64\" below"), "{own}");
    }
}
