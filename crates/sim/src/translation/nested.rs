//! Walks in two dimensions: the host's table translates the addresses of the guest's tables, and of its pages.

use std::convert::Infallible;

use fearless_simd::{Simd, dispatch};

use super::agile::Level;
use super::caches::Read;
use super::keep::Kept;
use super::layout::shift;
use super::radix::{Radix, Walk};
use super::random::golden;
use super::recency::{Order, Ordered, Rows};
use super::recent::{self, Recent};
use super::touch::TouchSet;
use super::walker_spec::WalkerSpec;
use super::walks::{ALL_LEVELS, Block, Reads, Rest, TABLES};
use crate::ways::{Replacement, Ways};

/// Host page tables lie beyond the guest's memory.
pub(super) const HOST: u64 = 1 << 56;
/// The shadow table of agile paging lies between the guest's and the host's.
const SHADOW: u64 = 1 << 54;
/// The most entries of a nested TLB that is kept in rows.
const IN_ROWS: u32 = 8 * 16;
/// The first bit of a page's size in its tag.
const PAGE_BITS: u32 = 58;

/// The host's dimension of a walker.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    host: Radix,
    guest_levels: u8,
    tlb: Tlb,
    /// What is read but for the host's table; [`Reads::SLACK`] more stand behind.
    reads: Kept<Read>,
    /// The walks of the host's table in their order, how many of the reads come before each, and where it begins.
    walks: Kept<Walk>,
    behind: Vec<u32>,
    first: Vec<u8>,
}

/// The nested TLB: host pages by [`page_tag`], under LRU.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "each walker has one, and asks it for every entry of a guest's table"
)]
enum Tlb {
    Rows(Hashed<Rows<8>>),
    Recent(Recent<u64>),
    Listed(Ways<u64>),
}

impl Tlb {
    fn new(ways: u32) -> Self {
        match ways {
            1..=IN_ROWS => Self::Rows(Hashed(Ordered::new(ways))),
            _ if ways > IN_ROWS && ways <= recent::MOST => Self::Recent(Recent::new(ways)),
            _ => Self::Listed(Ways::new(ways, Replacement::Lru, 0)),
        }
    }

    /// Lets it translate as one of its forms.
    #[inline(always)]
    fn translate<S: Simd>(self, simd: S, walks: GuestWalks, listed: Listing) -> (Self, [usize; 2]) {
        match self {
            Self::Listed(mut tlb) => {
                let counts = walks.translate(simd, &mut tlb, listed);
                (Self::Listed(tlb), counts)
            }
            Self::Rows(mut tlb) => {
                let counts = walks.translate(simd, &mut tlb, listed);
                (Self::Rows(tlb), counts)
            }
            Self::Recent(mut tlb) => {
                let counts = walks.translate(simd, &mut tlb, listed);
                (Self::Recent(tlb), counts)
            }
        }
    }
}

/// A set of tags by 32 bits of their hash. Those of tables of one level less than 6 TiB apart differ; of 4 billion lookups of absent
/// pages of other levels about as many hit by mistake as there are entries.
#[derive(Clone, Copy, Debug)]
struct Hashed<O>(Ordered<O>);

impl<O: Order> TouchSet<u64> for Hashed<O> {
    #[inline(always)]
    fn touch<S: Simd>(&mut self, simd: S, tag: u64) -> bool {
        self.0.touch(simd, ((golden(tag) >> 32) as u32).max(1))
    }
}

/// Walks of the guest's table, where each begins, and data that is read between them.
pub(super) struct GuestWalks<'a, 'b> {
    pub(super) part: Block<'a>,
    pub(super) walks: &'a [Walk],
    pub(super) first: &'a [u8],
    pub(super) data: Option<&'a mut Rest<'b>>,
}

/// What becomes of them: walks of the host's table, and all other reads.
struct Listing<'a> {
    reads: Reads<'a>,
    walks: &'a mut [Walk],
    behind: &'a mut [u32],
    count: usize,
}

