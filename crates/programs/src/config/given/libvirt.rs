//! Domain XML of libvirt: memory, and the pages that are to back it (libvirt.org/formatdomain.html).

mod refusals;
#[cfg(test)]
mod tests;

use host::CpuList;
use model::{Bytes, Cause, Unread};
use roxmltree::{Document, Node};

use super::garbled::{empty, garbled};
use super::guest::{Backing, Guest, Manager, Refused, Wrong};

/// A part of a guest's memory: its size, what backs it, and the host's nodes that it is bound to.
type Part = ((Bytes, Backing), Option<CpuList>);

/// Memory of `<devices>`.
struct Device {
    size: Bytes,
    /// What it takes of the host, from a pool or not.
    taken: Bytes,
    cell: String,
    /// Its own page size.
    page: Option<Bytes>,
    /// Its own nodes of the host.
    nodes: Option<CpuList>,
}

/// A definition, and its path for messages.
struct File<'a, 'input> {
    path: &'a str,
    document: &'a Document<'input>,
}

pub(super) fn parse(path: &str, text: &str) -> Result<Guest, Unread> {
    let document = Document::parse(text).map_err(|error| {
        let place = format!("{path}:{}", error.pos().row);
        Unread::new(Cause::Garbled, place, error.to_string())
    })?;
    let file = File {
        path,
        document: &document,
    };
    let domain = document.descendants().find(|node| node.has_tag_name("domain"));
    let domain = domain.ok_or_else(|| empty(path, "no <domain> is in it"))?;
    let total_of = child(domain, "memory").ok_or_else(|| empty(path, "the <domain> has no <memory>"))?;
    let total = file.text_bytes(total_of)?;
    let backing = child(domain, "memoryBacking");
    let pages = backing.and_then(|backing| child(backing, "hugepages"));
    let cells = file.cells(domain)?;
    let mut refused = file.refused(domain, &cells);
    refused.extend(file.contradicted(domain));
    refused.extend(file.without_numa(domain));
    refused.extend(file.not_shared(domain, "virtiofs", is_virtiofs));
    refused.extend(file.not_shared(domain, "vhostuser", is_vhost_user_disk));
    let (memory, bound) = file.parts(domain, pages, cells, total)?.into_iter().unzip();
    let source = backing.and_then(|backing| child(backing, "source"));
    let is_memfd = source.and_then(|source| source.attribute("type")) == Some("memfd");
    let arch = domain.descendants().find(|node| node.has_tag_name("type"));
    Ok(Guest {
        place: file.place(pages.or(backing).unwrap_or(total_of)),
        name: name(domain),
        memory,
        bound,
        refused,
        // QEMU shares a memfd unless it is told not to.
        unshared: file
            .private(domain, is_vhost_user)
            .filter(|_| !is_memfd || access(domain) == Some("private")),
        unknown_device: file.unknown_device(domain),
        pinned: file.pinned(domain),
        hpt_page: file.hpt_page(domain)?,
        is_x86: arch.and_then(|kind| kind.attribute("arch")) == Some("x86_64"),
        prealloc: backing
            .and_then(|backing| child(backing, "allocation"))
            .is_some_and(|allocation| allocation.attribute("mode") == Some("immediate")),
        by_file: pages.is_some() && !is_memfd,
        manager: Manager::Libvirt,
        ..Guest::default()
    })
}

fn name(domain: Node<'_, '_>) -> String {
    let name = child(domain, "name").and_then(|name| name.text());
    name.unwrap_or("the guest").to_owned()
}

impl File<'_, '_> {
    fn line(&self, node: Node<'_, '_>) -> usize {
        self.document.text_pos_at(node.range().start).row as usize
    }

    /// For what libvirt raises the limit of locked memory by itself: <locked/>, or a device that it knows of.
    fn pinned(&self, domain: Node<'_, '_>) -> Option<(String, String)> {
        let is_known = |node: &Node<'_, '_>| {
            let is_of = |kinds: &[&str]| node.attribute("type").is_some_and(|kind| kinds.contains(&kind));
            (node.has_tag_name("hostdev") && is_of(&["pci", "mdev"]))
                || (node.has_tag_name("interface") && is_of(&["hostdev", "vdpa"]))
        };
        let locked = child(domain, "memoryBacking").and_then(|backing| child(backing, "locked"));
        let node = locked.or_else(|| domain.descendants().find(is_known))?;
        let kind = node
            .attribute("type")
            .map_or_else(String::new, |kind| format!(" type='{kind}'"));
        Some((self.place(node), format!("<{}{kind}>", node.tag_name().name())))
    }

    /// A device that <qemu:commandline> adds, where nothing else of the definition raises the limit of locked memory.
    fn unknown_device(&self, domain: Node<'_, '_>) -> Option<(String, String)> {
        let has_limit = child(domain, "memtune").is_some_and(|tune| child(tune, "hard_limit").is_some());
        if has_limit || self.pinned(domain).is_some() {
            return None;
        }
        domain.descendants().find_map(|node| {
            let value = node.attribute("value").filter(|_| node.tag_name().name() == "arg")?;
            let is_it = value.starts_with("vfio-pci,") || value.contains("\"vfio-pci\"");
            is_it.then(|| (self.place(node), value.to_owned()))
        })
    }

