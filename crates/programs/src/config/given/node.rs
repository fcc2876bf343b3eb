//! What nodes of Kubernetes are set up with: OpenShift's PerformanceProfile, MachineConfig and Tuned, Talos's machine configuration and the
//! schematic of its image, the system configuration of GKE, node classes of Karpenter.

use model::{Cause, Unread};

use super::garbled::Refusal;
use super::yaml::Node;
use super::{FileKind, bottlerocket, profile};
use crate::config::kept::swapped;
use crate::config::{BootForm, BootLine, LimitLine, Setting};

/// What of a file that sets a machine up is about pages.
#[derive(Debug, Default)]
pub(super) struct Setup {
    /// Words of the kernel's command line, in the order in which they come there.
    pub(super) boot: Vec<BootLine>,
    pub(super) sysctl: Vec<Setting>,
    /// Files below /sys.
    pub(super) sysfs: Vec<Setting>,
    /// A profile of tuned, by the lines of the file.
    pub(super) profiles: Vec<String>,
    pub(super) limits: Vec<LimitLine>,
    /// Files that it writes, of kinds that are known by their names: path, kind and text.
    pub(super) files: Vec<(String, FileKind, String)>,
    /// Commands of a shell, each behind so many lines of the file.
    pub(super) scripts: Vec<(usize, String)>,
    /// What only a run shows, with its place.
    pub(super) unresolved: Vec<String>,
    /// What it is refused for.
    pub(super) refused: Vec<Refusal>,
}

/// Objects of OpenShift and of Karpenter, by kind and API group.
const KINDS: [(&str, &str); 4] = [
    ("EC2NodeClass", "karpenter.k8s.aws"),
    ("PerformanceProfile", "performance.openshift.io"),
    ("MachineConfig", "machineconfiguration.openshift.io"),
    ("Tuned", "tuned.openshift.io"),
];

/// Documents of Talos's configuration beside the first one, which has no kind.
const OF_TALOS: [&str; 2] = ["SysctlConfig", "SysfsConfig"];
/// Keys below its `machine:`.
const OF_MACHINE: [&str; 4] = ["sysctls", "sysfs", "install", "kubelet"];
/// Keys of the first one.
const TOP_OF_TALOS: [&str; 5] = ["version", "debug", "persist", "machine", "cluster"];

/// A program that takes such a file: what applies one, and its documentation.
pub(super) struct Taker {
    pub(super) command: &'static str,
    pub(super) link: &'static str,
}

impl Taker {
    pub(super) fn refuses(&self, node: &Node, why: impl Into<String>, fix: &str) -> Refusal {
        let fix = format!("{fix}, then: {} {}", self.command, node.path);
        Refusal::new(&format!("{}:{}", node.path, node.key_line), why, fix, self.link)
    }
}

const TALOS: Taker = Taker {
    command: "talosctl apply-config -n NODE -f",
    link: "https://docs.siderolabs.com/talos/v1.12/reference/configuration/v1alpha1/config",
};

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
/// If a count in it is no number, or something about pages is in a form that is not read.
pub(super) fn setup(document: &Node) -> Result<Option<Setup>, Unread> {
    let (kind, group) = document.object();
    let setup = match kind {
        _ if KINDS.contains(&(kind, group)) => match kind {
            "PerformanceProfile" => profile::profile(document)?,
            "MachineConfig" => machine_config(document)?,
            "Tuned" => tuned(document),
            _ => return user_data(document).transpose(),
        },
        "SysctlConfig" => Setup {
            sysctl: settings(document.get("params")),
            ..Setup::default()
        },
        "SysfsConfig" => Setup {
            sysfs: below_sys(settings(document.get("params"))),
            ..Setup::default()
        },
        "" => return Ok(of_gke(document).or_else(|| talos(document))),
        _ => return Ok(None),
    };
    Ok(Some(setup))
}

