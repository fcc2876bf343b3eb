//! OpenShift's PerformanceProfile: the pages that it asks for, and what its operator refuses of them.

use host::snapshot::hugetlb::path_in_pool;
use model::{Bytes, Unread};

use super::garbled::{Refusal, garbled};
use super::node::{Setup, Taker, boot_line, line};
use super::yaml::Node;
use crate::config::{BootLine, Setting};

/// Sizes as the operator takes them: with base pages of 64K, which arm64 alone has, and with those of 4K there and on x86-64.
const OF_64K: [&str; 3] = ["2M", "512M", "16G"];
const OF_4K: [&str; 4] = ["64k", "2M", "32M", "1G"];

const OPERATOR: Taker = Taker {
    command: "oc apply -f",
    link: "https://docs.redhat.com/en/documentation/openshift_container_platform/4.22/html/node_apis/performanceprofile-performance-openshift-io-v2",
};

/// Pages of a PerformanceProfile.
struct Page<'n> {
    entry: &'n Node,
    size: &'n str,
    /// Where the count is written.
    counted: &'n Node,
    count: u64,
    /// `node:`.
    of_node: Option<&'n str>,
}

impl Page<'_> {
    /// The operator asks for pages without a node on the boot line.
    fn at_boot(&self) -> Option<BootLine> {
        let words = format!("hugepagesz={} hugepages={}", self.size, self.count);
        self.of_node.is_none().then(|| boot_line(self.counted.place(), &words))
    }

    /// For those of a node it makes a unit that writes the node's file (`hugepages-allocation-SIZE-NODE.service`).
    fn by_unit(&self) -> Option<Setting> {
        let (node, size) = (self.of_node?.parse().ok()?, self.size.parse::<Bytes>().ok()?);
        let file = path_in_pool(size, Some(node), "nr_hugepages");
        Some(Setting::new(self.counted.place(), file, self.count.to_string()))
    }
}

/// Its pages on the boot line and by units, and other words of the boot line.
pub(super) fn profile(document: &Node) -> Result<Setup, Unread> {
    let spec = |keys: &[&str]| document.get("spec").and_then(|spec| spec.at(keys));
    let base = spec(&["kernelPageSize"]).and_then(Node::text).unwrap_or("4k");
    let default = spec(&["hugepages", "defaultHugepagesSize"]);
    let entries = spec(&["hugepages", "pages"]).map_or(&[][..], Node::items);
    let pages: Vec<Page<'_>> = entries.iter().map(page_of).collect::<Result<_, _>>()?;
    let first = default.and_then(|node| {
        let words = format!("default_hugepagesz={}", node.text()?);
        Some(boot_line(node.place(), &words))
    });
    let mut boot: Vec<BootLine> = first
        .into_iter()
        .chain(pages.iter().filter_map(Page::at_boot))
        .collect();
    boot.extend(line(spec(&["additionalKernelArgs"])));
    Ok(Setup {
        boot,
        sysfs: pages.iter().filter_map(Page::by_unit).collect(),
        refused: refused_pages(default, &pages, base),
        ..Setup::default()
    })
}

/// What the operator refuses of pages (validateHugePages()).
fn refused_pages(default: Option<&Node>, pages: &[Page<'_>], base: &str) -> Vec<Refusal> {
    let mut refused = Vec::new();
    if let (None, Some(first)) = (default, pages.first()) {
        let why = "the operator refuses the profile: pages need a defaultHugepagesSize beside them";
        let fix = format!("defaultHugepagesSize: {} beside pages", first.size);
        refused.push(OPERATOR.refuses(first.entry, why, &fix));
    }
    for (at, page) in pages.iter().enumerate() {
        let (entry, size, of_node) = (page.entry, page.size, page.of_node);
        refused.extend(no_such_size(entry, size, base));
        if pages[..at]
            .iter()
            .any(|known| (known.size, known.of_node) == (size, of_node))
        {
            let which = of_node.map_or_else(|| "without a node".to_owned(), |node| format!("of node {node}"));
            let why = format!("the operator refuses the profile: pages of {size} {which} are there twice");
            refused.push(OPERATOR.refuses(entry, why, "write them as one entry"));
        }
    }
    let is_among = |node: &&Node| pages.iter().any(|page| node.text() == Some(page.size));
    let alone = default.filter(|node| !is_among(node));
    refused.extend(alone.and_then(|node| no_such_size(node, node.text()?, base)));
    refused
}

/// An entry of `pages`.
fn page_of<'n>(entry: &'n Node) -> Result<Page<'n>, Unread> {
    let count = entry.text_of("count").unwrap_or_default();
    let counted = entry.get("count").unwrap_or(entry);
    let wanted = || garbled(&entry.path, entry.line, count, "a count of pages");
    Ok(Page {
        entry,
        size: entry.text_of("size").unwrap_or_default(),
        counted,
        count: count.parse().map_err(|_| wanted())?,
        of_node: entry.text_of("node"),
    })
}

/// Base pages of 64K bring pages of 512M, and have none of 32M and 1G.
fn no_such_size(page: &Node, size: &str, base: &str) -> Option<Refusal> {
    let fits = match base {
        "64k" => OF_64K.contains(&size),
        _ => OF_4K.contains(&size),
    };
    let (why, fix) = match base {
        _ if fits => return None,
        "64k" => (
            format!("with base pages of 64K (kernelPageSize: 64k) there are pages of 2M and 512M, and none of {size}"),
            "name one of these sizes, or kernelPageSize: 4k",
        ),
        _ if size == "512M" => (
            "pages of 512M need base pages of 64K (kernelPageSize: 64k, arm64 alone), and this profile has those of 4K"
                .to_owned(),
            "add kernelPageSize: 64k on arm64, else name another size (2M, 1G)",
        ),
        _ => (
            format!("`{size}` is no size that the operator takes"),
            "name one that it takes (2M, 1G; on arm64 also 64k, 32M)",
        ),
    };
    let why = format!("{why}: the operator refuses the profile, or no such page is made");
    Some(OPERATOR.refuses(page, why, fix))
}