impl GuestWalks<'_, '_> {
    /// Lists what they read, and a walk of the host's table for each address that the nested TLB does not know. Returns how many of
    /// both; the list is a value, so that its counts stay in registers.
    #[inline(always)]
    fn translate<S: Simd>(self, simd: S, tlb: &mut impl TouchSet<u64>, mut listed: Listing) -> [usize; 2] {
        let Self {
            part,
            walks,
            first,
            mut data,
        } = self;
        for ((&walk, &first), miss) in walks.iter().zip(first).zip(part.misses) {
            if let Some(rest) = &mut data {
                listed.reads.data(rest.until(miss.place as usize));
            }
            let host = part.backings[usize::from(miss.class)].host.map(shift);
            for level in walk.levels(first) {
                let (tables, is_nested) = tables(level, miss.nested_from);
                let address = tables + walk.offset(level);
                if let Some(host) = host.filter(|_| is_nested) {
                    let is_known = tlb.touch(simd, page_tag(address, host));
                    listed.walk(Walk::new(address, host), !is_known);
                }
                listed.reads.push(Read::entry(address));
            }
            if let Some(host) = host.filter(|_| miss.nested_from > 0) {
                listed.walk(Walk::new(walk.address, host), true);
            }
        }
        [listed.reads.count, listed.count]
    }
}

impl Listing<'_> {
    /// Without a branch: what is not wanted is overwritten by the next one.
    #[inline(always)]
    fn walk(&mut self, walk: Walk, is_wanted: bool) {
        self.walks[self.count] = walk;
        self.behind[self.count] = self.reads.count as u32;
        self.count += usize::from(is_wanted);
    }
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
            reads: Kept::default(),
            walks: Kept::default(),
            behind: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Asks the nested TLB for the guest's tables, and finds where walks of the host's table begin for all others. Returns how
    /// many entries those read.
    pub(super) fn translate(&mut self, walks: GuestWalks) -> u64 {
        let count = walks.walks.len();
        let data = walks.data.as_ref().map_or(0, |rest| rest.left());
        let most_reads = data + count * usize::from(self.guest_levels) + Reads::SLACK;
        let most_walks = count * (usize::from(self.guest_levels) + 1) + 1;
        self.behind.resize(most_walks.max(self.behind.len()), 0);
        let Self {
            tlb,
            reads,
            walks: host_walks,
            behind,
            ..
        } = self;
        let filled = host_walks.refill(most_walks, Walk::new(0, 0), |host_walks| {
            let mut count = 0;
            reads.refill(most_reads, Read::entry(0), |room| {
                let listed = Listing {
                    reads: Reads { room, count: 0 },
                    walks: host_walks,
                    behind,
                    count: 0,
                };
                // By value, so that what of it fits stays in registers.
                let lent = std::mem::replace(tlb, Tlb::new(0));
                let count_of_reads;
                (*tlb, [count_of_reads, count]) =
                    dispatch!(fearless_simd::Level::new(), simd => lent.translate(simd, walks, listed));
                Ok::<_, Infallible>(count_of_reads + Reads::SLACK)
            })?;
            Ok::<_, Infallible>(count)
        });
        let Ok(()) = filled;
        self.host.first_levels(&self.walks, &mut self.first)
    }

    /// Lists what the walks read in both tables, and the data between them.
    pub(super) fn list(&self, reads: &mut Kept<Read>) {
        let most = self.reads.len() + self.walks.len() * usize::from(self.host.levels()) + Reads::SLACK;
        let filled = reads.refill(most, Read::entry(0), |room| {
            let (mut reads, mut listed) = (Reads { room, count: 0 }, 0);
            for ((&walk, &first), &behind) in self.walks.iter().zip(&self.first).zip(&self.behind) {
                reads.copy(&self.reads[listed..], behind as usize - listed);
                listed = behind as usize;
                reads.entries(HOST, walk, first);
            }
            reads.copy(&self.reads[listed..], self.reads.len() - Reads::SLACK - listed);
            Ok::<_, Infallible>(reads.count)
        });
        let Ok(()) = filled;
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
