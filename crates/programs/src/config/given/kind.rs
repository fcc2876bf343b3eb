//! What kind of configuration file a file is, from its name or, failing that, from its content.

mod signs;

use host::Tree;
use model::Unread;

use super::compose::{is_command, is_runtime};
use super::guest::{is_firecracker, is_hypervisor};
use super::{bottlerocket, dockerd, incus, ini, kata, manager, node, nova, provision, proxmox, quadlet, script, shell};
use crate::config::{Parameters, tuned, unit, written};
use crate::locks::{NODE_FILES, is_node_file};
use crate::{dpdk, messages};
use signs::{boot_parameter, is_code, is_mostly, is_parameter, limit_line, named, sysctl_name, vmware_name};

pub use signs::is_log_name;

/// Kinds of files that can be judged without a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// sysctl.conf, or a file of sysctl.d; other settings of the kernel: a file of tmpfiles.d, sysfs.conf.
    Sysctl,
    /// The kernel's command line, alone, in GRUB's defaults or in `.wslconfig`.
    Cmdline,
    /// limits.conf, or a file of limits.d.
    Limits,
    /// A systemd service, or a drop-in of one; what its manager gives services (system.conf, user.conf).
    Unit,
    /// A Java command line, or a file of JVM options.
    Java,
    /// postgresql.conf, or YAML of Patroni.
    Postgres,
    /// my.cnf.
    Mysql,
    /// YAML of Kubernetes with a pod in it, or values of a chart that give one hugetlb pages.
    Pod,
    /// Domain XML of libvirt.
    Libvirt,
    /// A command line of QEMU or Cloud Hypervisor.
    Qemu,
    /// A `.vmx` file, or ESX advanced settings.
    Vmware,
    /// Variables that a service gets: a file of /etc/default or /etc/sysconfig.
    Environment,
    /// A virtual machine or a container of Proxmox VE.
    Proxmox,
    /// A compose file, a `docker run` command, a Quadlet of Podman, or Docker's daemon.json.
    Compose,
    /// VPP's startup.conf, or commands that configure Open vSwitch.
    Dpdk,
    /// What nodes are set up with: OpenShift's PerformanceProfile, MachineConfig and Tuned, Talos's configuration, Bottlerocket's user data, modules of NixOS.
    Node,
    /// An instance or a profile of Incus or LXD.
    Incus,
    /// A configuration of Firecracker, or a script with what its API takes.
    Firecracker,
    /// A profile of tuned.
    Tuned,
    /// A shell script that writes settings, or starts a program that is known.
    Script,
    /// A file of a tool that sets machines up: of Ansible, Salt, Puppet, Chef, Terraform, cloud-init, Butane, kickstart.
    Provision,
    /// A configuration of Kata Containers.
    Kata,
    /// Parameters of an instance of Oracle: init.ora, or the text of an spfile.
    Oracle,
    /// nova.conf of OpenStack's compute service.
    Nova,
    /// What a program wrote about its pages: a log, or a terminal.
    Log,
    /// elasticsearch.yml or opensearch.yml.
    Elasticsearch,
}

/// Why a file cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GivenError {
    /// Neither its name nor its content shows what it is.
    #[error("{path}: what kind of file is it? {seen} (say so: --as {})", FileKind::ALL.map(FileKind::name).join("|"))]
    Unsure {
        path: String,
        /// What its content looks like.
        seen: String,
    },
    /// It is no configuration, but what a machine shows of itself.
    #[error(
        "{path}: this is what a terminal showed of a machine, and no configuration file (give it with --root; better is the whole machine, as `hugewise snapshot` records it)"
    )]
    OfMachine { path: String },
    /// It is not of the kind that was named.
    #[error("{path}: nothing in it is of the kind `{kind}`, and neither its name nor its content shows another (--as {kind} is for such files only)", kind = .kind.name())]
    NotThat { path: String, kind: FileKind },
    /// It was to be a log.
    #[error("{path}: no line of it is a message that is known here (docs/reference/messages.md lists them)")]
    NoMessage { path: String },
    /// It is not what it was taken for.
    #[error("{0} (if the file is of another kind, say so: --as {kinds})", kinds = FileKind::ALL.map(FileKind::name).join("|"))]
    Garbled(Unread),
}