    fn place(&self, node: Node<'_, '_>) -> String {
        format!("{}:{}", self.path, self.line(node))
    }

    fn bytes(&self, node: Node<'_, '_>, number: &str) -> Result<Bytes, Unread> {
        let unit = node.attribute("unit").filter(|unit| !unit.is_empty()).unwrap_or("KiB");
        let seen = || format!("{} {unit}", number.trim());
        let wanted = "a size with a unit that libvirt knows (KiB, MiB, GiB)";
        sized(number, unit).ok_or_else(|| garbled(self.path, self.line(node), &seen(), wanted))
    }

    /// `<memory unit='GiB'>4</memory>`.
    fn text_bytes(&self, node: Node<'_, '_>) -> Result<Bytes, Unread> {
        self.bytes(node, node.text().unwrap_or_default())
    }

    /// The largest page that KVM promises a guest of pseries.
    fn hpt_page(&self, domain: Node<'_, '_>) -> Result<Option<(String, Bytes)>, Unread> {
        let mut pages = domain.descendants().filter(|node| node.has_tag_name("maxpagesize"));
        let page = pages.next().filter(|_| domain.attribute("type") == Some("kvm"));
        let size = page.map(|page| Ok((self.place(page), self.text_bytes(page)?)));
        size.transpose()
    }

    /// The page sizes of `<hugepages>`, with the cells that each is for.
    fn sizes(&self, pages: Option<Node<'_, '_>>) -> Result<Vec<(Bytes, Option<String>)>, Unread> {
        let pages = pages.iter().flat_map(Node::children);
        let pages = pages.filter(|page| page.has_tag_name("page"));
        let size = |page: Node<'_, '_>| {
            let size = self.bytes(page, page.attribute("size").unwrap_or_default())?;
            Ok((size, page.attribute("nodeset").map(str::to_owned)))
        };
        pages.map(size).collect()
    }

    /// The guest's cells that have memory of their own.
    fn cells(&self, domain: Node<'_, '_>) -> Result<Vec<(String, Bytes)>, Unread> {
        let cells = domain.descendants().filter(|node| node.has_tag_name("cell"));
        let cells = cells.filter_map(|cell| Some((cell, cell.attribute("memory")?)));
        let size = |(cell, memory): (Node<'_, '_>, &str)| {
            let id = cell.attribute("id").unwrap_or("0").to_owned();
            Ok((id, self.bytes(cell, memory)?))
        };
        cells.map(size).collect()
    }

    /// The memory of each cell, or of a guest without cells, and of each device.
    fn parts(
        &self,
        domain: Node<'_, '_>,
        pages: Option<Node<'_, '_>>,
        mut cells: Vec<(String, Bytes)>,
        total: Bytes,
    ) -> Result<Vec<Part>, Unread> {
        let (sizes, devices) = (self.sizes(pages)?, self.devices(domain)?);
        if cells.is_empty() {
            let of_devices: Bytes = devices.iter().map(|device| device.size).sum();
            cells.push(("0".to_owned(), Bytes(total.0.saturating_sub(of_devices.0))));
        }
        let of_cell = |cell: &str| pages.map_or(Backing::Any, |_| page_of(&sizes, cell));
        let cells = cells.iter().map(|(id, size)| ((*size, of_cell(id)), bound(domain, id)));
        let devices = devices.into_iter().filter(|device| device.taken.0 > 0);
        let devices = devices.map(|device| {
            let from = device.page.map_or_else(|| of_cell(&device.cell), backed_by);
            let nodes = device.nodes.or_else(|| bound(domain, &device.cell));
            ((device.taken, from), nodes)
        });
        Ok(cells.chain(devices).collect())
    }

    fn devices(&self, domain: Node<'_, '_>) -> Result<Vec<Device>, Unread> {
        let devices = child(domain, "devices");
        let devices = devices.iter().flat_map(Node::children);
        let devices = devices.filter(|node| node.has_tag_name("memory"));
        devices.map(|node| self.device(node)).collect()
    }

    /// A DIMM takes its size, and virtio-mem what is requested of it. Others have files of their own.
    fn device(&self, node: Node<'_, '_>) -> Result<Device, Unread> {
        let below = |parent: &str, name: &str| child(child(node, parent)?, name);
        let bytes = |parent: &str, name: &str| below(parent, name).map(|node| self.text_bytes(node)).transpose();
        let size = bytes("target", "size")?.unwrap_or_default();
        Ok(Device {
            size,
            taken: match node.attribute("model") {
                Some("dimm") => size,
                Some("virtio-mem") => bytes("target", "requested")?.unwrap_or_default(),
                _ => Bytes(0),
            },
            cell: below("target", "node")
                .and_then(|node| node.text())
                .unwrap_or("0")
                .trim()
                .to_owned(),
            page: bytes("source", "pagesize")?,
            nodes: below("source", "nodemask").and_then(|node| node.text()?.trim().parse().ok()),
        })
    }

