//! The account of one program: its parts, what it asked for, why the rest is on base pages, what to do next.

use host::processes::{Coverage, Reason};
use host::snapshot::Pool;
use model::findings::Finding;
use model::{Backing, Bytes, PageKind, Reading};
use programs::{CutLog, LogLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mapped::Mapped;
use super::step::Step;
use crate::facts::pages_for;

/// From this share on a part counts as backed by huge pages, and below the rest as not.
const NEARLY_ALL: f64 = 0.9;

/// One program and its huge pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// What it is, such as `PostgreSQL`; `null` if hugewise does not know it.
    pub program: Option<String>,
    /// The process that stands for it.
    pub pid: u32,
    /// Its short name, or the virtual machine's own.
    pub name: String,
    /// Further processes of it.
    pub others: u64,
    /// Its processes whose memory is counted below.
    #[serde(default)]
    pub counted: u64,
    /// The process whose PID was asked for, if another stands for the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_process: Option<OfProcess>,
    /// What all of them have resident: private memory, shared memory and files, each page once.
    #[serde(default = "unread")]
    pub resident: Reading<Coverage>,
    /// Its code and the files that it maps; `null` where its mappings could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<Mapped>,
    /// hugetlb pages of the process that stands for it, as its status reports them to every user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugetlb: Option<Bytes>,
    /// Its systemd service.
    pub unit: Option<String>,
    /// Is the part that matters most backed by huge pages?
    pub in_use: InUse,
    /// Its memory, the part that matters most first.
    pub parts: Vec<Part>,
    /// Its settings about huge pages, and where they were read.
    pub asked: Vec<Asked>,
    /// The pools that it could draw from.
    pub pools: Vec<PoolState>,
    /// Why memory is on base pages, the largest first.
    pub why: Vec<Why>,
    /// What the program wrote about huge pages in its own logs, the last lines of each.
    #[serde(default)]
    pub log: Vec<LogLine>,
    /// Its logs of which only the end was read.
    #[serde(default)]
    pub log_cut: Vec<CutLog>,
    /// What `doctor` finds in this program's own settings.
    pub findings: Vec<Finding>,
    /// What to do next, in order.
    pub next: Vec<Step>,
}

fn unread() -> Reading<Coverage> {
    Reading::absent("resident")
}

/// One process of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfProcess {
    /// Its id.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// What backs its memory, without what it shares.
    pub backing: Reading<Backing>,
}

/// The short answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InUse {
    /// At least nine tenths.
    Yes,
    /// In between.
    Partly,
    /// Less than a tenth.
    No,
    /// Its mappings could not be read.
    Unknown,
}

model::shown_by_name!(InUse);

/// One part of a program's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Which part.
    pub what: PartKind,
    /// First address and one past the last, in hex; `null` for a part in many places.
    pub range: Option<String>,
    /// Address space.
    pub size: Bytes,
    /// Resident bytes by page kind, as the main process maps them.
    pub backing: Reading<Backing>,
    /// Bytes that exist, whichever process touched them.
    pub touched: Reading<Bytes>,
    /// The pages of what draws from a hugetlb pool in it.
    pub hugetlb: Option<HugetlbPages>,
    /// The pages of the default hugetlb size that would hold it, if it does not.
    pub needs: Option<Needs>,
}

impl Part {
    /// One in many places, which needs no page of a pool and has none.
    pub(super) fn new(what: PartKind, size: Bytes, backing: Reading<Backing>, touched: Reading<Bytes>) -> Self {
        Self {
            what,
            range: None,
            size,
            backing,
            touched,
            hugetlb: None,
            needs: None,
        }
    }

    /// Bytes that huge pages back, and all that are counted: of a hugetlb mapping the whole, because it is reserved.
    pub(super) fn huge_and_all(&self) -> Option<(u64, u64)> {
        let reserved = self.hugetlb.map_or(0, |pages| pages.total.saturating_mul(pages.page.0));
        let Some(backing) = self.backing.known() else {
            return (reserved > 0).then_some((reserved, reserved));
        };
        let page = self.hugetlb.map(|pages| PageKind::Hugetlb(pages.page));
        let touched = page.map_or(0, |page| backing.of(page).0);
        let whole = |bytes: Bytes| bytes.0.saturating_sub(touched).saturating_add(reserved.max(touched));
        Some((whole(backing.large()), whole(backing.total())))
    }

    /// What a pool holds already needs no more pages.
    pub(super) fn without_needs_that_are_met(mut self) -> Self {
        if self.hugetlb.is_some() && self.in_use() == InUse::Yes {
            self.needs = None;
        }
        self
    }

    /// How much it is, for the order of parts.
    pub(super) fn weight(&self) -> u64 {
        let reserved = self.hugetlb.map(|_| self.size.0);
        let backed = self.backing.known().map(|backing| backing.total().0);
        backed.max(reserved).unwrap_or_default()
    }

    /// Where its inode could not be read: if all that is taken from a pool is this part, the pool's counts are its own.
    pub(super) fn count_by_pool(&mut self, pools: &[Pool]) {
        let Some(pages) = self.hugetlb.as_mut().filter(|pages| pages.touched.is_none()) else {
            return;
        };
        let pool = pools.iter().find(|pool| pool.size == pages.page);
        let taken = pool.and_then(Pool::taken);
        if taken == Some(pages.total) {
            pages.touched = pool.and_then(Pool::used);
        }
    }