impl FileKind {
    /// The kind of a file.
    ///
    /// # Errors
    /// If the name says nothing and the content fits no kind, or several.
    pub fn of(path: &str, text: &str) -> Result<Self, GivenError> {
        if let Some(kind) = Self::by_name(path) {
            return Ok(kind);
        }
        if is_log_name(path) && messages::is_log(text) {
            return Ok(Self::Log);
        }
        if script::is_script(path, text) {
            return Self::of_script(path, text);
        }
        // Their form is theirs alone, whatever is written in them.
        let forms = [
            Self::Node,
            Self::Pod,
            Self::Compose,
            Self::Libvirt,
            Self::Incus,
            Self::Kata,
            Self::Provision,
        ];
        if let Some(kind) = forms.into_iter().find(|kind| kind.fits(text)) {
            return Ok(kind);
        }
        // A program of another language may print files of any form.
        let fits = |kind: &Self| !text.starts_with("#!") && kind.fits(text);
        let fits: Vec<Self> = Self::ALL.into_iter().filter(fits).collect();
        let path = path.to_owned();
        let seen = match fits[..] {
            [kind] => return Ok(kind),
            [] if !is_code(&path, text) && messages::is_known(text) => return Ok(Self::Log),
            [] if Tree::of_terminal(text).is_some() => return Err(GivenError::OfMachine { path }),
            [] if provision::is_about_pages(text) => return Ok(Self::Provision),
            [] => "neither its name nor its content shows it, and no line of it is a message that is known".to_owned(),
            _ => {
                let words: Vec<&str> = fits.iter().map(|kind| kind.name()).collect();
                format!("its content could be {}", words.join(" or "))
            }
        };
        Err(GivenError::Unsure { path, seen })
    }

    /// A script may print files of any form, and is none of them. One command of a program is read as such.
    fn of_script(path: &str, text: &str) -> Result<Self, GivenError> {
        let fits = |kind: &Self| match kind {
            Self::Compose => is_command(text),
            Self::Java | Self::Qemu | Self::Environment | Self::Dpdk | Self::Firecracker => kind.fits(text),
            _ => false,
        };
        let fits: Vec<Self> = Self::ALL.into_iter().filter(fits).collect();
        let script = script::read(path, text);
        match fits[..] {
            _ if script.is_more_than(&fits, text) => Ok(Self::Script),
            [kind] => Ok(kind),
            _ if !script.is_empty() => Ok(Self::Script),
            _ => Err(GivenError::Unsure {
                path: path.to_owned(),
                seen: "no setting of huge pages and no known program is in this script".to_owned(),
            }),
        }
    }

    /// The kind of a file that the user says to be of one: what it can be holds; else what it shows by itself.
    ///
    /// # Errors
    /// If nothing in it is of that kind, nor of another.
    pub(super) fn said(self, path: &str, text: &str) -> Result<Self, GivenError> {
        if self.could_be(text) {
            return Ok(self);
        }
        let path = path.to_owned();
        Self::of(&path, text).map_err(|_| GivenError::NotThat { path, kind: self })
    }