/// Its kernelArguments, and the units of Ignition beside them. Ignition's files are encoded.
fn machine_config(document: &Node) -> Result<Setup, Unread> {
    const WHY: &str =
        "files in spec.config of a MachineConfig are not read: give them to hugewise as files of their own";
    let config = |keys: &[&str]| document.at(&["spec", "config"])?.at(keys);
    let encoded = config(&["storage"]).and_then(about_pages);
    let units = config(&["systemd", "units"]).map_or(&[][..], Node::items);
    let setup = Setup {
        boot: line(document.at(&["spec", "kernelArguments"])),
        files: units.iter().flat_map(of_unit).collect(),
        unresolved: encoded.iter().map(|part| format!("{}: {WHY}", part.place())).collect(),
        ..Setup::default()
    };
    match encoded.filter(|_| setup.boot.is_empty() && setup.files.is_empty()) {
        Some(part) => Err(Unread::new(Cause::Garbled, part.place(), WHY)),
        None => Ok(setup),
    }
}

/// A unit of Ignition and its drop-ins, as far as they are about pages.
fn of_unit(unit: &Node) -> Vec<(String, FileKind, String)> {
    let Some(name) = unit.text_of("name") else {
        return Vec::new();
    };
    let file = |node: &Node, own: &str| {
        let contents = node
            .get("contents")
            .filter(|contents| about_pages(contents).is_some())?;
        let path = format!("{}:/etc/systemd/system/{own}", node.path);
        Some((path, FileKind::Unit, in_place(contents, contents.text()?)))
    };
    let drop_ins = unit.get("dropins").map_or(&[][..], Node::items).iter();
    let drop_ins = drop_ins.filter_map(|own| file(own, &format!("{name}.d/{}", own.text_of("name")?)));
    file(unit, name).into_iter().chain(drop_ins).collect()
}

/// User data of Bottlerocket in a node class; that of others is a script.
fn user_data(document: &Node) -> Option<Result<Setup, Unread>> {
    let node = document.at(&["spec", "userData"])?;
    let text = node.text().filter(|text| bottlerocket::is_user_data(text))?;
    Some(bottlerocket::setup(&node.path, &in_place(node, text)))
}

/// A list of words of the command line.
pub(super) fn line(list: Option<&Node>) -> Vec<BootLine> {
    let words: Vec<&str> = list
        .map_or(&[][..], Node::items)
        .iter()
        .filter_map(Node::text)
        .collect();
    let first = list.filter(|_| !words.is_empty());
    first
        .map(|node| boot_line(node.place(), &words.join(" ")))
        .into_iter()
        .collect()
}

/// A map of names and values.
fn settings(map: Option<&Node>) -> Vec<Setting> {
    let entries = map.map_or(&[][..], Node::entries).iter();
    let setting = |(name, node): &(String, Node)| node.setting(name);
    entries.filter_map(setting).collect()
}

fn tuned(document: &Node) -> Setup {
    let profiles = document.at(&["spec", "profile"]).map_or(&[][..], Node::items);
    let data = profiles.iter().filter_map(|profile| profile.get("data"));
    let text = |node: &Node| Some(in_place(node, node.text()?));
    Setup {
        profiles: data.filter_map(text).collect(),
        ..Setup::default()
    }
}

/// The system configuration of a node pool (`gcloud container node-pools create --system-config-from-file`).
fn of_gke(document: &Node) -> Option<Setup> {
    let linux = document.get("linuxConfig")?;
    let pages = |(key, size): (&str, &str)| {
        let node = linux.at(&["hugepageConfig", key])?;
        Some(boot_line(
            node.place(),
            &format!("hugepagesz={size} hugepages={}", node.text()?),
        ))
    };
    Some(Setup {
        boot: [("hugepage_size2m", "2M"), ("hugepage_size1g", "1G")]
            .into_iter()
            .filter_map(pages)
            .collect(),
        sysctl: settings(linux.get("sysctl")),
        sysfs: gke_policy(linux).into_iter().collect(),
        ..Setup::default()
    })
}

/// `TRANSPARENT_HUGEPAGE_ENABLED_ALWAYS`
fn gke_policy(linux: &Node) -> Option<Setting> {
    let node = linux.get("transparentHugepageEnabled")?;
    let value = node.text()?.rsplit('_').next()?.to_ascii_lowercase();
    let name = "/sys/kernel/mm/transparent_hugepage/enabled";
    (value != "unspecified").then(|| Setting::new(node.place(), name, value))
}

