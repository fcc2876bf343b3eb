//! Virtual machines of Proxmox VE: /etc/pve/qemu-server/ID.conf (qm.conf(5)), and what its qemu-server refuses of huge pages.

use host::CpuList;
use model::{Bytes, Unread};

use super::garbled::{empty, garbled};
use super::guest::{Backing, Guest, Manager, Refused, Wrong};
use crate::config::files::{Line, said};

const ONE_G: u64 = 1024;

/// A file of one machine; `None` of a container, which has no memory of its own (pct.conf(5)). What follows the first `[section]` are snapshots.
pub(super) fn parse(path: &str, text: &str) -> Result<Option<Guest>, Unread> {
    let lines: Vec<(Line<'_>, &str, &str)> = said(path, text, &['#'])
        .take_while(|line| !line.text.starts_with('['))
        .filter_map(|line| {
            line.text
                .split_once(':')
                .map(|(key, value)| (line, key.trim(), value.trim()))
        })
        .collect();
    let is_of_container = |key: &str| matches!(key, "rootfs" | "unprivileged") || key.starts_with("lxc.");
    if lines.iter().any(|(_, key, _)| is_of_container(key)) {
        return Ok(None);
    }
    let find = |name: &str| lines.iter().find(|(_, key, _)| *key == name);
    let (memory_line, _, memory) = find("memory").ok_or_else(|| empty(path, "it has no `memory:`"))?;
    let memory = memory.rsplit(['=', ',']).next().unwrap_or(memory);
    let wanted = || garbled(path, memory_line.number(), memory, "MiB of memory");
    let memory: u64 = memory.parse().map_err(|_| wanted())?;
    let pages = find("hugepages");
    let value = |name: &str| find(name).map_or("0", |(_, _, value)| value);
    let place = pages.map_or(memory_line, |(line, ..)| line).place();
    let is_numa = matches!(&*value("numa").to_lowercase(), "1" | "on" | "yes" | "true");
    let is_hotplug = value("hotplug").split([',', ';', ' ']).any(|name| name == "memory");
    // DIMMs have most of the memory then, in sizes of their own.
    let sockets = if is_hotplug { "1" } else { value("sockets") };
    let cells = cells(&lines, memory, sockets.parse().unwrap_or(1));
    let refused = pages.map_or_else(Vec::new, |(_, _, pages)| {
        refused(pages, (is_numa, is_hotplug), memory, &cells)
    });
    let backing = |size: u64| match pages {
        Some((_, _, pages)) => Backing::Hugetlb(Some(Bytes::mib(page_of(pages, size)))),
        None => Backing::Any,
    };
    let cells = cells.into_iter();
    let (memory, bound) = cells
        .map(|cell| ((Bytes::mib(cell.size), backing(cell.size)), cell.nodes))
        .unzip();
    let of_place = |why: String| Refused {
        place: place.clone(),
        why,
        wrong: Wrong::Cells,
    };
    Ok(Some(Guest {
        refused: refused.into_iter().map(of_place).collect(),
        place,
        name: find("name").map_or("the guest", |(_, _, name)| name).to_owned(),
        memory,
        bound,
        is_x86: find("arch").is_none_or(|(_, _, arch)| *arch == "x86_64"),
        prealloc: true,
        manager: Manager::Proxmox,
        ..Guest::default()
    }))
}

/// The page size of a node, in MiB, by `hugepages:`.
fn page_of(pages: &str, size: u64) -> u64 {
    match pages {
        "any" if size.is_multiple_of(ONE_G) => ONE_G,
        "any" => 2,
        pages => pages.parse().unwrap_or(2),
    }
}

/// What qemu-server refuses of huge pages, in its own words and order (PVE/QemuServer/Memory.pm).
fn refused(pages: &str, (is_numa, is_hotplug): (bool, bool), memory: u64, cells: &[Cell]) -> Vec<String> {
    let only = |text: &str| vec![text.to_owned()];
    let is_custom = cells.iter().any(|cell| cell.number.is_some());
    match (is_numa, is_hotplug) {
        (false, true) => return only("NUMA needs to be enabled for memory hotplug"),
        (false, false) => return only("numa needs to be enabled to use hugepages"),
        (true, true) if is_custom => return only("cannot enable memory hotplugging with custom NUMA topology"),
        // The nodes share 1 GiB or more of whole pages, and so do the DIMMs.
        (true, true) => return Vec::new(),
        (true, false) => {}
    }
    let mut refused: Vec<String> = cells.iter().flat_map(|cell| cell.refused(pages)).collect();
    let total = cells.iter().fold(0_u64, |sum, cell| sum.saturating_add(cell.size));
    if is_custom && total != memory {
        refused.extend(only("total memory for NUMA nodes must be equal to vm static memory"));
    }
    refused
}

/// A node of the guest.
struct Cell {
    /// Of `numaN`; `None` of a socket.
    number: Option<u8>,
    /// In MiB.
    size: u64,
    /// The host's nodes.
    nodes: Option<CpuList>,
    has_policy: bool,
}

impl Cell {
    /// `numaN: cpus=0-3,hostnodes=0,memory=8192,policy=bind`.
    fn written(key: &str, value: &str) -> Option<Self> {
        let number = key.strip_prefix("numa")?.parse().ok()?;
        let part = |name: &str| {
            value
                .split(',')
                .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        Some(Self {
            number: Some(number),
            size: part("memory").and_then(|size| size.parse().ok()).unwrap_or(0),
            // Several lists are set apart by semicolons.
            nodes: part("hostnodes").and_then(|nodes| nodes.replace(';', ",").parse().ok()),
            has_policy: part("policy").is_some(),
        })
    }

    fn refused(&self, pages: &str) -> Vec<String> {
        let (size, page) = (self.size, page_of(pages, self.size));
        let of_size = match self.number {
            Some(number) if size == 0 => Some(format!("missing NUMA node{number} memory value")),
            _ if !size.is_multiple_of(2) => Some(format!(
                "memory size '{size}' is not a positive even integer; cannot use for hugepages"
            )),
            _ if !size.is_multiple_of(page.max(1)) => Some(format!(
                "Memory size {size} is not a multiple of the requested hugepages size {page}"
            )),
            _ => None,
        };
        let of_nodes = match &self.nodes {
            None => Some("numa hostnodes need to be defined to use hugepages".to_owned()),
            Some(nodes) if !self.has_policy => Some(format!("you need to define a policy for hostnode {nodes}")),
            Some(nodes) if nodes.len() > 1 => {
                Some("more than 1 hostnode value in numa node is not supported when hugepages are enabled".to_owned())
            }
            Some(_) => None,
        };
        of_size.into_iter().chain(of_nodes).collect()
    }
}

/// The guest's nodes: as they are written, or one for each socket.
fn cells(lines: &[(Line<'_>, &str, &str)], memory: u64, sockets: u64) -> Vec<Cell> {
    let written = lines.iter().filter_map(|(_, key, value)| Cell::written(key, value));
    let written: Vec<Cell> = written.collect();
    if !written.is_empty() {
        return written;
    }
    let sockets = sockets.max(1);
    let cell = |node: u64| Cell {
        number: None,
        size: memory / sockets,
        nodes: node.to_string().parse().ok(),
        has_policy: true,
    };
    (0..sockets).map(cell).collect()
}

/// Keys that only such files have.
pub(super) fn is_key(line: &str) -> bool {
    let key = line.split_once(':').map_or("", |(key, _)| key);
    matches!(
        key,
        "scsihw" | "ostype" | "vmgenid" | "keephugepages" | "hugepages" | "numa0"
    )
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn refused(text: &str) -> Vec<String> {
        let guest = parse("100.conf", text).expect("a file").expect("a machine");
        guest.refused.into_iter().map(|refused| refused.why).collect()
    }

    #[test]
    fn what_qemu_server_refuses_is_its_own_error() {
        let numa = "memory: 8192\nhugepages: 2\nnuma: 1\n";
        assert_eq!(refused(numa), [""; 0]);
        assert!(refused("memory: 8192\nhugepages: 2\n")[0].contains("numa needs to be enabled"));
        assert!(refused("memory: 9000\nhugepages: 1024\nnuma: on\n")[0].contains("not a multiple"));
        for (cell, error) in [
            ("memory=8192", "hostnodes need to be defined"),
            ("hostnodes=0,memory=8192", "define a policy for hostnode 0"),
            ("hostnodes=0-1,memory=8192,policy=bind", "more than 1 hostnode value"),
            ("hostnodes=0,policy=bind", "missing NUMA node0 memory value"),
            (
                "hostnodes=0,memory=8191,policy=bind",
                "memory size '8191' is not a positive",
            ),
            (
                "hostnodes=0,memory=4096,policy=bind",
                "total memory for NUMA nodes must be equal",
            ),
            (
                "hostnodes=0,memory=8192,policy=bind\nhotplug: disk,memory",
                "cannot enable memory hotplugging with custom",
            ),
        ] {
            let errors = refused(&format!("{numa}numa0: cpus=0-3,{cell}\n"));
            assert!(
                errors.first().is_some_and(|own| own.contains(error)),
                "{cell}: {errors:?}"
            );
        }
        let whole = format!("{numa}numa0: cpus=0-3,hostnodes=0,memory=8192,policy=bind\nhotplug: disk\n");
        assert_eq!(refused(&whole), [""; 0]);
        assert_eq!(refused(&format!("{numa}hotplug: disk,memory\nsockets: 3\n")), [""; 0]);
        assert_eq!(
            refused("memory: 8193\n[old]\nhugepages: 2\n"),
            [""; 0],
            "snapshots are others"
        );
    }

    #[test]
    fn any_is_1g_where_it_fits_and_sockets_are_nodes() {
        let guest = parse(
            "1.conf",
            "memory: 6144\nhugepages: any\nnuma: 1\nsockets: 2\nname: db\n",
        )
        .expect("a file")
        .expect("a machine");
        let takes: Vec<String> = guest
            .takes()
            .iter()
            .map(|(size, page, nodes)| format!("{size} {page:?} {nodes:?}"))
            .collect();
        assert_eq!((guest.name.as_str(), takes.len()), ("db", 2), "{takes:?}");
        assert!(
            takes[0].starts_with("3G Some(Bytes(1073741824)) Some(CpuList([0]))"),
            "{takes:?}"
        );
    }
}
