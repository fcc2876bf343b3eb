//! Every machine in `fixtures/machines` loads, is documented, adds up, and breaks politely.

#[path = "fixtures/machines.rs"]
mod machines;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use host::{CpuList, Node, Snapshot, Source, Tree};
use model::{Bytes, Cause, Reading};
use proptest::prelude::*;
use proptest::sample::Index;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines")
}

fn archives() -> Vec<PathBuf> {
    let entries = fs::read_dir(directory()).expect("fixtures/machines");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut archives: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "tree"))
        .collect();
    archives.sort();
    archives
}

fn tree(path: &Path) -> Tree {
    let name = path.display().to_string();
    Tree::parse(&name, &fs::read(path).expect("an archive")).unwrap_or_else(|error| panic!("{error}"))
}

fn machine(name: &str) -> Snapshot {
    let path = directory().join(format!("{name}.tree"));
    Snapshot::take(&Source::open(&path).unwrap_or_else(|error| panic!("{error}")))
}

fn cause<T>(reading: &Reading<T>) -> Option<Cause> {
    reading.unread().map(|why| why.unread)
}

fn in_a_line(machine: &Snapshot) -> String {
    let Snapshot {
        kernel,
        cpu,
        topology,
        kvm,
        cgroup,
        ..
    } = machine;
    let short = |cause: Option<Cause>, value: String| cause.map_or(value, |cause| format!("({cause})"));
    let kinds: Vec<String> = machine.page_kinds().iter().map(ToString::to_string).collect();
    let mut line = String::new();
    for (value, cause) in [
        (cpu.model_name.to_string(), cause(&cpu.model_name)),
        (kernel.release.to_string(), cause(&kernel.release)),
        (cpu.hypervisor.to_string(), cause(&cpu.hypervisor)),
        (
            topology.online.as_ref().map(|cpus| format!("cpus {cpus}")).to_string(),
            cause(&topology.online),
        ),
        (
            topology
                .nodes
                .as_ref()
                .map(|nodes| format!("{} nodes", nodes.len()))
                .to_string(),
            cause(&topology.nodes),
        ),
        (kvm.mmu.to_string(), cause(&kvm.mmu)),
        (
            cgroup
                .version
                .as_ref()
                .map(|version| format!("{version:?}"))
                .to_string(),
            cause(&cgroup.version),
        ),
        (
            cpu.tlb
                .as_ref()
                .map(|tlb| format!("{} TLBs", tlb.arrays.len()))
                .to_string(),
            cause(&cpu.tlb),
        ),
    ] {
        write!(line, "{} | ", short(cause, value)).expect("a String");
    }
    line + &kinds.join(" ")
}

