//! What nodes of Kubernetes are set up with: OpenShift's PerformanceProfile, MachineConfig and Tuned, Talos's machine configuration and the
//! schematic of its image, the system configuration of GKE.

use model::{Cause, Unread};

use super::garbled::garbled;
use super::yaml::Node;
use crate::config::{Boot, BootLine, Setting};

/// What of it is about pages.
#[derive(Debug, Default)]
pub(super) struct Setup {
    /// Words of the kernel's command line, in the order in which they come there.
    pub(super) boot: Vec<BootLine>,
    /// Is that command line one that Talos's installer writes, if anything does?
    pub(super) is_by_installer: bool,
    pub(super) sysctl: Vec<Setting>,
    /// Files below /sys.
    pub(super) sysfs: Vec<Setting>,
    /// A profile of tuned, with empty lines in front of it, so that its lines have the numbers that they have in the file.
    pub(super) profiles: Vec<String>,
    /// What it is refused for.
    pub(super) refused: Vec<Unread>,
}

/// Objects of OpenShift, by kind and API group.
const KINDS: [(&str, &str); 3] = [
    ("PerformanceProfile", "performance.openshift.io"),
    ("MachineConfig", "machineconfiguration.openshift.io"),
    ("Tuned", "tuned.openshift.io"),
];

/// Sizes as the operator takes them: with base pages of 64K, which arm64 alone has, and with those of 4K there and on x86-64.
const OF_64K: [&str; 3] = ["2M", "512M", "16G"];
const OF_4K: [&str; 4] = ["64k", "2M", "32M", "1G"];

/// Documents of Talos's configuration beside the first one, which has no kind.
const OF_TALOS: [&str; 2] = ["SysctlConfig", "SysfsConfig"];
/// Keys of the first one.
const TOP_OF_TALOS: [&str; 5] = ["version", "debug", "persist", "machine", "cluster"];

/// Lines that only such files have.
pub(super) fn is_setup(text: &str) -> bool {
    let is_line = |wanted: &str| text.lines().any(|line| line.trim_end() == wanted);
    let kinds = KINDS.iter().map(|(kind, _)| kind).chain(&OF_TALOS);
    let is_kind = kinds.into_iter().any(|kind| is_line(&format!("kind: {kind}")));
    let of_image = is_line("customization:") && text.contains("extraKernelArgs:");
    is_kind || of_image || ["machine:", "sysctls:", "linuxConfig:"].into_iter().any(is_line)
}

/// What a document sets up; `None` of others.
///
/// # Errors
/// If a count in it is no number.
pub(super) fn setup(path: &str, document: &Node) -> Result<Option<Setup>, Unread> {
    let text = |key: &str| document.get(key).and_then(Node::text).unwrap_or_default();
    let group = text("apiVersion").split('/').next().unwrap_or_default();
    let file = File { path };
    let setup = match text("kind") {
        kind if KINDS.contains(&(kind, group)) => match kind {
            "PerformanceProfile" => file.profile(document)?,
            "MachineConfig" => Setup {
                boot: file.line(document.at(&["spec", "kernelArguments"])),
                ..Setup::default()
            },
            _ => file.tuned(document),
        },
        kind if OF_TALOS.contains(&kind) => {
            let set = file.settings(document.get("params"));
            match kind {
                "SysctlConfig" => Setup {
                    sysctl: set,
                    ..Setup::default()
                },
                _ => Setup {
                    sysfs: below_sys(set),
                    ..Setup::default()
                },
            }
        }
        "" => return Ok(file.of_gke(document).or_else(|| file.talos(document))),
        _ => return Ok(None),
    };
    Ok(Some(setup))
}

struct File<'a> {
    path: &'a str,
}

