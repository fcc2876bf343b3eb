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
    let cells = cells(&lines, memory, value("sockets").parse().unwrap_or(1));
    let place = pages.map_or(memory_line, |(line, ..)| line).place();
    let refused = pages.map_or_else(Vec::new, |(_, _, pages)| refused(pages, value("numa") == "1", &cells));
    let backing = |size: u64| match pages {
        Some((_, _, pages)) => Backing::Hugetlb(Some(Bytes::mib(page_of(pages, size)))),
        None => Backing::Any,
    };
    let cells = cells.into_iter();
    let (memory, bound) = cells
        .map(|(size, nodes)| ((Bytes::mib(size), backing(size)), nodes))
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

/// What qemu-server refuses of huge pages, in its own words.
fn refused(pages: &str, is_numa: bool, cells: &[(u64, Option<CpuList>)]) -> Vec<String> {
    let mut refused = Vec::new();
    if !is_numa {
        refused.push("numa needs to be enabled to use hugepages".to_owned());
    }
    for (size, nodes) in cells {
        let page = page_of(pages, *size);
        if !size.is_multiple_of(page.max(1)) {
            refused.push(format!(
                "Memory size {size} is not a multiple of the requested hugepages size {page}"
            ));
        }
        if nodes.as_ref().is_none_or(|nodes| nodes.iter().count() != 1) {
            refused.push("numa hostnodes need to be defined to use hugepages, one for each node".to_owned());
        }
    }
    refused
}

/// The guest's nodes, in MiB, with the host's: as they are written, or one for each socket.
fn cells(lines: &[(Line<'_>, &str, &str)], memory: u64, sockets: u64) -> Vec<(u64, Option<CpuList>)> {
    let is_cell = |key: &str| {
        key.strip_prefix("numa")
            .is_some_and(|number| number.parse::<u8>().is_ok())
    };
    let written = lines
        .iter()
        .filter(|(_, key, _)| is_cell(key))
        .filter_map(|(_, _, value)| {
            let part = |name: &str| {
                value
                    .split(',')
                    .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
            };
            // Several lists are set apart by semicolons.
            let nodes = part("hostnodes").and_then(|nodes| nodes.replace(';', ",").parse().ok());
            Some((part("memory")?.parse().ok()?, nodes))
        });
    let written: Vec<_> = written.collect();
    if !written.is_empty() {
        return written;
    }
    let sockets = sockets.max(1);
    let nodes = (0..sockets).map(|node| (memory / sockets, node.to_string().parse().ok()));
    nodes.collect()
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
        assert!(refused("memory: 8193\nhugepages: 1024\nnuma: 1\n")[0].contains("not a multiple"));
        let bound = format!("{numa}numa0: cpus=0-3,memory=8192\n");
        assert!(refused(&bound)[0].contains("hostnodes need to be defined"));
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
