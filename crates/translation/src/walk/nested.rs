//! Walks in two dimensions: the host's table translates the addresses of the guest's tables, and of its pages.

use std::convert::Infallible;

use fearless_simd::Simd;

use crate::keep::Kept;
use crate::tlb::layout::{MOST_BACKINGS, shift};
use crate::tlb::touch::TouchSet;
use crate::tlb::uses::{self, Uses};
use crate::tlb::ways::{Replacement, Ways};
use crate::walk::caches::Read;
use crate::walk::radix::{Borrows, Lent, Radix, Walk, leaf};
use crate::walk::reads::{Block, Reads, Rest, TABLES};
use crate::walk::scatter::Given;
use crate::walk::spec::WalkerSpec;

/// Host page tables lie beyond the guest's memory.
pub(crate) const HOST: u64 = 1 << 56;
/// The first bit of a page's size in its tag.
const PAGE_BITS: u32 = 58;

/// The host's dimension of a walker.
#[derive(Clone, Debug)]
pub(crate) struct Nested {
    host: Radix,
    guest_levels: u8,
    tlb: Tlb,
    frames: Option<Given>,
}

/// The nested TLB: host pages by [`Page::tag`], under LRU.
#[derive(Clone, Debug)]
enum Tlb {
    Uses(Uses),
    Listed(Ways<u64>),
}

impl Tlb {
    fn new(ways: u32) -> Self {
        match ways {
            uses::FEWEST..=uses::MOST => Self::Uses(Uses::new(ways)),
            _ => Self::Listed(Ways::new(ways, Replacement::Lru, 0)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    bits: u32,
    leaf: u8,
}

impl Page {
    fn new(bits: u32) -> Self {
        Self { bits, leaf: leaf(bits) }
    }

    /// The number of an address's page, with its size: never 0.
    #[inline(always)]
    fn tag(self, address: u64) -> u64 {
        address >> self.bits | u64::from(self.bits) << PAGE_BITS
    }
}

/// Walks of the guest's table, where each begins, and data that is read between them.
pub(crate) struct GuestWalks<'a, 'b> {
    pub(crate) part: Block<'a>,
    pub(crate) walks: &'a [Walk],
    pub(crate) first: &'a [u8],
    pub(crate) data: Option<&'a mut Rest<'b>>,
}

/// How they are walked in the host's table, and where that lists what they read.
struct Translation<'a, 'b, T> {
    walks: GuestWalks<'a, 'b>,
    pages: [Option<Page>; MOST_BACKINGS],
    tlb: &'a mut T,
    frames: Option<&'a mut Given>,
    room: &'a mut [Read],
}

impl<N: TouchSet<u64>> Borrows for Translation<'_, '_, N> {
    type Result = Listed;

    /// All in one pass: whether the nested TLB knows a table decides what comes next, and is found out once.
    #[inline(always)]
    fn run<S: Simd, T: TouchSet>(self, simd: S, caches: Lent<T>) -> Listed {
        let Self {
            walks:
                GuestWalks {
                    part,
                    walks,
                    first,
                    mut data,
                },
            pages,
            tlb,
            mut frames,
            room,
        } = self;
        let reads = Reads { room, count: 0 };
        let mut host = Host {
            caches,
            reads,
            references: 0,
        };
        for ((&walk, &first), miss) in walks.iter().zip(first).zip(part.misses) {
            if let Some(rest) = &mut data {
                host.reads.data(rest.until(miss.place as usize));
            }
            let page = pages[usize::from(miss.class)];
            for level in walk.levels(first) {
                let address = TABLES + walk.offset(level);
                if let Some(page) = page
                    && !tlb.touch(simd, page.tag(address))
                {
                    host.walk(simd, address, page);
                }
                host.reads.push(Read::entry(address));
            }
            if let Some(page) = page {
                let address = match &mut frames {
                    Some(frames) if walk.leaf == 1 => frames.place(walk.address),
                    _ => walk.address,
                };
                host.walk(simd, address, page);
            }
        }
        Listed {
            reads: host.reads.count,
            host_references: host.references,
        }
    }
}

/// How many reads there are, and how many of them are of the host's table.
struct Listed {
    reads: usize,
    host_references: u64,
}

/// The host's table, and the reads so far.
struct Host<'a, T> {
    caches: Lent<'a, T>,
    reads: Reads<'a>,
    references: u64,
}

impl<T: TouchSet> Host<'_, T> {
    #[inline(always)]
    fn walk<S: Simd>(&mut self, simd: S, address: u64, Page { leaf, .. }: Page) {
        let walk = Walk { address, leaf };
        let first = self.caches.first_level(simd, walk);
        self.reads.known_entries(HOST, walk, first);
        self.references += walk.reads(first);
    }
}

impl Nested {
    pub(crate) fn new(spec: &WalkerSpec) -> Self {
        Self {
            host: Radix::new(spec.host_levels, spec.host_caches),
            guest_levels: spec.levels,
            tlb: Tlb::new(spec.nested_tlb),
            frames: spec.scatter.map(Given::new),
        }
    }

    /// Lists what walks of the guest's table read in both tables, and the data between them. The nested TLB is asked for the guest's
    /// tables, and what it does not know is walked in the host's table. Returns how many entries of that are read.
    pub(crate) fn list(&mut self, walks: GuestWalks, reads: &mut Kept<Read>) -> u64 {
        let data = walks.data.as_ref().map_or(0, |rest| rest.left());
        let (guest, host) = (usize::from(self.guest_levels), usize::from(self.host.levels()));
        let most = data + walks.walks.len() * (guest * (1 + host) + host) + Reads::SLACK;
        let mut pages = [None; MOST_BACKINGS];
        for (page, backing) in pages.iter_mut().zip(walks.part.backings) {
            *page = backing.host.map(|page| Page::new(shift(page)));
        }
        let mut host_references = 0;
        let frames = self.frames.as_mut();
        let filled = reads.refill(most, Read::entry(0), |room| {
            let listed = match &mut self.tlb {
                Tlb::Uses(tlb) => self.host.lend(Translation {
                    walks,
                    pages,
                    tlb,
                    frames,
                    room,
                }),
                Tlb::Listed(tlb) => self.host.lend(Translation {
                    walks,
                    pages,
                    tlb,
                    frames,
                    room,
                }),
            };
            host_references = listed.host_references;
            Ok::<_, Infallible>(listed.reads)
        });
        let Ok(()) = filled;
        host_references
    }
}
