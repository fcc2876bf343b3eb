//! Whole machines: archives, and every file of one with any content.

use std::sync::LazyLock;

use ::programs::Evidence;
use host::processes::{Ground, Limits, Missing, ThpByStart};
use host::{Node, Snapshot, Source, Tree};

/// Machines with processes, virtual machines, containers and configuration files in them.
const MACHINES: [&str; 5] = [
    include_str!("../../../../../fixtures/machines/jvm-madvise.tree"),
    include_str!("../../../../../fixtures/machines/kubernetes-node.tree"),
    include_str!("../../../../../fixtures/machines/cgroup-v2.tree"),
    include_str!("../../../../../fixtures/machines/rhel5-jboss.tree"),
    include_str!("../../../../../fixtures/machines/pool-1g.tree"),
];

/// Files that are not in one of them, and have a parser of their own.
const MORE: [&str; 14] = [
    "/hugewise/cpuid",
    "/hugewise/page_size",
    "/proc/sysvipc/shm",
    "/proc/pressure/memory",
    "/proc/buddyinfo",
    "/sys/devices/system/node/node0/distance",
    "/sys/devices/system/node/node0/meminfo",
    "/etc/sysctl.d/60.conf",
    "/etc/security/limits.d/60.conf",
    "/etc/tmpfiles.d/thp.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/group",
    "/etc/default/grub",
];

static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| {
    let tree = |text: &&str| Tree::parse("fixture", text.as_bytes()).expect("a machine");
    MACHINES.iter().map(tree).collect()
});

/// Any bytes are an archive that survives its own text, or an error that names a line.
pub(crate) fn tree(bytes: &[u8]) {
    match Tree::parse("fuzz.tree", bytes) {
        Ok(tree) => {
            let again = Tree::parse("fuzz.tree", tree.to_text().as_bytes());
            assert_eq!(again.as_ref(), Ok(&tree));
        }
        Err(error) => assert!(error.line > 0),
    }
}

pub(crate) fn trees() -> Vec<Vec<u8>> {
    MACHINES.iter().map(|text| text.as_bytes()[..2000].to_vec()).collect()
}

/// The snapshot of an archive says what it could read, and its JSON comes back.
pub(crate) fn snapshot(bytes: &[u8]) {
    if let Ok(tree) = Tree::parse("fuzz.tree", bytes) {
        ask(&Source::from_tree("fuzz", tree));
    }
}

/// The part of each machine that a snapshot reads, without what takes many lines.
pub(crate) fn snapshots() -> Vec<Vec<u8>> {
    let small = |tree: &Tree| {
        let mut part = Tree::new();
        for (path, node) in tree.iter() {
            let is_short = !matches!(node, Node::File(bytes) if bytes.len() > 300);
            if is_short && (path.starts_with("/sys/kernel/mm") || path.starts_with("/proc/sys")) {
                part.insert(path, node.clone());
            }
        }
        part.to_text().into_bytes()
    };
    TREES.iter().map(small).collect()
}

/// One file of a machine with any content: everything that is asked of a machine has an answer, and every rule a verdict.
pub(crate) fn machine(bytes: &[u8]) {
    let [which, low, high, content @ ..] = bytes else {
        return;
    };
    let tree = &TREES[usize::from(*which) % TREES.len()];
    let nth = usize::from(*low) | usize::from(*high) << 8;
    let Some(path) = paths(tree).nth(nth % (paths(tree).count())) else {
        return;
    };
    let source = Source::from_tree("fuzz", tree.clone().file(path, content));
    ask(&source);
    let evidence = Evidence::gather(&source);
    let _ = doctor::judge(&evidence);
    let _ = ::programs::vms::list(&source);
    let processes = host::processes::list(&source);
    for process in processes.known().into_iter().flatten().take(4) {
        let mounts = host::snapshot::MountTree::of_process(&source, process.pid);
        let ground = Ground::new(&evidence.snapshot, &mounts);
        let (mut thp, mut missing) = (ThpByStart::default(), Missing::new(process, &ground));
        let _ = host::processes::areas::each_mapping(&source, process.pid, Limits::default(), |mapping| {
            let mapping = mapping.to_pages();
            thp.add(&mapping);
            missing.add(&mapping);
            Ok(())
        });
        let _ = host::processes::nodes(&source, process.pid, &thp, Limits::default());
        let _ = missing.sum();
    }
}

pub(crate) fn files() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (which, tree) in TREES.iter().enumerate() {
        for (nth, path) in paths(tree).enumerate() {
            let file = tree.iter().find_map(|(at, node)| match node {
                Node::File(bytes) if at == path => Some(bytes.as_slice()),
                _ => None,
            });
            let content = file.unwrap_or_default();
            // Settings of one short line are many and alike.
            if (24..3000).contains(&content.len()) {
                seeds.push([&[which as u8, nth as u8, (nth >> 8) as u8], content].concat());
            }
        }
    }
    seeds
}

/// What the CPUs of these machines say.
pub(crate) fn leaves() -> Vec<Vec<u8>> {
    let is_leaves = |(path, node): (&str, &Node)| match node {
        Node::File(bytes) if path == host::source::CPUID => Some(bytes.clone()),
        _ => None,
    };
    TREES
        .iter()
        .flat_map(|tree| tree.iter().filter_map(is_leaves))
        .collect()
}

/// Files of a machine, and those that it lacks.
fn paths(tree: &Tree) -> impl Iterator<Item = &str> {
    let files = tree.iter().filter(|(_, node)| matches!(node, Node::File(_)));
    files.map(|(path, _)| path).chain(MORE)
}

fn ask(source: &Source) {
    let snapshot = Snapshot::take(source);
    let _ = (
        snapshot.machine(),
        snapshot.page_kinds(),
        snapshot.memory.free_at_least(9),
    );
    let topology = &snapshot.topology;
    let _ = (topology.cores(), topology.llcs(), topology.packages());
    let json = serde_json::to_string(&snapshot).expect("JSON");
    serde_json::from_str::<Snapshot>(&json).expect("what was written");
}