/// Talos's own configuration, a patch of it, or the schematic of an image.
fn talos(document: &Node) -> Option<Setup> {
    if let Some(image) = document.get("customization") {
        return Some(Setup {
            boot: line(image.get("extraKernelArgs")),
            ..Setup::default()
        });
    }
    // Values of a chart have `sysctls:` too.
    let is_known = |key: &str| OF_MACHINE.contains(&key) || TOP_OF_TALOS.contains(&key);
    if !document.entries().iter().all(|(key, _)| is_known(key)) {
        return None;
    }
    let machine = document.get("machine");
    let mut refused = astray(document);
    if machine.is_none() && refused.is_empty() {
        return None;
    }
    refused.extend(twice(document));
    let of = |keys: &[&str]| machine.and_then(|machine| machine.at(keys));
    let args = of(&["install", "extraKernelArgs"]);
    let takes_image = of(&["install", "grubUseUKICmdline"]).and_then(Node::text) == Some("true");
    if let Some(args) = args.filter(|_| takes_image) {
        let why = "Talos refuses extraKernelArgs beside grubUseUKICmdline: true";
        let fix = "remove extraKernelArgs, and have them in the image's schematic; or grubUseUKICmdline: false";
        refused.push(TALOS.refuses(args, why, fix));
    }
    let form = BootForm::ByInstaller;
    let by_installer = |line: BootLine| BootLine { form, ..line };
    Some(Setup {
        boot: line(args).into_iter().map(by_installer).collect(),
        sysctl: settings(of(&["sysctls"])),
        sysfs: below_sys(settings(of(&["sysfs"]))),
        refused,
        ..Setup::default()
    })
}

/// Maps at the top that are a machine's; where they are all that the file has, it may be another program's.
fn astray(document: &Node) -> Vec<Refusal> {
    let entries = document.entries();
    let if_so = match entries.iter().any(|(key, _)| TOP_OF_TALOS.contains(&key.as_str())) {
        true => "",
        false => "if this is a configuration of Talos: ",
    };
    let astray = entries
        .iter()
        .filter(|(key, node)| OF_MACHINE.contains(&key.as_str()) && !node.entries().is_empty());
    let refused = astray.map(|(key, node)| {
        let why = format!("{if_so}`{key}` belongs below `machine:`, and Talos refuses the file with it at the top");
        TALOS.refuses(node, why, &format!("move `{key}` below `machine:`"))
    });
    refused.collect()
}

/// Keys that a map has twice: the parser of Talos takes no such file.
fn twice(node: &Node) -> Vec<Refusal> {
    let entries = node.entries();
    let again = entries.iter().enumerate().filter_map(|(at, (key, value))| {
        let (_, first) = entries[..at].iter().find(|(known, _)| known == key)?;
        let why = format!(
            "the key `{key}` is in this map already (line {}): Talos refuses the file",
            first.key_line
        );
        Some(TALOS.refuses(value, why, &format!("write both below one `{key}:`")))
    });
    let below = entries.iter().map(|(_, node)| node).chain(node.items());
    again.chain(below.flat_map(twice)).collect()
}

/// `kernel.mm.transparent_hugepage.enabled` as a path: dots and slashes change places, unless the first of them is a slash.
fn below_sys(set: Vec<Setting>) -> Vec<Setting> {
    let path = |setting: Setting| {
        let is_path = setting
            .name
            .find(['.', '/'])
            .is_some_and(|at| setting.name[at..].starts_with('/'));
        let name = match is_path {
            true => setting.name.clone(),
            false => swapped(&setting.name),
        };
        Setting {
            name: format!("/sys/{name}"),
            ..setting
        }
    };
    set.into_iter().map(path).collect()
}

/// The first text below a node that is about huge pages or sysctl.
fn about_pages(node: &Node) -> Option<&Node> {
    let is_about = |text: &str| text.contains("huge") || text.contains("sysctl.d");
    let below = || node.entries().iter().map(|(_, node)| node).chain(node.items());
    match node.text().is_some_and(is_about) {
        true => Some(node),
        false => below().find_map(about_pages),
    }
}

/// A text with empty lines in front, so that its lines have the numbers that they have in the file.
pub(super) fn in_place(node: &Node, text: &str) -> String {
    "\n".repeat(node.line.saturating_sub(1)) + text
}

pub(super) fn boot_line(place: String, words: &str) -> BootLine {
    let line = BootLine::new(place, words);
    BootLine {
        boot: line.boot.with_sysctl(true, None),
        ..line
    }
}