    /// Is it backed by huge pages?
    pub fn in_use(&self) -> InUse {
        match self.huge_and_all() {
            None | Some((_, 0)) => InUse::Unknown,
            Some((huge, all)) => match huge as f64 / all as f64 {
                share if share >= NEARLY_ALL => InUse::Yes,
                share if share < 1.0 - NEARLY_ALL => InUse::No,
                _ => InUse::Partly,
            },
        }
    }
}

/// The parts of a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// Shared between its processes, such as PostgreSQL's shared buffers.
    SharedMemory,
    /// A Java heap.
    JavaHeap,
    /// The memory of a guest.
    GuestMemory,
    /// The process's own, without a file; of a program with several processes, of all of them.
    PrivateMemory,
    /// Files: code, libraries, data.
    MappedFiles,
}

impl PartKind {
    fn private() -> Self {
        Self::PrivateMemory
    }
}

/// Pages of a hugetlb mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugetlbPages {
    /// Size of one.
    pub page: Bytes,
    /// All.
    pub total: u64,
    /// Those that exist; `null` if another process may have touched more.
    pub touched: Option<u64>,
}

impl HugetlbPages {
    /// Those of so much memory, of which so much is touched.
    pub(super) fn of(page: Bytes, size: Bytes, touched: Option<Bytes>) -> Self {
        Self {
            page,
            total: pages_for(size, page),
            touched: touched.map(|bytes| bytes.0 / page.0.max(1)),
        }
    }

    /// Pages that are set aside for it and not touched yet.
    pub fn reserved(&self) -> Option<u64> {
        self.touched.map(|touched| self.total.saturating_sub(touched))
    }
}

impl Needs {
    /// The pages that hold so much.
    pub(super) fn of(page: Bytes, whole: Bytes) -> Self {
        let pages = pages_for(whole, page);
        Self { page, pages }
    }

    /// What they hold.
    pub fn bytes(self) -> Bytes {
        Bytes(self.page.0.saturating_mul(self.pages))
    }
}

/// Pages that would hold a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// Size of one.
    pub page: Bytes,
    /// How many.
    pub pages: u64,
}

/// A setting that decides about huge pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Its name.
    pub setting: String,
    /// Its value; `null` where it is not set, and the reason where it could not be read.
    pub value: Reading<Option<String>>,
    /// Where it was read.
    pub place: String,
}

/// A pool of hugetlb pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolState {
    /// Size of one page.
    pub page: Bytes,
    /// Pages in the pool.
    pub pages: Reading<u64>,
    /// Pages that a new mapping can still get, those that the kernel may add on demand included; `null` if that could not be read.
    pub spare: Option<u64>,
    /// Of these, the pages that the kernel would add (`nr_overcommit_hugepages`): they are in no pool yet, and may fail to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand: Option<u64>,
}

impl PoolState {
    pub(crate) fn of(pool: &Pool) -> Self {
        let growth = || Some(pool.overcommit.known()?.saturating_sub(*pool.surplus.known()?));
        let on_demand = growth().filter(|pages| *pages > 0);
        Self {
            page: pool.size,
            pages: pool.nr.clone(),
            spare: pool.available().map(|available| available + on_demand.unwrap_or(0)),
            on_demand,
        }
    }
}

/// Why memory is on base pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Why {
    /// It is set not to ask for huge pages.
    NotAsked {
        /// The setting that would ask.
        setting: String,
    },
    /// It asks, and another option of its own switches that off.
    SwitchedOff {
        /// That option.
        option: String,
    },
    /// It asked, and the pool cannot hold it.
    PoolShort {
        /// What it needs.
        needs: Needs,
        /// Pages that it could get, and those that it has.
        spare: u64,
    },
    /// It was started before this was set: with it a server does not start on base pages.
    StartedBefore {
        /// The setting.
        setting: String,
        /// Where it is set.
        place: String,
    },
    /// The pool can hold it by now; such memory is taken at the start only.
    Restart {
        /// What it needs.
        needs: Needs,
        /// Pages that it could get, and those that it has.
        spare: u64,
    },
    /// MySQL before 8.0.27, and a JVM with such an option, take their pages by SHM_HUGETLB, and it has no right to.
    Barred {
        /// The group that would have it (`vm.hugetlb_shm_group`).
        group: u32,
    },
    /// A heap that takes its pages as it grows may need more than the pool has for it.
    NoRoomToGrow {
        /// What it may need in all.
        needs: Needs,
        /// Pages that it has, and those that it could get.
        spare: u64,
    },
    /// The JVM found too few pages, and lowered the maximum of its heap.
    Lowered {
        /// What was asked for.
        asked: Bytes,
        /// What it is.
        granted: Bytes,
    },
    /// Its control group, or one above, allows less than it needs: touching more ends in SIGBUS, and reserving more fails.
    Limited {
        /// What it needs.
        needs: Needs,
        /// What is allowed.
        allows: Bytes,
        /// The limit's file.
        file: String,
    },
    /// Its heap is a file (`-XX:AllocateHeapAt`), whose file system decides.
    HeapFile {
        /// Where the file is.
        directory: String,
    },
    /// Why transparent huge pages do not back a part.
    Thp {
        /// Which part; private memory where it is not said.
        #[serde(default = "PartKind::private")]
        part: PartKind,
        /// The kernel's reason.
        reason: Reason,
        /// Bytes on base pages for it.
        bytes: Bytes,
    },
}
