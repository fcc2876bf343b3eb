//! The kernel counters of memory: meminfo, vmstat, free blocks by order, pressure.

use std::collections::BTreeMap;

use model::{Bytes, Cause, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;
use crate::parse;

/// What the kernel counts, system-wide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// `/proc/meminfo`.
    pub meminfo: Reading<Meminfo>,
    /// Its counts (`HugePages_Total`), which say nothing that the pools do not where these could be read.
    #[serde(default = "no_pages")]
    pub pages: Reading<BTreeMap<String, u64>>,
    /// The lines of `/proc/vmstat` that have to do with page sizes; counts since boot.
    pub vmstat: Reading<BTreeMap<String, u64>>,
    /// `/proc/buddyinfo`: free blocks by node, zone and order.
    pub free_blocks: Reading<Vec<FreeBlocks>>,
    /// `/proc/pressure/memory`.
    pub pressure: Reading<Pressure>,
}

/// The byte amounts of a meminfo file by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Meminfo(BTreeMap<String, Bytes>);

/// Free blocks in one zone of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreeBlocks {
    /// NUMA node.
    pub node: u32,
    /// `DMA32`, `Normal`, ...
    pub zone: String,
    /// Number of free blocks of 2^index base pages.
    pub by_order: Vec<u64>,
}

/// Shares of time in which work waited for memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Stall,
    /// All tasks waited; some kernels leave it out.
    pub full: Option<Stall>,
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Per cent of the last 10 s.
    pub avg10: f64,
    /// Per cent of the last 60 s.
    pub avg60: f64,
    /// Per cent of the last 300 s.
    pub avg300: f64,
    /// Microseconds since boot.
    pub total_us: u64,
}

/// Beginnings of the vmstat names that have to do with page sizes.
const VMSTAT: [&str; 21] = [
    "allocstall",
    "balloon_",
    "compact_",
    "cow_ksm",
    "direct_map_",
    "htlb_",
    "ksm_",
    "nr_anon_transparent_hugepages",
    "nr_file_hugepages",
    "nr_file_pmdmapped",
    "nr_page_table_pages",
    "nr_sec_page_table_pages",
    "nr_shmem_hugepages",
    "nr_shmem_pmdmapped",
    "numa_",
    "oom_kill",
    "pgfault",
    "pgmajfault",
    "pgmigrate_",
    "thp_",
    "zone_reclaim_",
];

impl Memory {
    pub(super) fn read(source: &Source) -> Self {
        Self {
            meminfo: Meminfo::read(source, "/proc/meminfo"),
            pages: parsed(source, "/proc/meminfo", pages),
            vmstat: parsed(source, "/proc/vmstat", vmstat),
            free_blocks: parsed(source, "/proc/buddyinfo", free_blocks),
            pressure: parsed(source, "/proc/pressure/memory", pressure),
        }
    }

    /// A line of `/proc/meminfo`, in bytes.
    pub fn get(&self, name: &str) -> Reading<Bytes> {
        entry("/proc/meminfo", self.meminfo.as_ref().map(|meminfo| &meminfo.0), name)
    }

    /// A line of `/proc/meminfo` that is a count: `HugePages_Total`.
    pub fn pages(&self, name: &str) -> Reading<u64> {
        entry("/proc/meminfo", self.pages.as_ref(), name)
    }

    /// A counter of `/proc/vmstat`.
    pub fn count(&self, name: &str) -> Reading<u64> {
        entry("/proc/vmstat", self.vmstat.as_ref(), name)
    }

    /// Free blocks of at least 2^`order` base pages, counted as blocks of exactly that order; all nodes and zones.
    pub fn free_at_least(&self, order: usize) -> Reading<u64> {
        self.free_blocks.as_ref().map(|zones| {
            zones
                .iter()
                .map(|zone| zone.at_least(order))
                .fold(0, u64::saturating_add)
        })
    }
}

fn entry<T: Copy>(file: &str, lines: Reading<&BTreeMap<String, T>>, name: &str) -> Reading<T> {
    let absent = || Unread::new(Cause::Absent, format!("{file}: {name}"), "");
    lines.and_then(|lines| lines.get(name).copied().ok_or_else(absent))
}

impl Meminfo {
    /// Reads a meminfo file, global or of one node.
    pub fn read(source: &Source, path: &str) -> Reading<Self> {
        parsed(source, path, Self::parse)
    }

