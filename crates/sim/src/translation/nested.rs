//! Walks in two dimensions: the host's table translates the addresses of the guest's tables, and of its pages.

use std::convert::Infallible;

use fearless_simd::{Simd, dispatch};

use super::agile::Level;
use super::caches::Read;
use super::keep::Kept;
use super::layout::shift;
use super::radix::{Radix, Walk};
use super::recent::{self, Recent};
use super::sets::TouchSet;
use super::walker::{ALL_LEVELS, Block, Reads, TABLES, WalkerSpec};
use crate::ways::{Replacement, Ways};

/// Host page tables lie beyond the guest's memory.
pub(super) const HOST: u64 = 1 << 56;
/// The shadow table of agile paging lies between the guest's and the host's.
const SHADOW: u64 = 1 << 54;
/// The first bit of a page's size in its tag.
const PAGE_BITS: u32 = 58;
/// Of [`Nested::untranslated`]: the guest's page.
const PAGE: u8 = 0;

/// The host's dimension of a walker.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    host: Radix,
    guest_levels: u8,
    tlb: Tlb,
    /// The walks of the host's table, in their order, and where each begins.
    walks: Kept<Walk>,
    first: Vec<u8>,
    /// By walk of the guest's table: a bit for each level whose table the nested TLB does not know, and one for the page.
    untranslated: Vec<u8>,
}

/// The nested TLB: host pages by [`page_tag`], under LRU.
#[derive(Clone, Debug)]
enum Tlb {
    Listed(Ways<u64>),
    Recent(Recent<u64>),
}

impl Tlb {
    fn new(ways: u32) -> Self {
        match ways {
            recent::FEWEST..=recent::MOST => Self::Recent(Recent::new(ways)),
            _ => Self::Listed(Ways::new(ways, Replacement::Lru, 0)),
        }
    }

    /// See [`translate`].
    #[inline(always)]
    fn translate<S: Simd>(
        self,
        simd: S,
        part: Block,
        walks: &[Walk],
        first: &[u8],
        listed: (&mut [Walk], &mut [u8]),
    ) -> (Self, usize) {
        match self {
            Self::Listed(mut tlb) => {
                let count = translate(simd, &mut tlb, part, walks, first, listed);
                (Self::Listed(tlb), count)
            }
            Self::Recent(mut tlb) => {
                let count = translate(simd, &mut tlb, part, walks, first, listed);
                (Self::Recent(tlb), count)
            }
        }
    }
}

/// Lists the walks of the host's table for all that the nested TLB does not know, and for each walk of the guest's table what that is.
/// Returns the number of the former.
#[inline(always)]
fn translate<S: Simd>(
    simd: S,
    tlb: &mut impl TouchSet<u64>,
    part: Block,
    walks: &[Walk],
    first: &[u8],
    (host_walks, untranslated): (&mut [Walk], &mut [u8]),
) -> usize {
    let mut count = 0;
    let walks = walks.iter().zip(first).zip(part.misses).zip(untranslated);
    for (((&walk, &first), miss), untranslated) in walks {
        let Some(host) = part.backings[usize::from(miss.class)].host.map(shift) else {
            continue;
        };
        for level in walk.levels(first) {
            let (tables, is_nested) = tables(level, miss.nested_from);
            let address = tables + walk.offset(level);
            if is_nested {
                let is_known = tlb.touch(simd, page_tag(address, host));
                host_walks[count] = Walk::new(address, host);
                count += usize::from(!is_known);
                *untranslated |= u8::from(!is_known) << level;
            }
        }
        if miss.nested_from > 0 {
            host_walks[count] = Walk::new(walk.address, host);
            count += 1;
            *untranslated |= 1 << PAGE;
        }
    }
    count
}

/// The number of an address's page, with its size: never 0.
#[inline(always)]
fn page_tag(address: u64, bits: u32) -> u64 {
    address >> bits | u64::from(bits) << PAGE_BITS
}

impl Nested {
    pub(super) fn new(spec: &WalkerSpec) -> Self {
        Self {
            host: Radix::new(spec.host_levels, spec.host_caches),
            guest_levels: spec.levels,
            tlb: Tlb::new(spec.nested_tlb),
            walks: Kept::default(),
            first: Vec::new(),
            untranslated: Vec::new(),
        }
    }

    /// The most entries that a walk reads in both tables.
    pub(super) fn most_reads(&self) -> usize {
        let (guest, host) = (usize::from(self.guest_levels), usize::from(self.host.levels()));
        guest * (host + 1) + host
    }

    /// Asks the nested TLB for the guest's tables, and finds where walks of the host's table begin for all others. Returns how
    /// many entries those read.
    pub(super) fn translate(&mut self, part: Block, walks: &[Walk], first: &[u8]) -> u64 {
        self.untranslated.clear();
        self.untranslated.resize(walks.len(), 0);
        let most = walks.len() * (usize::from(self.guest_levels) + 1);
        let (tlb, untranslated) = (&mut self.tlb, &mut self.untranslated);
        let filled = self.walks.refill(most, Walk::new(0, 0), |room| {
            // By value, so that what of it fits stays in registers.
            let lent = std::mem::replace(tlb, Tlb::new(0));
            let (lent, count) = dispatch!(fearless_simd::Level::new(), simd => lent.translate(simd, part, walks, first, (&mut *room, &mut *untranslated)));
            *tlb = lent;
            Ok::<_, Infallible>(count)
        });
        let Ok(()) = filled;
        self.host.first_levels(&self.walks, &mut self.first)
    }

    /// Lists what one of the walks reads in both tables; `host` is the number of the next walk of the host's table.
    #[inline(always)]
    pub(super) fn list(
        &self,
        reads: &mut Reads,
        (walk, first): (Walk, u8),
        nested_from: u8,
        number: usize,
        host: &mut usize,
    ) {
        let untranslated = self.untranslated[number];
        for level in walk.levels(first) {
            if untranslated >> level & 1 == 1 {
                self.list_host(reads, host);
            }
            reads.push(Read::entry(tables(level, nested_from).0 + walk.offset(level)));
        }
        if untranslated >> PAGE & 1 == 1 {
            self.list_host(reads, host);
        }
    }

    #[inline(always)]
    fn list_host(&self, reads: &mut Reads, host: &mut usize) {
        reads.entries(HOST, self.walks[*host], self.first[*host]);
        *host += 1;
    }
}

/// Where the tables of a level lie that a walk reads, and whether the host's table translates their addresses.
#[inline(always)]
fn tables(level: u8, nested_from: u8) -> (u64, bool) {
    if nested_from == ALL_LEVELS {
        return (TABLES, true);
    }
    match Level::of(level, nested_from) {
        Level::Shadow => (SHADOW, false),
        Level::Switch => (TABLES, false),
        Level::Nested => (TABLES, true),
    }
}
