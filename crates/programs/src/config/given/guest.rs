//! Virtual machines as libvirt, QEMU, Cloud Hypervisor and Firecracker are configured to start them.

use host::CpuList;
use host::snapshot::Mount;
use model::{Bytes, Unread};

use super::garbled::empty;
use super::shell;
use super::starts::Start;
pub use crate::vms::configured::Backing;
use crate::vms::configured::{Asked, is_on, options, parts, size, value};
use crate::vms::firecracker::TRACKED;
use crate::vms::{cloud_hypervisor, firecracker, qemu};

/// A virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guest {
    /// `FILE`, or `FILE:LINE` of what says where its memory comes from.
    pub place: String,
    pub name: String,
    /// Its memory, in the parts that are backed alike.
    pub memory: Vec<(Bytes, Backing)>,
    /// A memory backend of QEMU, by its id, that no part of the guest uses.
    pub unused: Option<String>,
    /// The host's nodes from which each of those parts takes its pages, if it is bound to some.
    pub bound: Vec<Option<CpuList>>,
    /// Why its manager does not accept the definition.
    pub refused: Vec<Refused>,
    /// Where it has a device of vhost-user, whose other end has to map its memory, which is private.
    pub unshared: Option<String>,
    /// Where KVM is to log the pages that it writes, as long as it runs.
    pub tracked: Option<String>,
    /// A device of VFIO that its manager does not know of, so that it raises no limit of locked memory; and where it is written.
    pub unknown_device: Option<(String, String)>,
    /// For what its manager raises the limit of locked memory, and where it is written.
    pub pinned: Option<(String, String)>,
    /// The largest page that KVM promises a guest of pseries, and where that is written.
    pub hpt_page: Option<(String, Bytes)>,
    /// Is it a guest of x86-64?
    pub is_x86: bool,
    /// Is memory taken without reserving it first?
    pub unreserved: bool,
    /// Does libvirt make a file for it in a hugetlbfs mount?
    pub by_file: bool,
    /// Is all memory taken at start?
    pub prealloc: bool,
    /// What starts it.
    pub manager: Manager,
}

/// What a manager does not accept of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `FILE:LINE`.
    pub place: String,
    /// The manager's own error.
    pub why: String,
    pub wrong: Wrong,
}

/// What is wrong with a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Cells of the guest that it does not have, or what Proxmox VE asks for with huge pages.
    Cells,
    /// Another process is to map the guest's memory, and it is private.
    Private,
    /// The backend of QEMU's machine is not as large as its memory.
    Backend,
}

/// What starts a guest from its definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manager {
    Libvirt,
    /// QEMU by itself.
    #[default]
    Qemu,
    CloudHypervisor,
    Firecracker,
    /// Kata Containers, which starts a guest for each sandbox.
    Kata,
    /// Proxmox VE, which fills the pools itself when the guest starts.
    Proxmox,
}

impl Guest {
    /// Does it start from pools as they are?
    pub fn is_by_pool(&self) -> bool {
        self.refused.is_empty() && self.manager != Manager::Proxmox
    }

    pub fn total(&self) -> Bytes {
        Bytes(self.memory.iter().map(|(size, _)| size.0).fold(0, u64::saturating_add))
    }

