//! Scenarios of schedulers and of host memory.

use sim::host_memory;
use sim::scheduler::file;

const HOST: &str = "policy = 'esx-2.5.3'\nseconds = 1\n[topology]\nnodes = 2\nsockets = 4\ncores_per_socket = 2\nthreads_per_core = 2\nlogical_cpus = 16\n[costs]\nsibling_us = 30\nidle = 'halts'\n[console]\nburst_ms = 1\nsleep_ms = 30\n[[vm]]\nname = 'web'\ncount = 20\nvcpus = 2\nshares = 2000\nburst_ms = 8\nsleep_ms = 12\n[[vm]]\nname = 'db'\nvcpus = 4\nburst_ms = 20\nsleep_ms = 0\nnode = 1\nlatency_sensitivity = 'high'\nreservation_mhz = 12000\n";

/// Any text is a scenario, or an error that names the file.
pub(crate) fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = file::parse("host.toml", &text, None, 7) {
        assert!(error.to_string().starts_with("host.toml"), "{error}");
    }
}

pub(crate) fn scenarios() -> Vec<Vec<u8>> {
    let pinned = HOST
        .replace("esx-2.5.3", "pinned")
        .replace("node = 1\n", "cpus = [0, 1, 2, 3]\n");
    [HOST.to_owned(), pinned].map(String::into_bytes).into()
}

const MEMORY: &str = "seconds = 10\npolicies = ['break-all', 'ksm']\nstates = 'esx-6'\n[host]\nmemory = '4G'\nused = '1G'\nfragmented = 0.1\n[rates]\nswap_mb_s = 100\n[ksm]\npages_to_scan = 1000\n[khugepaged]\nmax_ptes_shared = 100\n[[vm]]\nname = 'web'\ncount = 3\nmemory = '1G'\ncommon = 0.3\ncontent = 'linux'\n[[vm]]\nname = 'db'\nmemory = '1G'\npages = '1G'\nreservation = 'full'\nshares = 5000\n";

/// Any text is a scenario, or an error that names the file.
pub(crate) fn memory(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = host_memory::file::parse("host.toml", &text, &[], 7) {
        assert!(error.to_string().starts_with("host.toml"), "{error}");
    }
}

pub(crate) fn memories() -> Vec<Vec<u8>> {
    let old = MEMORY.replace("esx-6", "esx-2002").replace("pages = '1G'\n", "");
    [MEMORY.to_owned(), old].map(String::into_bytes).into()
}
