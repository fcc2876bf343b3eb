//! Page kinds behind processes, as `ps` reports them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Address, Backing, Bytes, PageKind, Reading, Unread};

/// One process and what backs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessPages {
    /// Process id.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// Owner's user id.
    pub uid: Reading<u32>,
    /// Resident memory including hugetlb pages, which the kernel's own RSS leaves out.
    pub resident: Reading<Bytes>,
    /// Resident memory that other processes may map, too, without files on a disk: shmem, and hugetlb pages in shared mappings.
    pub shared: Reading<Bytes>,
    /// The kernel's RSS, without hugetlb.
    pub rss: Reading<Bytes>,
    /// hugetlb pages of all sizes.
    pub hugetlb: Reading<Bytes>,
    /// Page tables.
    pub page_tables: Reading<Bytes>,
    /// Resident bytes by page kind. mTHP needs root (kpageflags); without it those bytes count as base.
    pub backing: Reading<Backing>,
    /// `false` when the process or an ancestor disabled THP for itself.
    pub thp_enabled: Reading<bool>,
    /// Its segments of shared memory, each once however often it is mapped: those on hugetlb pages, and the largest other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SharedMemory>,
    /// The file of the process that shows `backing`: `status` where the machine has no PMD-mapped pages of its sorts of memory.
    #[serde(skip)]
    pub shown_in: &'static str,
}

/// Processes that may belong to a list and are not in it: what could not be read is not absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// Those of which it could not be read whether they do.
    pub unread: u64,
    /// The reason for the first of them.
    pub first: Option<Unread>,
    /// Why processes of other users are not even listed; `null` if all are.
    pub hidden: Option<Unread>,
    /// What shows those that were denied; `null` if nothing does, as for root in a container.
    #[serde(default)]
    pub remedy: Option<Remedy>,
}

/// What shows processes that may not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// The same command with sudo.
    Sudo,
    /// A new snapshot, taken with sudo.
    SnapshotWithSudo,
}

impl Unseen {
    /// One more that could not be read.
    pub fn add(&mut self, why: &Unread) {
        self.unread += 1;
        self.first.get_or_insert_with(|| why.clone());
    }

    /// Were all processes listed and read?
    pub fn is_none(&self) -> bool {
        self.unread == 0 && self.hidden.is_none()
    }
}

/// A segment of shared memory as one process maps it. Others of the same `id` map the same pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedMemory {
    /// Device and inode, such as `00:01:1027`.
    pub id: String,
    /// The page size of the pool that it draws from; `null` for memory outside hugetlb.
    pub page: Option<Bytes>,
    /// Bytes that are mapped; of a pool, they are reserved.
    pub size: Bytes,
    /// Bytes that this process has touched.
    pub resident: Bytes,
}

impl ProcessPages {
    /// What backs the process without its segments, and what backs each of those; `None` if its page kinds are not known.
    pub fn without_segments(&self) -> Option<(Backing, Vec<(&SharedMemory, Backing)>)> {
        let mut own = self.backing.known()?.clone();
        let of = |segment: &SharedMemory, own: &mut Backing| match segment.page {
            Some(page) => own
                .take(PageKind::Hugetlb(page), segment.resident)
                .into_iter()
                .collect(),
            None => {
                let base = own.take(PageKind::Base, segment.resident);
                let left = Bytes(segment.resident.0.saturating_sub(base.map_or(0, |(_, bytes)| bytes.0)));
                base.into_iter().chain(own.take(PageKind::Thp, left)).collect()
            }
        };
        let segments = self.segments.iter();
        let segments = segments.map(|segment| (segment, of(segment, &mut own))).collect();
        Some((own, segments))
    }
}

/// Processes, with the memory that they share counted once.
#[derive(Clone, Debug, Default)]
pub struct Once<'a> {
    /// Each process without its segments; `None` if its page kinds are not known.
    pub own: Vec<(&'a ProcessPages, Option<Backing>)>,
    /// Each segment.
    pub segments: Vec<Shared<'a>>,
}

/// A segment of shared memory, and the processes that map it.
#[derive(Clone, Debug)]
pub struct Shared<'a> {
    /// The first of them.
    pub first: &'a ProcessPages,
    /// How many others map it.
    pub others: u64,
    /// The segment as the process maps it that has touched most of it.
    pub segment: &'a SharedMemory,
    /// What backs it there.
    pub backing: Backing,
}

impl<'a> Once<'a> {
    /// Of these processes.
    pub fn of(rows: impl IntoIterator<Item = &'a ProcessPages>) -> Self {
        let mut own = Vec::new();
        let mut segments: BTreeMap<&str, Shared<'a>> = BTreeMap::new();
        for row in rows {
            let (alone, shared) = match row.without_segments() {
                Some((alone, shared)) => (Some(alone), shared),
                None => {
                    let unknown = row.segments.iter().map(|segment| (segment, Backing::new()));
                    (None, unknown.collect())
                }
            };
            own.push((row, alone));
            for (segment, backing) in shared {
                match segments.entry(&segment.id) {
                    Entry::Vacant(entry) => {
                        entry.insert(Shared {
                            first: row,
                            others: 0,
                            segment,
                            backing,
                        });
                    }
                    Entry::Occupied(entry) => entry.into_mut().also(segment, backing),
                }
            }
        }
        let segments = segments.into_values().collect();
        Self { own, segments }
    }
}

impl<'a> Shared<'a> {
    fn also(&mut self, segment: &'a SharedMemory, backing: Backing) {
        self.others += 1;
        if segment.resident > self.segment.resident {
            (self.segment, self.backing) = (segment, backing);
        }
    }
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MappingPages {
    /// First address, in hex.
    pub start: Address,
    /// One past the last address, in hex.
    pub end: Address,
    /// Permissions as in /proc/PID/maps.
    pub perms: String,
    /// File or `[heap]`, `[stack]`, empty for anonymous memory.
    pub name: String,
    /// Where it begins in the file.
    #[serde(default)]
    pub offset: Bytes,
    /// Size of the mapping.
    pub size: Bytes,
    /// Resident bytes by page kind.
    pub backing: Backing,
    /// The kernel's `THPeligible`: may THP be used here?
    pub thp_eligible: Option<bool>,
    /// The kernel's two-letter flags (`hg` advised, `nh` refused, `ht` hugetlb, ...).
    pub flags: Vec<String>,
}