    /// Has it at least one line of such a file? Those with a form of their own are left to their parsers.
    fn could_be(self, text: &str) -> bool {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let assigns = |line: &str| {
            let name = line
                .trim_start_matches('#')
                .split_once('=')
                .map(|(name, _)| name.trim());
            name.is_some_and(|name| !name.is_empty() && !name.contains([' ', '.', '<', ':']))
        };
        let is_form = |line: &str| Self::Pod.fits(text) || line.starts_with('<');
        let has_form = matches!(
            self,
            Self::Pod
                | Self::Compose
                | Self::Libvirt
                | Self::Qemu
                | Self::Firecracker
                | Self::Kata
                | Self::Node
                | Self::Incus
                | Self::Script
                | Self::Provision
                | Self::Log
        );
        if has_form || self.fits(text) {
            return true;
        }
        match self {
            Self::Unit => lines.any(|line| line.starts_with('[') && line.ends_with(']')),
            Self::Mysql => lines.any(|line| line.starts_with('[') || (assigns(line) && !is_form(line))),
            Self::Postgres => lines.any(|line| assigns(line) && !is_form(line)),
            Self::Limits => lines.any(limit_line),
            Self::Java => lines.any(|line| line.starts_with("-X") || line.starts_with("-D") || line.starts_with('@')),
            Self::Cmdline => lines.clone().count() <= 3 && lines.any(|line| line.split_whitespace().any(is_parameter)),
            _ => false,
        }
    }

    /// By names that mean one thing only.
    pub(super) fn by_name(path: &str) -> Option<Self> {
        let path = path.to_ascii_lowercase();
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let below = |parent: &str| directory.rsplit('/').next() == Some(parent);
        let (_, extension) = name.rsplit_once('.').unwrap_or(("", ""));
        Some(match extension {
            "vmx" => Self::Vmware,
            "service" => Self::Unit,
            "cnf" => Self::Mysql,
            "container" => Self::Compose,
            "ora" if name.starts_with("init") || name.starts_with("spfile") => Self::Oracle,
            "json" if name == "daemon.json" => Self::Compose,
            "wslconfig" => Self::Cmdline,
            "nix" => Self::Node,
            "conf" if name == "tuned.conf" => Self::Tuned,
            "conf" if name == "nova.conf" || name == "nova-compute.conf" => Self::Nova,
            "conf" if directory.ends_with(".service.d") || (!directory.is_empty() && unit::is_of_manager(&path)) => {
                Self::Unit
            }
            "conf" if name == "sysctl.conf" || below("sysctl.d") => Self::Sysctl,
            "conf" if name == "sysfs.conf" || below("sysfs.d") || below("tmpfiles.d") => Self::Sysctl,
            "conf" if name == "limits.conf" || below("limits.d") => Self::Limits,
            "conf" if name.starts_with("postgresql.") => Self::Postgres,
            "conf" if below("qemu-server") => Self::Proxmox,
            "cfg" if below("grub.d") => Self::Cmdline,
            _ if name == "grub" || path == "/proc/cmdline" => Self::Cmdline,
            _ if below("sysconfig") || directory.ends_with("etc/default") => Self::Environment,
            "options" | "vmoptions" if name.contains("jvm") || extension == "vmoptions" => Self::Java,
            _ if below("jvm.options.d") => Self::Java,
            _ if SCRIPTS.contains(&name) => Self::Environment,
            "yml" if NODE_FILES.contains(&name) => Self::Elasticsearch,
            "yaml" | "yml" if name.starts_with("compose.") || name.starts_with("docker-compose") => Self::Compose,
            _ => return None,
        })
    }

