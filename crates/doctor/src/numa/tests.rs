//! Each rule of `numa` where it fires and where it must not.

use host::Tree;

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

fn machine_with_one_node() -> Tree {
    pool(machine(), "2048kB", 50, 0, 0)
}
