//! Each rule of `numa` where it fires and where it must not.

use host::{Source, Tree};
use programs::Evidence;
use programs::config::Given;

use crate::judge;
use crate::machines::*;

fn two_nodes(first: u64, second: u64) -> Tree {
    let tree = pool(machine(), "2048kB", first + second, first + second, 0);
    node_pool(node_pool(tree, 0, "2048kB", first, first), 1, "2048kB", second, second)
}

#[test]
fn a09_nodes_that_differ() {
    let finding = found("A09", two_nodes(100, 300));
    assert_eq!(finding.evidence[0].value, "100");
    clear("A09", two_nodes(200, 201));
    clear(
        "A09",
        two_nodes(100, 300).line("/proc/cmdline", "hugepages=0:100,1:300"),
    );
}

/// A share that is no whole number of pages is rounded up: otherwise nothing would be missing.
#[test]
fn a09_a_share_of_a_page_and_a_half() {
    let counts = [2, 2, 2, 4];
    let tree = pool(machine(), "2048kB", 10, 10, 0).line("/sys/devices/system/node/online", "0-3");
    let with = |tree: Tree, (node, pages): (u32, u64)| {
        let tree = node_pool(tree, node, "2048kB", pages, pages);
        tree.line(&format!("/sys/devices/system/node/node{node}/cpulist"), node)
    };
    let finding = found("A09", (0..).zip(counts).fold(tree, with));
    assert!(finding.consequence.starts_with("node 0 has 2M less"), "{finding:?}");
    assert!(finding.fix[0].contains("echo 3 > "), "{finding:?}");
}

/// Memory without CPUs gets its share like any other node, which is no lack of others.
#[test]
fn a09_pages_on_a_node_without_cpus() {
    let nodes = |pages: u64| {
        let tree = node_pool(two_nodes(200, 200), 2, "2048kB", pages, pages);
        let cpus = [(0, "0-3"), (1, "4-7"), (2, "")];
        let with = |tree: Tree, (node, list): (u32, &str)| {
            tree.line(&format!("/sys/devices/system/node/node{node}/cpulist"), list)
        };
        cpus.into_iter()
            .fold(tree.line("/sys/devices/system/node/online", "0-2"), with)
    };
    let finding = found("A09", nodes(200));
    assert!(
        finding
            .consequence
            .contains("are on node 2, which has memory and no CPUs"),
        "{finding:?}"
    );
    assert!(
        finding.fix[0].starts_with("echo 0 > /sys/devices/system/node/node2/"),
        "{finding:?}"
    );
    clear("A09", nodes(0));
    // Written by node.
    clear("A09", nodes(300));
}

/// Guests of files that are bound to nodes say where pages belong: an even share would take them away.
#[test]
fn a09_pages_for_guests_of_files_that_are_bound_to_nodes() {
    let tree = node_pool(pool(machine(), "1048576kB", 8, 8, 0), 1, "1048576kB", 0, 0);
    let tree = tree.line("/sys/devices/system/node/online", "0-1");
    let fixes = |memory: u64, bound: &str| {
        let domain = format!(
            "<domain type='kvm'><name>n</name><memory unit='GiB'>{memory}</memory><memoryBacking><hugepages><page size='1' unit='G'/></hugepages>\
             <source type='memfd'/></memoryBacking>{bound}<vcpu>4</vcpu></domain>\n"
        );
        let mut files = Given::default();
        files.add("n.xml", domain.as_bytes(), None).expect("a guest");
        let evidence = Evidence::gather(&Source::from_tree("test", tree.clone()));
        let diagnosis = judge(&evidence.with_files(files));
        let fixes = diagnosis.of("A09").map(|finding| finding.fix.join("\n"));
        fixes.collect::<Vec<_>>()
    };
    let strict = |node: u32| format!("<numatune><memory mode='strict' nodeset='{node}'/></numatune>");
    assert_eq!(fixes(8, &strict(0)), [""; 0]);
    assert_eq!(fixes(8, &strict(1)), [""; 0], "its own finding asks for pages there");
    assert!(fixes(8, "")[0].contains("hugepages=0:4,1:4"));
    assert_eq!(fixes(9, ""), [""], "a larger pool is asked for");
}

