//! One mapping of a process as smaps or maps shows it.

use std::ops::{Deref, Range};

use model::process::MappingPages;
use model::{Address, Backing, Bytes, PageKind};

/// Files that programs share memory by.
pub(super) const DEV_SHM: &str = "/dev/shm/";

/// How the kernel names System V segments.
const SEGMENT: &str = "/SYSV";

/// Does the name of a shared mapping mean memory without a file on a disk, outside hugetlb?
pub(super) fn is_shmem(name: &[u8]) -> bool {
    let names = ["/dev/zero", SEGMENT, "/memfd:", DEV_SHM, "[anon_shmem:"];
    names.iter().any(|known| name.starts_with(known.as_bytes()))
}

/// The resident bytes that smaps counts, of one mapping or of a whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `Rss`: resident pages of every kind except hugetlb.
    pub rss: Bytes,
    /// `Pss`: the same, each page divided by the mappings of all processes that show it.
    pub pss: Bytes,
    /// `AnonHugePages`: anonymous memory mapped by PMD entries; smaller transparent sizes are not in it.
    pub anon_huge: Bytes,
    /// `ShmemPmdMapped`: shared memory mapped by PMD entries.
    pub shmem_pmd: Bytes,
    /// `FilePmdMapped`: page cache mapped by PMD entries.
    pub file_pmd: Bytes,
    /// `Shared_Hugetlb` and `Private_Hugetlb`: hugetlb pages.
    pub hugetlb: Bytes,
}

impl Counts {
    /// PMD-mapped THP of all three origins.
    pub fn thp(&self) -> Bytes {
        [self.anon_huge, self.shmem_pmd, self.file_pmd].into_iter().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        let fields = [
            (&mut self.rss, other.rss),
            (&mut self.pss, other.pss),
            (&mut self.anon_huge, other.anon_huge),
            (&mut self.shmem_pmd, other.shmem_pmd),
            (&mut self.file_pmd, other.file_pmd),
            (&mut self.hugetlb, other.hugetlb),
        ];
        for (own, more) in fields {
            *own = [*own, more].into_iter().sum();
        }
    }

    /// Resident bytes outside hugetlb as base and thp.
    pub fn transparent(&self) -> Backing {
        let thp = Bytes(self.thp().0.min(self.rss.0));
        [(PageKind::Base, Bytes(self.rss.0 - thp.0)), (PageKind::Thp, thp)]
            .into_iter()
            .collect()
    }
}

/// One mapping. Its texts are borrowed from the file (`&[u8]`) or shared between mappings (`Arc<str>`): a process may have
/// hundreds of thousands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<T> {
    /// First address, and one past the last.
    pub range: Range<u64>,
    /// Permissions such as `rw-p`.
    pub perms: T,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Device as `major:minor`, in hex.
    pub device: T,
    /// Inode; 0 for memory without a file.
    pub inode: u64,
    /// File, `[heap]`, `[anon:...]` or nothing. A newline in a file name reads `\012`; other bytes are as they are.
    pub name: T,
    /// What only smaps shows; `None` if maps was read.
    pub counted: Option<Counted<T>>,
}

/// What smaps shows beyond maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted<T> {
    /// The resident bytes.
    pub counts: Counts,
    /// `KernelPageSize`: the size of a hugetlb page, elsewhere the base page.
    pub kernel_page: Option<Bytes>,
    /// `THPeligible`: may some enabled transparent size be used here?
    pub thp_eligible: Option<bool>,
    /// `VmFlags` as printed: two letters each, with blanks between.
    pub flags: T,
}

impl<T: Deref<Target: AsRef<[u8]>>> Mapping<T> {
    pub fn size(&self) -> Bytes {
        Bytes(self.range.end - self.range.start)
    }

    /// Is a two-letter flag of VmFlags set? `None` if only maps was read.
    pub fn has(&self, flag: &str) -> Option<bool> {
        let flags = self.counted.as_ref()?.flags.as_ref();
        Some(flags.split(|&byte| byte == b' ').any(|set| set == flag.as_bytes()))
    }

    /// Does it draw from a hugetlb pool? Without smaps the name alone can show it.
    pub fn is_hugetlb(&self) -> bool {
        match &self.counted {
            Some(counted) => self.has("ht") == Some(true) || counted.counts.hugetlb.0 > 0,
            None => self.name.as_ref().starts_with(b"/anon_hugepage"),
        }
    }

    /// The hugetlb page size, if this mapping draws from a pool and smaps was read.
    pub fn hugetlb_page(&self) -> Option<Bytes> {
        let page = self.counted.as_ref()?.kernel_page;
        page.filter(|_| self.is_hugetlb())
    }

    /// The resident bytes that smaps counts; none if only maps was read.
    pub fn counts(&self) -> Option<Counts> {
        Some(self.counted.as_ref()?.counts)
    }

    /// Resident bytes, hugetlb included; `None` if only maps was read.
    pub fn resident(&self) -> Option<Bytes> {
        let counts = self.counts()?;
        Some(Bytes(counts.rss.0.saturating_add(counts.hugetlb.0)))
    }

    /// Bytes backed by base pages (mTHP among them); `None` if only maps was read.
    pub fn base(&self) -> Option<Bytes> {
        Some(self.counts()?.transparent().of(PageKind::Base))
    }

    /// Resident bytes by page kind; none if only maps was read. Smaller transparent sizes count as base: smaps does not
    /// distinguish them.
    pub fn backing(&self) -> Backing {
        let counts = self.counts().unwrap_or_default();
        let mut backing = counts.transparent();
        if let Some(page) = self.hugetlb_page() {
            backing.add(PageKind::Hugetlb(page), counts.hugetlb);
        }
        backing
    }

    /// Is it writable and private to this process?
    pub fn is_private_data(&self) -> bool {
        let perms = self.perms.as_ref();
        perms.starts_with(b"rw") && perms.ends_with(b"p")
    }

    /// May other processes map the same pages?
    pub fn is_shared(&self) -> bool {
        self.perms.as_ref().ends_with(b"s")
    }

    pub fn is_shared_data(&self) -> bool {
        self.perms.as_ref().starts_with(b"rw") && self.is_shared()
    }

    /// Does its name mean memory without a file on a disk, outside hugetlb?
    pub fn is_shmem(&self) -> bool {
        is_shmem(self.name.as_ref())
    }

    /// Is it a System V segment (shmget())?
    pub fn is_segment(&self) -> bool {
        self.name.as_ref().starts_with(SEGMENT.as_bytes())
    }

    /// Is it memory that processes share, without a file on a disk?
    pub fn is_shared_memory(&self) -> bool {
        self.is_shared_data() && (self.is_hugetlb() || self.is_shmem())
    }

    /// Is it memory without a file: anonymous, named by prctl, or the heap?
    pub fn is_anonymous(&self) -> bool {
        let name = self.name.as_ref();
        name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:")
    }

    /// As results show it.
    pub fn to_pages(&self) -> MappingPages {
        let text = |text: &T| String::from_utf8_lossy(text.as_ref()).into_owned();
        let flags = self
            .counted
            .as_ref()
            .map(|counted| text(&counted.flags))
            .unwrap_or_default();
        MappingPages {
            start: Address(self.range.start),
            end: Address(self.range.end),
            perms: text(&self.perms),
            name: text(&self.name),
            offset: Bytes(self.offset),
            size: self.size(),
            backing: self.backing(),
            thp_eligible: self.counted.as_ref().and_then(|counted| counted.thp_eligible),
            flags: flags.split_ascii_whitespace().map(str::to_owned).collect(),
        }
    }
}
