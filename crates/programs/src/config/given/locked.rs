//! What programs of services lock of their memory, so far as their command lines and variables show it.

use model::Bytes;

use super::compose::is_runtime;
use super::ini::Server;
use super::service::Service;
use super::shell::file_name;
use super::starts::{Start, marks};
use crate::config::Setting;
use crate::locks::{Lock, Locks};
use crate::mysql::conf::memlock;
use crate::size::mysql::Innodb;
use crate::vms::configured::{options, size};
use crate::vms::pinned::{self, assigns};

/// Memory that a service's program locks, where its unit's limit decides whether it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// What shows it.
    pub setting: Setting,
    /// At least so much, where that is known.
    pub bytes: Option<Bytes>,
    pub what: Locks,
}

/// What packages of Elasticsearch and OpenSearch start.
const NODES: [&str; 3] = ["elasticsearch", "opensearch", "systemd-entrypoint"];

/// Varnish's log of requests, if no option sets its size (varnishd(1), `vsl_space`).
const LOG: Bytes = Bytes::mib(80);

impl Locked {
    /// Of one command of a service; `None` also for a command with a right to lock.
    pub(super) fn of(service: &Service, start: &Start, servers: &[Server], nodes: &[Setting]) -> Option<Self> {
        let is_root = service
            .user
            .as_ref()
            .is_none_or(|user| matches!(user.value.as_str(), "root" | "0"));
        let is_root = is_root && service.bounds.as_ref().is_none_or(|bounds| bounds.may_lock);
        // Marks for a command that does not run as that user.
        let is_full = start.words.first().is_some_and(|word| marks(word).contains(['+', '!']));
        if service.may_lock || is_full {
            return None;
        }
        let (bytes, what) = match start.own(|name| name == "varnishd") {
            // Its worker gives up root, unless it is to stay.
            Some(words) if is_root && options(words, "j").first() == Some(&"none") => return None,
            Some(words) => (log(words)?, Locks::Log),
            None if is_root => return None,
            None => match start.own(assigns) {
                Some(words) => (pinned::memory(words)?, Locks::Guest),
                None => return Self::asked(start, servers, nodes),
            },
        };
        Some(Self {
            setting: Setting::new(&start.place, "locked memory, at least", bytes.to_string()),
            bytes: Some(bytes),
            what,
        })
    }

    /// By a setting of its own. Containers and other users have limits of their own.
    fn asked(start: &Start, servers: &[Server], nodes: &[Setting]) -> Option<Self> {
        let has_others = |word: &String| {
            let name = file_name(word);
            is_runtime(name) || matches!(name, "sudo" | "doas" | "prlimit")
        };
        if start.words.iter().any(has_others) {
            return None;
        }
        let of_node = || {
            start.own(|name| NODES.contains(&name))?;
            Lock::of_node(&start.words, &start.environment, nodes)
        };
        let lock = Lock::asked(&start.place, &start.words, &start.environment);
        let Some(lock) = lock.or_else(of_node) else {
            return Self::by_file(start, servers);
        };
        let heap = start.java().and_then(|java| java.jvm.heap_max);
        let bytes = heap.filter(|_| lock.what == Locks::Heap);
        let bytes = bytes.or_else(|| lock.least(&start.words));
        let Lock { setting, what } = lock;
        Some(Self { setting, bytes, what })
    }

    /// By the option file of MariaDB.
    fn by_file(start: &Start, servers: &[Server]) -> Option<Self> {
        start.own(|name| name == "mariadbd")?;
        let [only] = servers else { return None };
        let Lock { setting, what } = memlock(&only.settings)?;
        let bytes = Some(Innodb::of(only.settings.pairs()).pool);
        Some(Self { setting, bytes, what })
    }
}