    /// By something that only this kind has.
    fn fits(self, text: &str) -> bool {
        let lines = || text.lines().map(str::trim);
        let any = |says: fn(&str) -> bool| lines().any(says);
        match self {
            Self::Sysctl if tuned::is_profile(text) => false,
            Self::Sysctl => {
                any(|line| sysctl_name(line).is_some()) || written::writes(text) || written::is_pf_ring(text)
            }
            Self::Tuned => tuned::is_profile(text),
            Self::Cmdline if written::is_pf_ring(text) => false,
            Self::Cmdline => lines().count() <= 3 && text.split_whitespace().any(boot_parameter),
            Self::Limits => is_mostly(text, limit_line),
            // Indented it is the text of a file within another.
            Self::Unit => text.lines().any(|line| line.trim_end() == "[Service]") || manager::is_one("", text),
            Self::Environment if shell::starts(text, is_java) || shell::starts(text, is_runtime) => false,
            Self::Environment => any(is_variable),
            Self::Java => shell::starts(text, is_java) || any(|line| line.starts_with("-XX:")),
            Self::Postgres => {
                any(|line| named(line, "shared_buffers") || named(line, "huge_pages")) || ini::is_patroni(text)
            }
            Self::Mysql => any(|line| matches!(line, "[mysqld]" | "[mariadb]" | "[server]")),
            Self::Pod => {
                let is_object = any(|line| line.starts_with("apiVersion:")) && any(|line| line.starts_with("kind:"));
                let has_heap = any(|line| line.contains("-Xmx") || line.contains("-XX:MaxRAM"));
                let is_chart = any(|line| line == "resources:") && !has_services(text);
                is_object || (is_chart && (has_heap || any(|line| line.starts_with("hugepages-"))))
            }
            Self::Compose => {
                let is_file =
                    has_services(text) && any(|line| ["image:", "build:"].iter().any(|key| line.starts_with(key)));
                is_file || is_command(text) || dockerd::is_daemon("", text) || quadlet::is_quadlet(text)
            }
            Self::Libvirt => text.contains("<domain") && text.contains("</domain>"),
            Self::Qemu => shell::starts(text, is_hypervisor),
            Self::Firecracker => is_firecracker(text),
            Self::Proxmox => any(proxmox::is_key) && any(|line| line.starts_with("memory:")),
            Self::Vmware => any(|line| vmware_name(line).is_some()),
            Self::Dpdk => any(is_section_of_vpp) || dpdk::is_ovs(text),
            Self::Node => node::is_setup(text) || bottlerocket::is_user_data(text),
            Self::Oracle => Parameters::is_in(text),
            Self::Nova => nova::is_nova(text),
            Self::Kata => kata::is_kata(text),
            Self::Elasticsearch => is_node_file(text),
            Self::Incus => incus::is_instance(text),
            // By what else is in it, in [`FileKind::of`].
            Self::Script | Self::Log => false,
            Self::Provision => provision::is_tool(text) && provision::is_about_pages(text),
        }
    }
}

/// Options in a variable that is set.
fn is_variable(line: &str) -> bool {
    let (name, value) = line.trim_start_matches("export ").split_once('=').unwrap_or_default();
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let has_options = value.contains("-XX:") || value.contains("-Xm") || name == "GLIBC_TUNABLES";
    let name = name.trim_end_matches('+');
    !name.is_empty() && name.chars().all(is_name) && has_options
}

/// As a compose file has them: indented they are something else's.
fn has_services(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "services:")
}

fn is_section_of_vpp(line: &str) -> bool {
    let section = line.split_once('{').map_or("", |(name, _)| name.trim());
    matches!(section, "unix" | "dpdk" | "buffers" | "statseg")
}

/// Scripts that hand a Java program its options in variables: Tomcat's, WildFly's, Cassandra's, Solr's, Hadoop's, Spark's.
const SCRIPTS: [&str; 9] = [
    "setenv.sh",
    "standalone.conf",
    "domain.conf",
    "cassandra-env.sh",
    "solr.in.sh",
    "hadoop-env.sh",
    "spark-env.sh",
    "kafka-env.sh",
    "zookeeper-env.sh",
];

pub(super) fn is_java(program: &str) -> bool {
    program == "java"
}

model::names!(FileKind, "a kind of file", {
    Sysctl => "sysctl",
    Cmdline => "cmdline",
    Limits => "limits",
    Unit => "unit",
    Java => "java",
    Postgres => "postgres",
    Mysql => "mysql",
    Pod => "pod",
    Libvirt => "libvirt",
    Qemu => "qemu",
    Vmware => "vmware",
    Environment => "environment",
    Proxmox => "proxmox",
    Compose => "compose",
    Dpdk => "dpdk",
    Node => "node",
    Incus => "incus",
    Firecracker => "firecracker",
    Tuned => "tuned",
    Script => "script",
    Provision => "provision",
    Kata => "kata",
    Oracle => "oracle",
    Nova => "nova",
    Log => "log",
    Elasticsearch => "elasticsearch",
});
