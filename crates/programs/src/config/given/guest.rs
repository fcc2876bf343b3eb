//! Virtual machines as libvirt and QEMU are configured to start them.

use host::CpuList;
use model::{Bytes, Unread};

use super::garbled::empty;
use super::shell;
pub use crate::vms::asked::Backing;
use crate::vms::asked::{Asked, is_qemu, options, parts, qemu as parse_command};

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// `FILE`, or `FILE:LINE` of what says where its memory comes from.
    pub place: String,
    pub name: String,
    /// Its memory, in the parts that are backed alike.
    pub memory: Vec<(Bytes, Backing)>,
    /// The host's nodes from which each of those parts takes its pages, if it is bound to some.
    pub bound: Vec<Option<CpuList>>,
    /// Why libvirt does not accept the definition: its own error, and the line.
    pub refused: Vec<(String, String)>,
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

/// What starts a guest from its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    Libvirt,
    /// QEMU by itself.
    Qemu,
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

    /// The same, with the nodes; parts of one page size and one binding together.
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

/// A file with a QEMU command line: a script, a log of libvirt, or /proc/PID/cmdline.
pub(super) fn qemu(path: &str, text: &str) -> Result<Guest, Unread> {
    let words = shell::words(path, text, is_qemu)?;
    if options(&words, "m").is_empty() && options(&words, "object").is_empty() {
        return Err(empty(
            path,
            "no memory of a virtual machine is in it (-m, -object memory-backend-...)",
        ));
    }
    let Asked {
        name,
        memory,
        prealloc,
        bound,
        ..
    } = parse_command(&words);
    let backing = |from: Backing| match from {
        Backing::Path(path) => by_path(path),
        other => other,
    };
    let unreserved = |object: &&str| {
        parts(object)
            .iter()
            .any(|(key, value)| key == "reserve" && value == "off")
    };
    Ok(Guest {
        place: path.to_owned(),
        name: name.unwrap_or_else(|| "the guest".to_owned()),
        memory: memory.into_iter().map(|(size, from)| (size, backing(from))).collect(),
        bound: bound.iter().map(|nodes| nodes.as_ref()?.parse().ok()).collect(),
        refused: Vec::new(),
        is_x86: words.iter().any(|word| word.ends_with("qemu-system-x86_64")),
        unreserved: options(&words, "object").iter().any(unreserved),
        prealloc,
        by_file: false,
        manager: Manager::Qemu,
    })
}

/// systemd and every guide mount hugetlbfs at such names.
fn by_path(path: String) -> Backing {
    if path.contains("hugepages-1G") || path.contains("hugepages1G") {
        Backing::Hugetlb(Some(Bytes::gib(1)))
    } else if path.contains("hugepages") || path.contains("hugetlbfs") {
        Backing::Hugetlb(None)
    } else {
        Backing::Path(path)
    }
}
