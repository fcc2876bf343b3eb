//! Virtual machines as libvirt and QEMU are configured to start them.

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
    /// Its name.
    pub name: String,
    /// Its memory, in the parts that are backed alike.
    pub memory: Vec<(Bytes, Backing)>,
    /// Is memory taken without reserving it first?
    pub unreserved: bool,
    /// Is all memory taken at start?
    pub prealloc: bool,
}

impl Guest {
    /// All its memory.
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
        name, memory, prealloc, ..
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
        unreserved: options(&words, "object").iter().any(unreserved),
        prealloc,
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