#[test]
fn the_machines_differ_as_they_should() {
    let lines: Vec<String> = archives()
        .iter()
        .map(|path| {
            let name = path.file_stem().expect("a name").display().to_string();
            format!("{name}: {}", in_a_line(&machine(&name)))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    arm64-64k: Neoverse-N1 | 6.12.0 | Amazon EC2 | cpus 0-7 | 1 nodes | (absent) | V2 | (absent) | base mthp-128K mthp-256K mthp-512K mthp-1M mthp-2M mthp-4M mthp-8M mthp-16M mthp-32M mthp-64M mthp-128M mthp-256M thp hugetlb-2M hugetlb-512M hugetlb-16G
    cgroup-v2: Intel Xeon Processor (Icelake) | 6.12.10 | KVM | cpus 0-7 | 1 nodes | (absent) | V2 | (masked) | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    denied: AMD EPYC 7R32 | 6.11.0 | KVM | cpus 0-3 | 1 nodes | (denied) | V2 | (masked) | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    desktop: Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz | 6.8.12 | none | cpus 0-7 | 1 nodes | (absent) | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    eight-node-epyc: AMD EPYC 7543 32-Core Processor | 6.1.0 | none | cpus 0-31 | 8 nodes | npt | V2 | 10 TLBs | base thp hugetlb-2M hugetlb-1G
    epyc-guest: AMD EPYC | 6.18.44 | KVM | cpus 0-1 | 1 nodes | shadow-pvm | Hybrid | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    jvm-madvise: Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz | 6.8.12 | none | cpus 0-7 | 1 nodes | (absent) | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    kernel-5.10: Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz | 5.10.0 | VMware | cpus 0-3 | 1 nodes | (absent) | V1 | 7 TLBs | base thp hugetlb-2M
    kubernetes-node: Intel Xeon Processor (Icelake) | 6.12.10 | KVM | cpus 0-7 | 1 nodes | (absent) | V2 | (masked) | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    no-hugetlb: Intel Xeon Processor (Icelake) | 6.6.30 | KVM | cpus 0-3 | 1 nodes | (absent) | V2 | (masked) | base thp
    no-thp: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz | 6.6.0-rt | none | cpus 0-3 | 1 nodes | (absent) | V2 | 7 TLBs | base hugetlb-2M hugetlb-1G
    pinned-well: Intel(R) Xeon(R) Platinum 8480+ | 6.8.0 | none | cpus 0-15 | 2 nodes | ept | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    pinned-wrongly: Intel(R) Xeon(R) Platinum 8480+ | 6.8.0 | none | cpus 0-15 | 2 nodes | ept | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    pool-1g: Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz | 6.8.12 | none | cpus 0-7 | 1 nodes | ept | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    postgres-good: Intel(R) Xeon(R) Platinum 8480+ | 6.8.0 | none | cpus 0-15 | 2 nodes | ept | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    rhel5-jboss: Intel(R) Xeon(R) CPU            5160  @ 3.00GHz | 2.6.18-53.el5 | none | cpus 0-3 | 1 nodes | (absent) | (absent) | 6 TLBs | base
    two-node-smt: Intel(R) Xeon(R) Platinum 8480+ | 6.8.0 | none | cpus 0-15 | 2 nodes | ept | V2 | 8 TLBs | base mthp-16K mthp-32K mthp-64K mthp-128K mthp-256K mthp-512K mthp-1M thp hugetlb-2M hugetlb-1G
    ");
}

#[test]
fn each_is_documented_small_and_says_whether_it_is_real() {
    let archives = archives();
    assert!(archives.len() >= 10, "{archives:?}");
    for path in archives {
        let words = fs::read_to_string(path.with_extension("md")).expect("a .md file beside the archive");
        let says = words.contains("**Real**") != words.contains("**Made.**");
        assert!(says, "{path:?} says neither **Real** nor **Made.**");
        assert!(fs::metadata(&path).expect("a file").len() < 60_000, "{path:?} is large");
    }
}

#[test]
fn each_is_written_as_the_writer_would() {
    for path in archives() {
        let text = fs::read_to_string(&path).expect("an archive");
        let without_comments: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            tree(&path).to_text().lines().collect::<Vec<_>>(),
            without_comments,
            "{path:?}"
        );
    }
}

#[test]
fn nothing_in_them_is_garbled() {
    for path in archives() {
        let snapshot = Snapshot::take(&Source::open(&path).expect("a source"));
        let json = serde_json::to_string_pretty(&snapshot).expect("JSON");
        assert!(
            !json.contains("\"garbled\"") && !json.contains("\"failed\""),
            "{path:?}: {json}"
        );
        let back: Snapshot = serde_json::from_str(&json).expect("what was written");
        assert!(back == snapshot, "{path:?}: another snapshot comes back from its JSON");
    }
}

#[test]
fn pools_add_up_over_nodes_and_fit_into_memory() {
    for path in archives() {
        let machine = Snapshot::take(&Source::open(&path).expect("a source"));
        let mut bytes = 0;
        for pool in machine
            .pools
            .known()
            .into_iter()
            .flatten()
            .filter(|pool| pool.nr.known().is_some())
        {
            let nodes = pool.nodes.known().expect("nodes");
            let sum = |of: fn(&host::snapshot::NodePool) -> &Reading<u64>| -> u64 {
                nodes.iter().filter_map(|node| of(node).known()).sum()
            };
            assert_eq!(pool.nr, Reading::Known(sum(|node| &node.nr)), "{path:?}");
            assert_eq!(pool.free, Reading::Known(sum(|node| &node.free)), "{path:?}");
            assert!(
                pool.free.known() <= pool.nr.known() && pool.reserved.known() <= pool.free.known(),
                "{path:?}"
            );
            bytes += pool.nr.known().map_or(0, |nr| nr * pool.size.0);
        }
        let hugetlb = machine.memory.get("Hugetlb").known().map_or(0, |bytes| bytes.0);
        assert_eq!(hugetlb, bytes, "{path:?}");
        let total = machine.memory.get("MemTotal").known().expect("MemTotal").0;
        let free = machine.memory.get("MemFree").known().expect("MemFree").0;
        assert!(free + bytes <= total, "{path:?}");
    }
}

#[test]
fn nodes_share_out_the_cpus_and_the_memory() {
    for path in archives().into_iter().filter(|path| !path.ends_with("epyc-guest.tree")) {
        let machine = Snapshot::take(&Source::open(&path).expect("a source"));
        let nodes = machine.topology.nodes.known().expect("nodes");
        let cpus: CpuList = nodes
            .iter()
            .flat_map(|node| node.cpus.known().expect("CPUs").iter())
            .collect();
        assert_eq!(machine.topology.online, Reading::Known(cpus), "{path:?}");
        assert!(
            nodes
                .iter()
                .all(|node| node.distances.known().is_some_and(|all| all.len() == nodes.len())),
            "{path:?}"
        );
        for name in ["MemTotal", "MemFree"] {
            let parts: Vec<Bytes> = nodes
                .iter()
                .filter_map(|node| node.meminfo.known()?.get(name).known().copied())
                .collect();
            if parts.len() == nodes.len() {
                let sum = Bytes(parts.iter().map(|part| part.0).sum());
                assert_eq!(machine.memory.get(name), Reading::Known(sum), "{path:?} {name}");
            }
        }
        if let (Reading::Known(base), Reading::Known(pages)) = (machine.base_page(), machine.memory.free_at_least(0)) {
            let free = Bytes(pages * base.0);
            assert_eq!(machine.memory.get("MemFree"), Reading::Known(free), "{path:?}");
        }
    }
}

/// Reads everything that a snapshot can be asked.
fn ask_everything(tree: Tree) -> Snapshot {
    let snapshot = Snapshot::take(&Source::from_tree("broken", tree));
    for pool in snapshot.pools.known().into_iter().flatten() {
        let _ = (pool.used(), pool.available());
    }
    let topology = &snapshot.topology;
    let _ = (
        topology.cores(),
        topology.llcs(),
        topology.packages(),
        topology.node_of(0),
    );
    let _ = (
        snapshot.machine(),
        snapshot.page_kinds(),
        snapshot.kernel.version(),
        snapshot.memory.free_at_least(9),
    );
    let json = serde_json::to_string(&snapshot).expect("JSON");
    assert!(serde_json::from_str::<Snapshot>(&json).is_ok(), "{json}");
    snapshot
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_cut_archive_is_garbled_at_a_line(which: Index, at: Index) {
        let archives = archives();
        let text = fs::read(which.get(&archives)).expect("an archive");
        // Without its last newline an archive is still whole.
        let cut = &text[..at.index(text.len() - 1)];
        let error = Tree::parse("cut.tree", cut).expect_err("cut short").to_string();
        prop_assert!(error.starts_with("garbled: cut.tree:"), "{}", error);
    }

    #[test]
    fn changed_bytes_are_garbled_or_read(which: Index, changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..8)) {
        let archives = archives();
        let mut text = fs::read(which.get(&archives)).expect("an archive");
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        match Tree::parse("changed.tree", &text) {
            Ok(tree) => { ask_everything(tree); }
            Err(error) => prop_assert!(error.to_string().starts_with("garbled: changed.tree:")),
        }
    }

    #[test]
    fn a_changed_file_upsets_no_parser(
        which: Index,
        file: Index,
        at: Index,
        replacement in prop_oneof![prop::collection::vec(any::<u8>(), 0..30), "[0-9\\-, :kB\n]{0,30}".prop_map(String::into_bytes)],
    ) {
        let archives = archives();
        let mut tree = tree(which.get::<PathBuf>(&archives));
        let files: Vec<(String, Vec<u8>)> = tree
            .iter()
            .filter_map(|(path, node)| match node {
                Node::File(bytes) => Some((path.to_owned(), bytes.clone())),
                _ => None,
            })
            .collect();
        let (path, mut bytes) = file.get(&files).clone();
        let from = at.index(bytes.len() + 1);
        let to = (from + replacement.len()).min(bytes.len());
        bytes.splice(from..to, replacement);
        tree.insert(&path, Node::File(bytes));
        ask_everything(tree);
    }
}