    /// Lines such as `MemTotal:  24684092 kB`, or `Node 0 MemTotal: 24684092 kB`; `path` is only for the reasons.
    ///
    /// # Errors
    /// A line without a number.
    pub fn parse(path: &str, text: &str) -> Result<Self, Unread> {
        let mut amounts = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let Some((name, amount)) = line.split_once(':') else {
                continue;
            };
            let name = name.rsplit(' ').next().unwrap_or(name);
            if let Some(number) = amount.trim().strip_suffix("kB") {
                amounts.insert(name.to_owned(), parse::kib(path, index, name, number)?);
            } else {
                parse::value::<u64>(path, index, name, "a number", amount)?;
            }
        }
        Ok(Self(amounts))
    }

    /// An amount by its name in the file.
    pub fn get(&self, name: &str) -> Reading<Bytes> {
        let bytes = self.0.get(name).copied();
        bytes.map_or_else(|| Reading::absent(name), Reading::Known)
    }

    /// Names and amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Bytes)> {
        self.0.iter().map(|(name, &bytes)| (name.as_str(), bytes))
    }
}

impl FreeBlocks {
    /// Free blocks of at least 2^`order` base pages, counted as blocks of exactly that order.
    pub fn at_least(&self, order: usize) -> u64 {
        let larger = self.by_order.iter().enumerate().skip(order);
        larger
            .map(|(at, &blocks)| blocks.saturating_mul(1_u64.checked_shl((at - order) as u32).unwrap_or(u64::MAX)))
            .fold(0, u64::saturating_add)
    }
}

/// A parser of one file's text: it gets the path only to name it.
type Parser<T> = fn(&str, &str) -> Result<T, Unread>;

fn parsed<T>(source: &Source, path: &str, parser: Parser<T>) -> Reading<T> {
    source.text(path).and_then(|text| parser(path, &text))
}

/// Lines such as `HugePages_Total:      16`.
fn pages(path: &str, text: &str) -> Result<BTreeMap<String, u64>, Unread> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("HugePages_"));
    let counts = lines.filter_map(|(index, line)| Some((index, line.split_once(':')?)));
    counts
        .map(|(index, (name, count))| Ok((name.to_owned(), parse::value(path, index, name, "a number", count)?)))
        .collect()
}

fn no_pages() -> Reading<BTreeMap<String, u64>> {
    Reading::absent("pages")
}

fn vmstat(path: &str, text: &str) -> Result<BTreeMap<String, u64>, Unread> {
    let ours = |line: &str| VMSTAT.iter().any(|prefix| line.starts_with(prefix));
    text.lines()
        .enumerate()
        .filter(|(_, line)| ours(line))
        .map(|(index, line)| {
            let (name, count) = line.split_once(' ').unwrap_or((line, ""));
            Ok((name.to_owned(), parse::value(path, index, name, "a count", count)?))
        })
        .collect()
}

/// Lines such as `Node 0, zone   Normal    187    265 ...`.
fn free_blocks(path: &str, text: &str) -> Result<Vec<FreeBlocks>, Unread> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("Node"));
    lines.map(|(index, line)| zone(path, index, line)).collect()
}

fn zone(path: &str, index: usize, line: &str) -> Result<FreeBlocks, Unread> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["Node", node, "zone", zone, counts @ ..] = words.as_slice() else {
        return Err(parse::garbled(path, index, "", "`Node N, zone NAME COUNTS`", line));
    };
    let count = |word: &&str| parse::value(path, index, zone, "a count of blocks", word);
    Ok(FreeBlocks {
        node: parse::value(path, index, "node", "a number", node.trim_end_matches(','))?,
        zone: (*zone).to_owned(),
        by_order: counts.iter().map(count).collect::<Result<_, _>>()?,
    })
}

fn pressure(path: &str, text: &str) -> Result<Pressure, Unread> {
    let stall_of = |kind: &str| {
        let line = text.lines().enumerate().find(|(_, line)| line.starts_with(kind));
        line.map(|(index, line)| stall(path, index, line)).transpose()
    };
    let first = text.lines().next().unwrap_or_default();
    Ok(Pressure {
        some: stall_of("some ")?.ok_or_else(|| parse::garbled(path, 0, "", "a line that starts with `some`", first))?,
        full: stall_of("full ")?,
    })
}

fn stall(path: &str, index: usize, line: &str) -> Result<Stall, Unread> {
    let field = |name: &str| {
        let words = line.split_whitespace();
        let mut pairs = words.filter_map(|word| word.split_once('='));
        pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    };
    let share = |name: &str| {
        let seen = field(name);
        let share: f64 = parse::value(path, index, name, "a share in per cent", seen)?;
        match share.is_finite() {
            true => Ok(share),
            false => Err(parse::garbled(path, index, name, "a share in per cent", seen)),
        }
    };
    Ok(Stall {
        avg10: share("avg10")?,
        avg60: share("avg60")?,
        avg300: share("avg300")?,
        total_us: parse::value(path, index, "total", "a number of microseconds", field("total"))?,
    })
}
