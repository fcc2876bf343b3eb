//! The tables are walked back, address by address, as a CPU would.

use model::guest::GuestPage;
use proptest::prelude::*;

use super::{
    ADDRESS, Levels, MapError, Mapping, NO_EXECUTE, PRESENT, Rights, Tables, USER, WRITE, around, index, leaf_level,
};

const BASE: u64 = 0x40_0000;

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Translation {
    /// Physical address of the byte.
    pub(crate) phys: u64,
    /// Size of the page that maps it.
    pub(crate) page: GuestPage,
    /// Who may do what there.
    pub(crate) rights: Rights,
    /// Physical address of the leaf entry itself.
    pub(crate) entry: u64,
}

impl Tables {
    /// Walks the tables as the CPU does.
    pub(crate) fn walk(&self, virt: u64) -> Option<Translation> {
        let mut table = 0;
        for level in (1..=self.levels.count()).rev() {
            let slot = table + index(virt, level);
            let entry = self.words[slot];
            if entry & PRESENT == 0 {
                return None;
            }
            if level > 1
                && let Some(next) = self.below(entry)
            {
                table = next;
                continue;
            }
            return translation(virt, entry, level, self.base + slot as u64 * 8);
        }
        None
    }
}

fn translation(virt: u64, entry: u64, level: u32, place: u64) -> Option<Translation> {
    let page = GuestPage::ALL.into_iter().find(|&page| leaf_level(page) == level)?;
    Some(Translation {
        phys: (entry & ADDRESS) | (virt & (page.size().0 - 1)),
        page,
        rights: Rights {
            user: entry & USER != 0,
            write: entry & WRITE != 0,
            execute: entry & NO_EXECUTE == 0,
        },
        entry: place,
    })
}

fn mapping(virt: u64, phys: u64, len: u64, page: GuestPage) -> Mapping {
    let rights = Rights::USER_DATA;
    Mapping {
        virt,
        phys,
        len,
        page,
        rights,
        used: false,
    }
}

#[test]
fn one_page_of_each_size_takes_as_many_tables_as_it_has_levels() {
    for (page, tables) in GuestPage::ALL.into_iter().zip([4, 3, 2]) {
        for (levels, more) in [(Levels::Four, 0), (Levels::Five, 1)] {
            let mut built = Tables::new(BASE, levels);
            built.map(&mapping(1 << 40, 1 << 30, 1, page)).expect("maps");
            assert_eq!(built.size(), (tables + more) * 4096, "{page} {levels:?}");
            assert_eq!(built.root(), BASE);
        }
    }
}

#[test]
fn the_entry_has_the_bits_the_manuals_name() {
    let mut tables = Tables::new(BASE, Levels::Four);
    let code = Mapping {
        rights: Rights::USER_CODE,
        used: true,
        ..mapping(0x20_0000, 0x4000_0000, 1, GuestPage::Size2M)
    };
    tables.map(&code).expect("maps");
    let place = tables.walk(0x20_0000).expect("mapped").entry;
    let word = tables.words()[(place - BASE) as usize / 8];
    // Present, user, accessed, dirty, large; neither writable nor no-execute.
    assert_eq!(word, 0x4000_0000 | 0b1110_0101);
}

#[test]
fn mappings_that_cannot_be_are_refused() {
    let mut tables = Tables::new(BASE, Levels::Four);
    let misaligned = mapping(0x1000, 0x20_0000, 1, GuestPage::Size2M);
    assert!(matches!(tables.map(&misaligned), Err(MapError::Misaligned { .. })));
    let beyond = mapping(1 << 47, 0, 4096, GuestPage::Size4K);
    assert_eq!(tables.map(&beyond), Err(MapError::OutOfRange(1 << 47)));
    assert_eq!(Tables::new(BASE, Levels::Five).map(&beyond), Ok(()));
    tables.map(&mapping(0, 0, 1 << 21, GuestPage::Size2M)).expect("maps");
    let inside = mapping(0x1000, 0, 4096, GuestPage::Size4K);
    assert_eq!(tables.map(&inside), Err(MapError::Overlap(0x1000)));
    let above = mapping(0, 0, 1, GuestPage::Size1G);
    assert_eq!(tables.map(&above), Err(MapError::Overlap(0)));
}

#[test]
fn around_covers_the_range_with_whole_pages() {
    assert_eq!(around(0x1f_f000, 0x2000, GuestPage::Size2M), (0, 4 << 20));
    assert_eq!(around(0x20_0000, 0x20_0000, GuestPage::Size2M), (2 << 20, 2 << 20));
}

fn pages() -> impl Strategy<Value = GuestPage> {
    prop::sample::select(GuestPage::ALL.to_vec())
}

proptest! {
    #[test]
    fn walking_gives_back_what_was_mapped(
        parts in prop::collection::vec((pages(), 0u64..512, 1u64..6, 0u64..1 << 9, any::<[bool; 3]>()), 1..6),
        five in any::<bool>(),
        probe in any::<u64>(),
    ) {
        let levels = if five { Levels::Five } else { Levels::Four };
        let mut tables = Tables::new(BASE, levels);
        let mut made: Vec<Mapping> = Vec::new();
        for (part, (page, inside, count, phys, [user, write, execute])) in parts.into_iter().enumerate() {
            let size = page.size().0;
            // One 512 GiB slot a part, so that they cannot meet.
            let virt = ((part as u64) << 39) + inside * size % (1 << 38);
            let mapping = Mapping {
                virt, phys: phys * size, len: count * size, page, rights: Rights { user, write, execute }, used: user,
            };
            tables.map(&mapping).expect("disjoint and aligned");
            made.push(mapping);
        }
        for mapping in &made {
            let offset = probe % mapping.len;
            let found = tables.walk(mapping.virt + offset).expect("mapped");
            prop_assert_eq!(found.phys, mapping.phys + offset);
            prop_assert_eq!(found.page, mapping.page);
            prop_assert_eq!(found.rights, mapping.rights);
            prop_assert!(found.entry >= BASE && found.entry < BASE + tables.size());
            prop_assert_eq!(tables.walk(mapping.virt + mapping.len), None);
        }
    }
}
