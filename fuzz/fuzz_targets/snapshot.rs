//! One file of a machine after the other gets any content; the snapshot says what it could read, and its JSON comes back.
//! The input is an archive's body, so that a corpus can be made from `fixtures/machines`.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Files with a parser of their own: the first byte of the input chooses one of them.
const FILES: [&str; 14] = [
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/proc/pressure/memory",
    "/proc/cpuinfo",
    "/proc/cmdline",
    "/proc/self/mounts",
    "/hugewise/cpuid",
    "/hugewise/page_size",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node0/meminfo",
    "/sys/devices/system/node/node0/distance",
];

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tree) = host::Tree::parse("fuzz.tree", bytes) {
        ask(tree);
    }
    if let [which, content @ ..] = bytes {
        let path = FILES[usize::from(*which) % FILES.len()];
        ask(host::Tree::new().file(path, content));
    }
});

fn ask(tree: host::Tree) {
    let snapshot = host::Snapshot::take(&host::Source::from_tree("fuzz", tree));
    let _ = (
        snapshot.machine(),
        snapshot.page_kinds(),
        snapshot.memory.free_at_least(9),
    );
    let _ = (
        snapshot.topology.cores(),
        snapshot.topology.llcs(),
        snapshot.topology.packages(),
    );
    let json = serde_json::to_string(&snapshot).expect("JSON");
    serde_json::from_str::<host::Snapshot>(&json).expect("what was written");
}