    /// Its memory on hugetlb pages, by page size.
    pub fn hugetlb(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> {
        self.memory.iter().filter_map(|(size, backing)| match backing {
            Backing::Hugetlb(page) => Some((*size, *page)),
            _ => None,
        })
    }

    /// Memory that has to be whole pages, by page size: that on hugetlb pages, and that of Firecracker on THP.
    pub fn in_whole_pages(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> {
        let is_ours = self.manager == Manager::Firecracker;
        let on_thp = self
            .memory
            .iter()
            .filter(move |(_, from)| is_ours && *from == Backing::Thp);
        self.hugetlb()
            .chain(on_thp.map(|(size, _)| (*size, Some(Bytes::mib(2)))))
    }

    /// Those on hugetlb pages, with the nodes; parts of one page size and one binding together.
    pub fn takes(&self) -> Vec<(Bytes, Option<Bytes>, Option<&CpuList>)> {
        let mut sums: Vec<(Bytes, Option<Bytes>, Option<&CpuList>)> = Vec::new();
        for (at, (size, backing)) in self.memory.iter().enumerate() {
            let Backing::Hugetlb(page) = backing else { continue };
            let nodes = self.bound.get(at).and_then(Option::as_ref);
            match sums.iter_mut().find(|(_, other, on)| other == page && *on == nodes) {
                Some((sum, ..)) => sum.0 = sum.0.saturating_add(size.0),
                None => sums.push((*size, *page, nodes)),
            }
        }
        sums
    }
}

impl Guest {
    /// The guest with paths as pages: of what is mounted there on a machine, else of what they are named for.
    #[must_use]
    pub fn on(&self, mounts: Option<&[Mount]>) -> Self {
        let resolved = |from: &Backing| match from {
            Backing::Path(path) => pages_at(path, mounts).map_or_else(|| from.clone(), Backing::Hugetlb),
            _ => from.clone(),
        };
        let memory = self.memory.iter();
        Self {
            memory: memory.map(|(size, from)| (*size, resolved(from))).collect(),
            ..self.clone()
        }
    }

    /// Paths that are named for huge pages, after [`Guest::on`] those that are on no mount of them.
    pub fn paths(&self) -> impl Iterator<Item = (&str, Option<Bytes>)> {
        self.memory.iter().filter_map(|(_, from)| match from {
            Backing::Path(path) => by_name(path).map(|size| (path.as_str(), size)),
            _ => None,
        })
    }
}

/// The page size of a path on hugetlbfs, by the mounts of a machine or else by its name; `None` of a size is the default one.
pub fn pages_at(path: &str, mounts: Option<&[Mount]>) -> Option<Option<Bytes>> {
    mounts.map_or_else(|| by_name(path), |mounts| mounted(mounts, path))
}

/// That of the innermost hugetlbfs that a path lies on.
fn mounted(mounts: &[Mount], path: &str) -> Option<Option<Bytes>> {
    let is_below = |mount: &&Mount| {
        let rest = path.strip_prefix(mount.target.trim_end_matches('/'));
        mount.kind == "hugetlbfs" && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mount = mounts.iter().filter(is_below).max_by_key(|mount| mount.target.len())?;
    Some(mount.page_size())
}

/// The page size that a path names; systemd and every guide mount hugetlbfs at such names: /dev/hugepages-1G, /mnt/huge_1GB, /mnt/huge.
fn by_name(path: &str) -> Option<Option<Bytes>> {
    let rests = path.split('/').filter_map(|name| name.split_once("huge"));
    let mut sizes = rests.filter_map(|(_, rest)| {
        let kind = ["pages", "tlbfs"].iter().find_map(|kind| rest.strip_prefix(kind));
        let size = kind.unwrap_or(rest).trim_start_matches(['-', '_']);
        let is_it = kind.is_some() || size.is_empty() || size.starts_with(|first: char| first.is_ascii_digit());
        is_it.then(|| size.starts_with("1G").then_some(Bytes::gib(1)))
    });
    sizes.next()
}

/// Does a command line start a virtual machine?
pub(super) fn is_hypervisor(program: &str) -> bool {
    qemu::is_program(program) || program == "cloud-hypervisor"
}

/// A Firecracker configuration has this key, and so has what its API takes.
const FIRECRACKER: &str = "\"mem_size_mib\"";

pub(super) fn is_firecracker(text: &str) -> bool {
    text.contains(FIRECRACKER) || text.contains("\"machine-config\"")
}

/// A file with the command line of a hypervisor (a script, a log of libvirt, or /proc/PID/cmdline), or Firecracker's configuration.
pub(super) fn parse(path: &str, text: &str) -> Result<Guest, Unread> {
    if is_firecracker(text) {
        let machine = firecracker::machine(path, text)?;
        let asked = Asked {
            memory: vec![machine.memory],
            ..Asked::default()
        };
        let at = text.lines().position(|line| line.contains(TRACKED));
        return Ok(Guest {
            tracked: at.filter(|_| machine.is_tracked).map(|at| format!("{path}:{}", at + 1)),
            ..started(path, asked, Manager::Firecracker, true)
        });
    }
    of_start(&Start {
        place: path.to_owned(),
        words: shell::all_words(path, text)?,
        ..Start::default()
    })
}

/// What a command starts, whose memory numactl may bind.
///
/// # Errors
/// If it names no memory.
pub(super) fn of_start(start: &Start) -> Result<Guest, Unread> {
    let words = start.from(is_hypervisor).unwrap_or(&start.words);
    let guest = of_words(&start.place, words)?;
    // A policy of QEMU's own overrides that of numactl.
    let is_own = options(words, "object").iter().any(|object| object.contains("policy="));
    let nodes = start.nodes().filter(|_| !is_own);
    let own = |at: usize| guest.bound.get(at).cloned().flatten();
    let bound = (0..guest.memory.len()).map(|at| own(at).or_else(|| nodes.clone()));
    let bound = bound.collect();
    Ok(Guest { bound, ..guest })
}

fn of_words(path: &str, words: &[String]) -> Result<Guest, Unread> {
    if options(words, "memory").is_empty() && options(words, "m").is_empty() && options(words, "object").is_empty() {
        return Err(empty(
            path,
            "no memory of a virtual machine is in it (-m, -object memory-backend-..., --memory)",
        ));
    }
    let is_ours = words.first().is_some_and(|word| word.ends_with("cloud-hypervisor"));
    if is_ours {
        let reserves = options(words, "memory")
            .iter()
            .any(|memory| is_on(&parts(memory), "reserve"));
        return Ok(started(
            path,
            cloud_hypervisor::asked(words),
            Manager::CloudHypervisor,
            !reserves,
        ));
    }
    let open = |object: &&str| value(&parts(object), "reserve") == Some("off");
    let unreserved = options(words, "object").iter().any(open);
    let is_vhost_user = |text: &&str| {
        text.starts_with("vhost-user")
            || ["type=vhost-user", "\"vhost-user"]
                .iter()
                .any(|word| text.contains(word))
    };
    let mut devices = [options(words, "netdev"), options(words, "device")]
        .concat()
        .into_iter();
    let asked = qemu::parse(words);
    let by_kvm = words.iter().any(|word| word.contains("kvm"));
    let machines = [options(words, "machine"), options(words, "M")].concat();
    let page = machines
        .iter()
        .find_map(|text| size(value(&parts(text), "cap-hpt-max-page-size")?, 1));
    let refused = qemu::refused(words).map(|why| Refused {
        place: path.to_owned(),
        why: why.to_owned(),
        wrong: Wrong::Backend,
    });
    Ok(Guest {
        unused: qemu::unused(words),
        refused: refused.into_iter().collect(),
        hpt_page: page.filter(|_| by_kvm).map(|page| (path.to_owned(), page)),
        is_x86: words.iter().any(|word| word.ends_with("qemu-system-x86_64")),
        unshared: (!asked.shared && devices.any(|text| is_vhost_user(&text))).then(|| path.to_owned()),
        ..started(path, asked, Manager::Qemu, unreserved)
    })
}

/// What a guest without a name is called.
pub(super) const UNNAMED: &str = "the guest";

pub(super) fn started(path: &str, asked: Asked, manager: Manager, unreserved: bool) -> Guest {
    Guest {
        place: path.to_owned(),
        name: asked.name.unwrap_or_else(|| UNNAMED.to_owned()),
        memory: asked.memory,
        bound: asked.bound.iter().map(|nodes| nodes.as_ref()?.parse().ok()).collect(),
        unreserved,
        prealloc: asked.prealloc,
        manager,
        ..Guest::default()
    }
}
