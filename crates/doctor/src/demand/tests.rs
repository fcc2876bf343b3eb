//! What the fixes of files ask for, where they start several programs.

use model::findings::Finding;
use programs::Evidence;
use programs::config::Given;

use crate::judge;

/// The findings of a rule.
fn found(id: &str, files: &[(&str, &str)]) -> Vec<Finding> {
    let mut given = Given::default();
    for (path, text) in files {
        given
            .add(path, text.as_bytes(), None)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    judge(&Evidence::of_files(given)).of(id).cloned().collect()
}

const POOL: (&str, &str) = ("sysctl.conf", "vm.nr_hugepages = 512\n");

#[test]
fn a_fix_has_the_pages_of_all_demands() {
    let conf = ("postgresql.conf", "huge_pages = on\nshared_buffers = 8GB\n");
    let unit = |mib: &str| format!("[Service]\nExecStart=/usr/bin/testpmd -l 0-3 --socket-mem {mib} -- -i\n");
    let (large, small) = (unit("1024,1024"), unit("512"));
    for (id, unit, asked) in [
        ("F02", &large, 5224),
        ("A10", &large, 5224),
        // What is served beside the server counts, too.
        ("F02", &small, 4456),
    ] {
        let short = found(id, &[conf, ("fwd.service", unit), POOL]);
        let fix = format!("vm.nr_hugepages = {asked} in place of 512");
        assert!(short[0].fix[0].contains(&fix), "{id}: {short:?}");
        let is_for_all = short[0].fix[0].contains("for all programs of these files together");
        assert_eq!(is_for_all, asked == 5224, "{id}: {short:?}");
    }
    let alone = found("F02", &[conf, POOL]);
    assert!(
        alone[0].fix[0].contains("vm.nr_hugepages = 4200 in place of 512"),
        "{alone:?}"
    );
}

/// A guest of two cells on nodes of their own.
const CELLS: &str = "<domain type='kvm'><name>db</name><memory unit='GiB'>64</memory><vcpu>16</vcpu>\
    <memoryBacking><hugepages><page size='1' unit='GiB'/></hugepages></memoryBacking>\
    <numatune><memory mode='strict' nodeset='0-1'/><memnode cellid='0' mode='strict' nodeset='0'/>\
    <memnode cellid='1' mode='strict' nodeset='1'/></numatune>\
    <cpu><numa><cell id='0' cpus='0-7' memory='32' unit='GiB'/><cell id='1' cpus='8-15' memory='32' unit='GiB'/></numa></cpu>\
    <os><type arch='x86_64' machine='q35'>hvm</type></os></domain>\n";

#[test]
fn the_cells_of_a_guest_are_one_demand_unless_the_pool_is_set_by_node() {
    let short = |more: &[(&str, &str)], count: &str| {
        let line = format!("default_hugepagesz=1G hugepagesz=1G hugepages={count}");
        let own = [("a.xml", CELLS), ("cmdline", &*line)];
        found("G04", &[&own[..], more].concat())
    };
    let other = CELLS.replace("db", "web");
    for (more, asked) in [(&[][..], 64), (&[("b.xml", &*other)][..], 128)] {
        let short = short(more, "16");
        assert_eq!(short.len(), 1 + more.len(), "{short:?}");
        for finding in short {
            let says = "needs at least 64 pages of 1G, and the pool has 16";
            let fix = format!(": {asked} in place of 16");
            assert!(
                finding.consequence.contains(says) && finding.fix[0].contains(&fix),
                "{finding:?}"
            );
        }
    }
    assert_eq!((short(&[], "64").len(), short(&[], "0:32,1:32").len()), (0, 0));
    let on_one = short(&[], "0:64,1:0");
    assert_eq!(on_one.len(), 1, "{on_one:?}");
    let says = "needs at least 32 pages of 1G on node 1, and the pool has 0 there";
    let fix = "add 32 pages of 1G on node 1 in cmdline";
    assert!(
        on_one[0].consequence.contains(says) && on_one[0].fix[0].contains(fix),
        "{on_one:?}"
    );
}
