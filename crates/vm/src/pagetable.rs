//! Guest page tables as pure data: mappings in, the words of the tables and their root out.

use model::guest::GuestPage;

const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Words of 8 bytes in one table.
const ENTRIES: usize = 512;

/// How many levels the tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// 48-bit addresses.
    Four = 4,
    /// 57-bit addresses (LA57).
    Five = 5,
}

impl Levels {
    fn count(self) -> u32 {
        self as u32
    }

    /// One past the last address of the lower canonical half, the only one used here.
    pub fn end(self) -> u64 {
        1 << (12 + 9 * self.count() - 1)
    }
}

/// Who may do what in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// May CPL 3 use it?
    pub user: bool,
    pub write: bool,
    pub execute: bool,
}

impl Rights {
    /// Data of the CPL-3 payload.
    pub const USER_DATA: Self = Self::new(true, true, false);
    /// Code of the CPL-3 payload.
    pub const USER_CODE: Self = Self::new(true, false, true);
    /// Data of ring 0 only.
    pub const KERNEL_DATA: Self = Self::new(false, true, false);

    const fn new(user: bool, write: bool, execute: bool) -> Self {
        Self { user, write, execute }
    }

    fn bits(self) -> u64 {
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        bit(self.user, USER) | bit(self.write, WRITE) | bit(!self.execute, NO_EXECUTE)
    }
}

/// One stretch of guest addresses and the guest-physical memory behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First virtual address, a multiple of the page size.
    pub virt: u64,
    /// First physical address, a multiple of the page size.
    pub phys: u64,
    /// Bytes; the last page is mapped whole.
    pub len: u64,
    pub page: GuestPage,
    /// Who may do what.
    pub rights: Rights,
    /// Do its pages look as if they had been used? If not, a shadowing hypervisor takes one fault at the first touch of
    /// each; if so, it may fill in adjacent entries at the same time.
    pub used: bool,
}

/// Why a mapping cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// An address that is no multiple of the page size.
    #[error(
        "guest address {virt:#x} or its physical address {phys:#x} is not a multiple of the guest page size {page}"
    )]
    Misaligned {
        virt: u64,
        /// Physical address.
        phys: u64,
        /// Page size asked for.
        page: GuestPage,
    },
    /// Past the lower half of the address space, or past the 52 bits of a physical address.
    #[error("guest address {0:#x} is out of the range that these page tables reach")]
    OutOfRange(u64),
    /// Something is mapped there already.
    #[error("guest address {0:#x} is mapped twice")]
    Overlap(u64),
}

/// A tree of page tables, laid out from one physical address on; the root comes first.
#[derive(Clone, Debug)]
pub struct Tables {
    base: u64,
    levels: Levels,
    words: Vec<u64>,
}

impl Tables {
    /// An empty address space whose tables will lie at physical address `base` (a multiple of 4096) and beyond.
    pub fn new(base: u64, levels: Levels) -> Self {
        Self {
            base,
            levels,
            words: vec![0; ENTRIES],
        }
    }

    /// Physical address of the root, for CR3.
    pub fn root(&self) -> u64 {
        self.base
    }

    pub fn levels(&self) -> Levels {
        self.levels
    }

    pub fn root_words(&self) -> &[u64] {
        &self.words[..ENTRIES]
    }

    /// The tables' words, to be stored from [`Tables::root`] on.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes that the tables take.
    pub fn size(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Adds a mapping. Its leaves are dirty, so that a shadowing hypervisor takes no second fault at the first store.
    pub fn map(&mut self, mapping: &Mapping) -> Result<(), MapError> {
        let Mapping { virt, phys, page, .. } = *mapping;
        let size = page.size().0;
        if virt % size != 0 || phys % size != 0 {
            return Err(MapError::Misaligned { virt, phys, page });
        }
        let len = mapping.len.div_ceil(size) * size;
        let fits = |start: u64, end: u64| start.checked_add(len).is_some_and(|last| last <= end);
        if !fits(virt, self.levels.end()) || !fits(phys, 1 << 52) {
            return Err(MapError::OutOfRange(virt));
        }
        (0..len)
            .step_by(size as usize)
            .try_for_each(|offset| self.map_page(mapping, offset))
    }

    fn map_page(&mut self, mapping: &Mapping, offset: u64) -> Result<(), MapError> {
        let (virt, phys, page) = (mapping.virt + offset, mapping.phys + offset, mapping.page);
        let free = self.slot(virt, leaf_level(page)).filter(|&slot| self.words[slot] == 0);
        self.words[free.ok_or(MapError::Overlap(virt))?] = leaf(phys, page, mapping.rights, mapping.used);
        Ok(())
    }

    /// Physical address of the entry for a small page; `None` if a larger one is mapped there.
    pub(crate) fn entry(&mut self, virt: u64) -> Option<u64> {
        self.slot(virt, leaf_level(GuestPage::Size4K))
            .map(|slot| self.base + slot as u64 * 8)
    }

    /// The entry for an address at a level, with all tables that lead to it; `None` if a leaf is in the way.
    fn slot(&mut self, virt: u64, level: u32) -> Option<usize> {
        let mut table = 0;
        for above in (level + 1..=self.levels.count()).rev() {
            table = self.descend(table + index(virt, above))?;
        }
        Some(table + index(virt, level))
    }

    /// The table behind an upper entry, made if there is none; `None` if the entry is a leaf.
    fn descend(&mut self, slot: usize) -> Option<usize> {
        if self.words[slot] == 0 {
            let next = self.base + self.size();
            self.words.resize(self.words.len() + ENTRIES, 0);
            // Upper levels permit everything: the leaf decides.
            self.words[slot] = next | PRESENT | WRITE | USER | ACCESSED;
        }
        self.below(self.words[slot])
    }

    fn below(&self, entry: u64) -> Option<usize> {
        (entry & LARGE == 0).then(|| ((entry & ADDRESS) - self.base) as usize / 8)
    }
}

pub(crate) fn leaf(phys: u64, page: GuestPage, rights: Rights, used: bool) -> u64 {
    let large = if page == GuestPage::Size4K { 0 } else { LARGE };
    let accessed = if used { ACCESSED } else { 0 };
    phys | rights.bits() | PRESENT | DIRTY | accessed | large
}

/// The level at which pages of a size end the walk; 1 is the page table proper.
fn leaf_level(page: GuestPage) -> u32 {
    match page {
        GuestPage::Size4K => 1,
        GuestPage::Size2M => 2,
        GuestPage::Size1G => 3,
    }
}

fn index(virt: u64, level: u32) -> usize {
    (virt >> (12 + 9 * (level - 1))) as usize % ENTRIES
}

/// The page-aligned stretch around `[start, start + len)`: its start and its length.
pub(crate) fn around(start: u64, len: u64, page: GuestPage) -> (u64, u64) {
    let size = page.size().0;
    let first = start / size * size;
    (first, (start + len).next_multiple_of(size) - first)
}

#[cfg(test)]
mod tests;