/// Pages of 1G: their boot line names the size, and what is freed at run time is hardly made again.
#[test]
fn a09_pages_of_1g_are_shared_out_at_boot() {
    let nodes = |counts: [u64; 2], cpus: [&str; 2]| {
        let all = counts[0] + counts[1];
        let tree = pool(machine(), "1048576kB", all, all, 0).line("/sys/devices/system/node/online", "0-1");
        (0..2).zip(counts).zip(cpus).fold(tree, |tree, ((node, pages), list)| {
            let tree = node_pool(tree, node, "1048576kB", pages, pages);
            tree.line(&format!("/sys/devices/system/node/node{node}/cpulist"), list)
        })
    };
    let fix = |tree: Tree| found("A09", tree).fix.join("\n");
    let far = fix(nodes([2, 2], ["0-3", ""]));
    assert!(
        far.contains("hugepagesz=1G hugepages=0:4") && !far.contains("echo "),
        "{far}"
    );
    let uneven = fix(nodes([1, 5], ["0-3", "4-7"]));
    assert!(uneven.contains("hugepagesz=1G hugepages=0:3,1:3"), "{uneven}");
    assert!(!uneven.contains("echo "), "{uneven}");
    // From memory that is set aside they are made at any time, and never at boot.
    let cma = fix(nodes([2, 2], ["0-3", ""]).line("/proc/cmdline", "hugetlb_cma=8G"));
    assert!(cma.contains("echo 4 > ") && !cma.contains("hugepagesz="), "{cma}");
    // Before Linux 5.16 the boot line names no nodes.
    let old = fix(nodes([2, 2], ["0-3", ""]).line("/proc/sys/kernel/osrelease", "5.10.0"));
    assert!(
        old.starts_with("have a unit do it at boot") && old.contains("echo 4 > "),
        "{old}"
    );
}

#[test]
fn a09_a_rich_node_keeps_its_pages() {
    let finding = found("A09", two_nodes(100, 300));
    let node = |node: u32| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    assert_eq!(finding.fix[0], format!("echo 200 > {}", node(0)));
    let kept = format!(
        "to keep it: in /etc/tmpfiles.d/hugepages.conf: w {} - - - - 200",
        node(0)
    );
    assert_eq!(finding.fix[1], kept);
    assert!(
        !finding.fix.join("\n").contains(&format!("> {}", node(1))),
        "{finding:?}"
    );
}

/// Pages of one node on purpose: a file names the node, or what has most of them stays there.
#[test]
fn a09_one_node_on_purpose() {
    let written = |node: u32| {
        let file = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
        two_nodes(0, 300).line("/etc/tmpfiles.d/pool.conf", format!("w {file} - - - - 300"))
    };
    clear("A09", written(1));
    let whole = "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 300";
    found("A09", two_nodes(0, 300).line("/etc/tmpfiles.d/pool.conf", whole));
    let used = |free: u64| {
        let tree = pool(machine(), "2048kB", 300, free, 0);
        node_pool(node_pool(tree, 0, "2048kB", 0, 0), 1, "2048kB", 300, free)
    };
    let holder = |nodes: &str, free: u64| {
        process(9, "worker")
            .nodes(nodes)
            .area(hugetlb(400, 2048))
            .on(used(free))
    };
    clear("A09", holder("1", 100));
    found("A09", holder("0-1", 100));
    found("A09", holder("0", 100));
    found("A09", holder("1", 250));
}

#[test]
fn a10_a_process_bound_to_a_node_without_pages() {
    let machine = || node_pool(node_pool(two_nodes(50, 50), 0, "2048kB", 50, 0), 1, "2048kB", 50, 50);
    let bound = |nodes| process(9, "worker").nodes(nodes).area(hugetlb(100, 2048).resident(10));
    found("A10", bound("0").on(machine()));
    clear("A10", bound("0-1").on(machine()));
    clear(
        "A10",
        process(9, "worker").nodes("0").area(hugetlb(100, 2048)).on(machine()),
    );
    clear("A10", bound("0").on(self::machine_with_one_node()));
}

/// What DPDK asks of each node.
#[test]
fn a10_socket_mem_of_a_node_without_pages() {
    let dpdk = |option: &str| process(9, "dpdk-testpmd").arg("-l").arg("0-3").arg(option);
    let machine = || two_nodes(1024, 0);
    let finding = found("A10", dpdk("--socket-mem=1024,1024").on(machine()));
    assert!(finding.consequence.contains("asks for 1G on node 1"), "{finding:?}");
    assert!(
        finding.fix[0].contains("echo 512 > /sys/devices/system/node/node1/"),
        "{finding:?}"
    );
    found("A10", dpdk("--socket-mem").arg("0,1024").on(machine()));
    clear("A10", dpdk("--socket-mem=1024,0").on(machine()));
    clear(
        "A10",
        dpdk("--socket-mem=0,1024").area(hugetlb(100, 2048)).on(machine()),
    );
    // omec-project/ngic-rtc#94: a guest of one node.
    let one = || pool(machine_with_one_node(), "2048kB", 9000, 9000, 0);
    let finding = found("A10", dpdk("--socket-mem=4096,4096").on(one()));
    assert!(finding.consequence.contains("asks for 4G on node 1"), "{finding:?}");
    assert!(finding.fix[0].ends_with("--socket-mem 4096"), "{finding:?}");
    let second = found("A10", dpdk("--socket-mem=0,1024").on(one()));
    assert!(second.fix[0].ends_with("--socket-mem 1024"), "{second:?}");
    clear("A10", dpdk("--socket-mem=4096,0").on(one()));
    clear("A10", dpdk("--socket-mem=4096").on(one()));
}

fn machine_with_one_node() -> Tree {
    pool(machine(), "2048kB", 50, 0, 0)
}