/// The size of Varnish's log; `None` where a variable may set it.
fn log(words: &[String]) -> Option<Bytes> {
    let attached = words.iter().filter_map(|word| word.strip_prefix("-l"));
    let attached = attached.filter(|size| !size.is_empty());
    let parameters = options(words, "p");
    let parameter = parameters.iter().filter_map(|text| text.strip_prefix("vsl_space="));
    let own = options(words, "l");
    let own = own.iter().copied().chain(attached).chain(parameter).next_back();
    match own {
        Some(own) => size(own.split(',').next()?, 1),
        None if words.iter().any(|word| word.contains('$')) => None,
        None => Some(LOG),
    }
}

#[cfg(test)]
mod tests {
    use super::super::service::Service;
    use super::Locked;

    fn locks(lines: &str) -> bool {
        let mut service = Service::new("vm.service".to_owned());
        let text = format!("[Service]\nUser=qemu\n{lines} -m 4G -device vfio-pci,host=01:00.0\n");
        service.take("vm.service", &text, &mut Vec::new());
        let starts = service.starts(&[]);
        starts
            .iter()
            .any(|start| Locked::of(&service, start, &[], &[]).is_some())
    }

    #[test]
    fn qemu_locks_a_guest_without_devices_if_it_is_to() {
        let locked = |options: &str| {
            let mut service = Service::new("vm.service".to_owned());
            let text = format!("[Service]\nUser=qemu\nExecStart=/usr/bin/qemu-system-x86_64 -m 4G {options}\n");
            service.take("vm.service", &text, &mut Vec::new());
            let starts = service.starts(&[]);
            starts
                .iter()
                .find_map(|start| Locked::of(&service, start, &[], &[])?.bytes)
        };
        for options in [
            "-overcommit mem-lock=on",
            "-overcommit cpu-pm=on,mem-lock=on",
            "-realtime mlock=on",
        ] {
            assert_eq!(locked(options), Some(model::Bytes::gib(4)), "{options}");
        }
        for options in ["", "-overcommit mem-lock=off", "-overcommit cpu-pm=on"] {
            assert_eq!(locked(options), None, "{options}");
        }
    }

    #[test]
    fn the_limit_counts_for_what_the_service_itself_starts() {
        for lines in [
            "ExecStart=/usr/bin/qemu-system-x86_64",
            "ExecStart=-@/usr/bin/qemu-system-x86_64 vm",
            "ExecStart=-/usr/bin/numactl -N 0 -m 0 /usr/bin/nice -n 5 /usr/bin/qemu-system-x86_64",
            "ExecStart=env A=/b taskset -c 2-5 qemu-system-x86_64",
            "NUMAPolicy=bind\nNUMAMask=0\nExecStart=/usr/bin/qemu-system-x86_64",
            "AmbientCapabilities=CAP_NET_ADMIN\nExecStart=/usr/bin/qemu-system-x86_64",
            "User=\nCapabilityBoundingSet=~CAP_IPC_LOCK\nExecStart=/usr/bin/qemu-system-x86_64",
        ] {
            assert!(locks(lines), "{lines}");
        }
        for lines in [
            "ExecStart=-+/usr/bin/qemu-system-x86_64",
            "User=\nCapabilityBoundingSet=~CAP_SYS_TIME\nExecStart=/usr/bin/qemu-system-x86_64",
            "NUMAPolicy=bind\nNUMAMask=0\nExecStart=+/usr/bin/qemu-system-x86_64",
            "NUMAPolicy=bind\nNUMAMask=0\nExecStart=-/usr/bin/sudo /usr/bin/qemu-system-x86_64",
            "ExecStart=/usr/bin/sudo /usr/bin/qemu-system-x86_64",
            "ExecStart=/usr/bin/nice sudo -u root qemu-system-x86_64",
            "ExecStart=/usr/bin/podman run --ulimit memlock=-1 image qemu-system-x86_64",
            "AmbientCapabilities=cap_ipc_lock\nExecStart=/usr/bin/qemu-system-x86_64",
            "ExecStart=/usr/bin/docker run varnish varnishd",
            "ExecStart=/usr/bin/varnishlog -P /run/varnishd",
        ] {
            assert!(!locks(lines), "{lines}");
        }
    }
}
