//! Programs of the Data Plane Development Kit.

use super::kind::Known;

/// Options of its environment layer, which any program built with it takes.
const OPTIONS: [&str; 5] = [
    "--huge-dir",
    "--socket-mem",
    "--file-prefix",
    "--proc-type=",
    "--in-memory",
];

pub(crate) const KNOWN: Known = Known {
    libraries: &["librte_eal.so"],
    has_signs: |_, arguments| {
        let mut words = arguments.iter();
        words.any(|word| OPTIONS.iter().any(|option| word.starts_with(option)))
    },
    ..Known::new(
        "DPDK",
        &["dpdk"],
        &[
            "dpdk-testpmd",
            "testpmd",
            "ovs-vswitchd",
            "vpp_main",
            "spdk_tgt",
            "reactor_0",
        ],
    )
};
