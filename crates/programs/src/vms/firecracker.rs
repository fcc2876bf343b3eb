//! Firecracker: its command line names a configuration file, or nothing, when everything comes through its API.

use model::{Bytes, Cause, Reading, Unread};
use serde_json::Value;

use super::cloud_hypervisor::around_the_hole;
use super::configured::{Asked, Backing, options};
use crate::kind::Known;
use host::Source;

pub(crate) const KNOWN: Known = Known {
    is_hypervisor: true,
    ..Known::new("Firecracker", &[], &["firecracker"])
};

/// Reads the configuration file as the process sees it (it may run in a jail).
pub(super) fn read(source: &Source, pid: u32, argv: &[String]) -> Reading<Asked> {
    let name = options(argv, "id").last().map(|name| (*name).to_owned());
    let Some(file) = options(argv, "config-file").last().copied() else {
        let why = "its memory was set through the API, which leaves no trace on the command line";
        return Reading::Unread(Unread::new(Cause::Absent, format!("/proc/{pid}/cmdline"), why));
    };
    let path = match file.starts_with('/') {
        true => format!("/proc/{pid}/root{file}"),
        false => format!("/proc/{pid}/cwd/{file}"),
    };
    let parsed = source.text(&path).and_then(|text| parse(&path, &text));
    parsed.map(|asked| Asked { name, ..asked })
}

pub(super) fn parse(path: &str, text: &str) -> Result<Asked, Unread> {
    Ok(Asked {
        memory: around_the_hole(memory(path, text)?),
        ..Asked::default()
    })
}

/// The part of the file that concerns memory: `machine-config` with `mem_size_mib` and `huge_pages`.
pub(crate) fn memory(path: &str, text: &str) -> Result<(Bytes, Backing), Unread> {
    let garbled = |why: String| Unread::new(Cause::Garbled, path, why);
    let config: Value = serde_json::from_str(text).map_err(|error| garbled(format!("it is not JSON: {error}")))?;
    let machine = &config["machine-config"];
    let mib = machine["mem_size_mib"].as_u64();
    let mib = mib.ok_or_else(|| garbled("machine-config.mem_size_mib is not a whole number".to_owned()))?;
    let from = match machine["huge_pages"].as_str() {
        Some("2M") => Backing::Hugetlb(Some(Bytes::mib(2))),
        _ => Backing::Any,
    };
    Ok((Bytes(mib.saturating_mul(1 << 20)), from))
}