impl File<'_> {
    fn place(&self, node: &Node) -> String {
        format!("{}:{}", self.path, node.line)
    }

    fn refused(&self, node: &Node, why: String) -> Unread {
        Unread::new(Cause::Garbled, self.place(node), why)
    }

    /// A list of words of the command line.
    fn line(&self, list: Option<&Node>) -> Vec<BootLine> {
        let words: Vec<&str> = list
            .map_or(&[][..], Node::items)
            .iter()
            .filter_map(Node::text)
            .collect();
        let first = list.filter(|_| !words.is_empty());
        first
            .map(|node| boot_line(self.place(node), &words.join(" ")))
            .into_iter()
            .collect()
    }

    /// A map of names and values.
    fn settings(&self, map: Option<&Node>) -> Vec<Setting> {
        let entries = map.map_or(&[][..], Node::entries).iter();
        let setting = |(name, node): &(String, Node)| {
            Some(Setting {
                place: self.place(node),
                name: name.clone(),
                value: node.text()?.to_owned(),
            })
        };
        entries.filter_map(setting).collect()
    }

    /// The operator asks for pages without a node by the command line, and for those of a node when it starts: here all of a size are one.
    fn profile(&self, document: &Node) -> Result<Setup, Unread> {
        let mut setup = Setup::default();
        let spec = document.get("spec");
        let pages = spec.and_then(|spec| spec.get("hugepages"));
        let base = spec.and_then(|spec| spec.get("kernelPageSize")).and_then(Node::text);
        if let Some(node) = pages.and_then(|pages| pages.get("defaultHugepagesSize"))
            && let Some(size) = node.text()
        {
            setup
                .boot
                .push(boot_line(self.place(node), &format!("default_hugepagesz={size}")));
        }
        let mut sums: Vec<(&str, u64, &Node)> = Vec::new();
        let mut seen: Vec<(&str, Option<&str>)> = Vec::new();
        for page in pages.and_then(|pages| pages.get("pages")).map_or(&[][..], Node::items) {
            let (size, count) = self.page(page)?;
            let node = page.get("node").and_then(Node::text);
            setup.refused.extend(self.no_such_size(page, size, base));
            if seen.contains(&(size, node)) {
                let which = node.map_or_else(|| "without a node".to_owned(), |node| format!("of node {node}"));
                let why = format!("the operator refuses the profile: pages of {size} {which} are there twice");
                setup.refused.push(self.refused(page, why));
            }
            seen.push((size, node));
            match sums.iter_mut().find(|(known, ..)| *known == size) {
                Some((_, sum, _)) => *sum = sum.saturating_add(count),
                None => sums.push((size, count, page)),
            }
        }
        let lines = sums
            .into_iter()
            .map(|(size, count, node)| boot_line(self.place(node), &format!("hugepagesz={size} hugepages={count}")));
        setup.boot.extend(lines);
        setup
            .boot
            .extend(self.line(spec.and_then(|spec| spec.get("additionalKernelArgs"))));
        Ok(setup)
    }

    /// Size and count of an entry.
    fn page<'n>(&self, page: &'n Node) -> Result<(&'n str, u64), Unread> {
        let text = |key: &str| page.get(key).and_then(Node::text).unwrap_or_default();
        let count = text("count");
        let wanted = || garbled(self.path, page.line, count, "a count of pages");
        Ok((text("size"), count.parse().map_err(|_| wanted())?))
    }

    /// Base pages of 64K bring pages of 512M, and take those of 32M and 1G.
    fn no_such_size(&self, page: &Node, size: &str, base: Option<&str>) -> Option<Unread> {
        let base = base.unwrap_or("4k");
        let fits = match base {
            "64k" => OF_64K.contains(&size),
            _ => OF_4K.contains(&size),
        };
        let why = match base {
            _ if fits => return None,
            "64k" => format!("a kernel with kernelPageSize 64k has pages of 2M and 512M, and none of {size}"),
            _ if size == "512M" => {
                "pages of 512M are those of a kernel with kernelPageSize 64k (arm64 alone), and this one has base pages of 4K".to_owned()
            }
            _ => format!("`{size}` is no size that the operator takes (2M, 1G)"),
        };
        Some(self.refused(
            page,
            format!("{why}: the operator refuses the profile, or no such page is made"),
        ))
    }

    fn tuned(&self, document: &Node) -> Setup {
        let profiles = document.at(&["spec", "profile"]).map_or(&[][..], Node::items);
        let data = profiles.iter().filter_map(|profile| profile.get("data"));
        let text = |node: &Node| Some("\n".repeat(node.line) + node.text()?);
        Setup {
            profiles: data.filter_map(text).collect(),
            ..Setup::default()
        }
    }

    /// The system configuration of a node pool (`gcloud container node-pools create --system-config-from-file`).
    fn of_gke(&self, document: &Node) -> Option<Setup> {
        let linux = document.get("linuxConfig")?;
        let pages = |(key, size): (&str, &str)| {
            let node = linux.at(&["hugepageConfig", key])?;
            Some(boot_line(
                self.place(node),
                &format!("hugepagesz={size} hugepages={}", node.text()?),
            ))
        };
        Some(Setup {
            boot: [("hugepage_size2m", "2M"), ("hugepage_size1g", "1G")]
                .into_iter()
                .filter_map(pages)
                .collect(),
            sysctl: self.settings(linux.get("sysctl")),
            ..Setup::default()
        })
    }

    /// Talos's own configuration, a patch of it, or the schematic of an image.
    fn talos(&self, document: &Node) -> Option<Setup> {
        if let Some(image) = document.get("customization") {
            return Some(Setup {
                boot: self.line(image.get("extraKernelArgs")),
                ..Setup::default()
            });
        }
        let of_machine = |key: &str| ["sysctls", "sysfs", "install", "kubelet"].contains(&key);
        let is_known = |key: &str| of_machine(key) || TOP_OF_TALOS.contains(&key);
        // Values of a chart have `sysctls:` too.
        if !document.entries().iter().all(|(key, _)| is_known(key)) {
            return None;
        }
        let machine = document.get("machine");
        let astray = document
            .entries()
            .iter()
            .filter(|(key, node)| of_machine(key) && !node.entries().is_empty())
            .map(|(key, node)| {
                let why = format!(
                    "in a configuration of Talos `{key}` belongs below `machine:`: at the top it refuses the file"
                );
                self.refused(node, why)
            });
        let mut refused: Vec<Unread> = astray.collect();
        if machine.is_none() && refused.is_empty() {
            return None;
        }
        refused.extend(self.twice(document));
        if let Some(install) = machine.and_then(|machine| machine.get("install"))
            && let Some(args) = install.get("extraKernelArgs")
            && install.get("grubUseUKICmdline").and_then(Node::text) == Some("true")
        {
            let why = "extraKernelArgs beside grubUseUKICmdline: Talos refuses the file, and takes the command line of its image";
            refused.push(self.refused(args, why.to_owned()));
        }
        let of = |key: &str| machine.and_then(|machine| machine.get(key));
        Some(Setup {
            boot: self.line(of("install").and_then(|install| install.get("extraKernelArgs"))),
            is_by_installer: true,
            sysctl: self.settings(of("sysctls")),
            sysfs: below_sys(self.settings(of("sysfs"))),
            refused,
            ..Setup::default()
        })
    }

    /// Keys that a map has twice: the parser of Talos takes no such file.
    fn twice(&self, node: &Node) -> Vec<Unread> {
        let entries = node.entries();
        let again = entries.iter().enumerate().filter_map(|(at, (key, value))| {
            let (_, first) = entries[..at].iter().find(|(known, _)| known == key)?;
            let why = format!(
                "the key `{key}` is in this map already (line {}): Talos refuses the file",
                first.line
            );
            Some(self.refused(value, why))
        });
        let below = entries.iter().map(|(_, node)| node).chain(node.items());
        again.chain(below.flat_map(|node| self.twice(node))).collect()
    }
}

/// `kernel.mm.transparent_hugepage.enabled` as a path.
fn below_sys(set: Vec<Setting>) -> Vec<Setting> {
    let path = |setting: Setting| Setting {
        name: format!("/sys/{}", setting.name.replace('.', "/")),
        ..setting
    };
    set.into_iter().map(path).collect()
}

pub(super) fn boot_line(place: String, words: &str) -> BootLine {
    BootLine {
        place,
        boot: Boot::parse(words, Some(&Boot::SIZES)).with_sysctl(true, None),
        words: words.to_owned(),
    }
}
