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
        memory: around_the_hole(machine(path, text)?.memory),
        ..Asked::default()
    })
}

/// The part of a configuration that concerns memory.
pub(crate) struct Machine {
    pub(crate) memory: (Bytes, Backing),
    /// Does KVM log the pages that the guest writes, as long as it runs?
    pub(crate) is_tracked: bool,
}

/// `machine-config` of a file, or what the API takes in its place.
pub(crate) fn machine(path: &str, text: &str) -> Result<Machine, Unread> {
    let garbled = |why: String| Unread::new(Cause::Garbled, path, why);
    let config: Result<Value, _> = serde_json::from_str(text).or_else(|error| body(text).unwrap_or(Err(error)));
    let config = config.map_err(|error| garbled(format!("it is not JSON: {error}")))?;
    let machine = config.get("machine-config").unwrap_or(&config);
    let mib = machine["mem_size_mib"].as_u64();
    let mib = mib.ok_or_else(|| garbled("machine-config.mem_size_mib is not a whole number".to_owned()))?;
    let pages = &machine[PAGES];
    let refused = || {
        let key = format!("\"{PAGES}\"");
        let at = text.lines().position(|line| line.contains(&key)).unwrap_or_default();
        let wanted = "None, Transparent or 2M: Firecracker refuses it";
        host::parse::garbled(path, at, PAGES, wanted, &pages.to_string())
    };
    let from = backing(pages).ok_or_else(refused)?;
    Ok(Machine {
        memory: (Bytes(mib.saturating_mul(1 << 20)), from),
        is_tracked: machine[TRACKED].as_bool() == Some(true),
    })
}

/// The key that has KVM log what the guest writes.
pub(crate) const TRACKED: &str = "track_dirty_pages";

/// The key that says which pages back the guest.
const PAGES: &str = "huge_pages";

/// What it stands for; `None` if Firecracker does not take it.
fn backing(pages: &Value) -> Option<Backing> {
    match pages.as_str() {
        None if pages.is_null() => Some(Backing::Any),
        Some("None") => Some(Backing::Any),
        Some("Transparent") => Some(Backing::Thp),
        Some("2M") => Some(Backing::Hugetlb(Some(Bytes::mib(2)))),
        _ => None,
    }
}

/// What a script sends to the API.
fn body(text: &str) -> Option<serde_json::Result<Value>> {
    let (before, after) = text.split_once("\"mem_size_mib\"")?;
    let from = before.rfind('{')?;
    let to = text.len() - after.len() + after.find('}')?;
    Some(serde_json::from_str(&text[from..=to]))
}
