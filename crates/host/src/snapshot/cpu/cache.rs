//! Caches as sysfs reports them.

use model::{Bytes, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Source};

const CPUS: &str = "/sys/devices/system/cpu";

/// One cache of the first CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// What it holds.
    pub holds: CacheHolds,
    /// Its size; many virtual and arm64 machines do not report it.
    pub size: Reading<Bytes>,
    /// Ways.
    pub ways: Reading<u64>,
    /// Size of a line.
    pub line: Reading<Bytes>,
    /// The CPUs that share it.
    pub shared: Reading<CpuList>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheHolds {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

/// The caches of the first online CPU, from the core outwards.
pub(super) fn read(source: &Source) -> Reading<Vec<Cache>> {
    let online: Reading<CpuList> = source.value(&format!("{CPUS}/online"), "a list of CPUs");
    let first = online.known().and_then(CpuList::first).unwrap_or(0);
    let directory = format!("{CPUS}/cpu{first}/cache");
    source.list(&directory).map(|names| {
        let indices = names.iter().filter(|name| name.starts_with("index"));
        let mut caches: Vec<Cache> = indices
            .filter_map(|name| cache(source, &format!("{directory}/{name}")))
            .collect();
        caches.sort_by_key(|cache| cache.level);
        caches
    })
}

/// `None` for an entry without a known level and kind.
fn cache(source: &Source, directory: &str) -> Option<Cache> {
    let path = |name: &str| format!("{directory}/{name}");
    let holds = match source.line(&path("type")).known()?.as_str() {
        "Data" => CacheHolds::Data,
        "Instruction" => CacheHolds::Instruction,
        "Unified" => CacheHolds::Unified,
        _ => return None,
    };
    Some(Cache {
        level: *source.value(&path("level"), "a level").known()?,
        holds,
        size: source.value(&path("size"), "a size such as 32K"),
        ways: source.number(&path("ways_of_associativity")),
        line: source.number(&path("coherency_line_size")).map(Bytes),
        shared: source.value(&path("shared_cpu_list"), "a list of CPUs"),
    })
}