    /// A device that libvirt refuses without shared memory.
    fn not_shared(&self, domain: Node<'_, '_>, name: &str, is: fn(&Node<'_, '_>) -> bool) -> Option<Refused> {
        self.private(domain, is).map(|place| Refused {
            place,
            why: format!("'{name}' requires shared memory"),
            wrong: Wrong::Private,
        })
    }

    /// Where such a device is whose other end maps the guest's memory, which is not shared: the whole or each cell has to be, on huge pages or
    /// not (kbase/virtiofs, formatdomain).
    fn private(&self, domain: Node<'_, '_>, is: fn(&Node<'_, '_>) -> bool) -> Option<String> {
        let device = domain.descendants().find(is)?;
        let is_shared = access(domain) == Some("shared");
        let is_cell = |node: &Node<'_, '_>| node.has_tag_name("cell") && node.attribute("memory").is_some();
        let cells = domain.descendants().filter(is_cell);
        let cells = cells.map(|cell| {
            cell.attribute("memAccess")
                .map_or(is_shared, |access| access == "shared")
        });
        let cells: Vec<bool> = cells.collect();
        let is_enough = (is_shared || !cells.is_empty()) && cells.iter().all(|is_shared| *is_shared);
        (!is_enough).then(|| self.place(device))
    }
}

fn is_virtiofs(node: &Node<'_, '_>) -> bool {
    node.has_tag_name("driver")
        && node.attribute("type") == Some("virtiofs")
        && node.parent().is_some_and(|parent| parent.has_tag_name("filesystem"))
}

/// libvirt lets a guest with such an interface start.
fn is_vhost_user(node: &Node<'_, '_>) -> bool {
    node.has_tag_name("interface") && node.attribute("type") == Some("vhostuser")
}

fn is_vhost_user_disk(node: &Node<'_, '_>) -> bool {
    node.has_tag_name("disk") && node.attribute("type") == Some("vhostuser")
}

/// The mode of access to the whole memory.
fn access<'a>(domain: Node<'a, '_>) -> Option<&'a str> {
    let access = child(domain, "memoryBacking").and_then(|backing| child(backing, "access"));
    access.and_then(|access| access.attribute("mode"))
}

/// The host's nodes that a cell must take its memory from: its own, or those of the whole guest.
fn bound(domain: Node<'_, '_>, cell: &str) -> Option<CpuList> {
    let tune = child(domain, "numatune")?;
    let own = tune
        .children()
        .find(|node| node.has_tag_name("memnode") && node.attribute("cellid") == Some(cell));
    let node = own.or_else(|| child(tune, "memory"))?;
    // Without a mode it is strict.
    let is_strict = node.attribute("mode").is_none_or(|mode| mode == "strict");
    is_strict.then(|| node.attribute("nodeset")?.parse().ok()).flatten()
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.has_tag_name(name))
}

/// The cells that a page size is for.
fn nodeset(page: Node<'_, '_>) -> Option<CpuList> {
    page.attribute("nodeset")?.parse().ok()
}

/// In units of any case, binary but for `KB`, `MB` and so on (virScaleInteger).
fn sized(number: &str, unit: &str) -> Option<Bytes> {
    const PREFIXES: [&str; 6] = ["k", "m", "g", "t", "p", "e"];
    let number: u64 = number.trim().parse().ok()?;
    let unit = unit.to_ascii_lowercase();
    if ["b", "byte", "bytes"].contains(&unit.as_str()) {
        return Some(Bytes(number));
    }
    let (prefix, base) = match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
        (Some(prefix), _) => (prefix, 1024_u64),
        (None, Some(prefix)) => (prefix, 1000),
        (None, None) => (unit.as_str(), 1024),
    };
    let power = (1..).zip(PREFIXES).find(|(_, own)| *own == prefix)?.0;
    number.checked_mul(base.pow(power)).map(Bytes)
}

/// Pages of that size. The base page is libvirt's word for no huge pages.
fn backed_by(page: Bytes) -> Backing {
    match page == Bytes::kib(4) {
        true => Backing::Any,
        false => Backing::Hugetlb(Some(page)),
    }
}

/// The page size for a cell: that of its nodeset, else that without one; the host's default where none is named.
fn page_of(sizes: &[(Bytes, Option<String>)], cell: &str) -> Backing {
    let named = |nodes: &String| {
        nodes
            .parse::<host::CpuList>()
            .is_ok_and(|list| cell.parse().is_ok_and(|id| list.contains(id)))
    };
    let own = sizes.iter().find(|(_, nodes)| nodes.as_ref().is_some_and(named));
    let other = || sizes.iter().find(|(_, nodes)| nodes.is_none());
    match own.or_else(other) {
        Some((size, _)) => backed_by(*size),
        None if sizes.is_empty() => Backing::Hugetlb(None),
        None => Backing::Any,
    }
}
