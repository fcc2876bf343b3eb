//! The slow and obvious TLB that the fast one must equal: whole entries in lists, one access at a time.

use model::Bytes;
use proptest::prelude::*;

use crate::random::mixed;
use crate::{Access, Array, Backing, Replacement, Side};

/// One way: the page it holds, and when it was last used.
#[derive(Clone, Copy, Debug)]
struct Way {
    page: (Bytes, u64),
    used: i64,
}

/// One set with a list of ways; `None` is an empty way.
#[derive(Clone, Debug)]
struct Set {
    replacement: Replacement,
    ways: Vec<Option<Way>>,
    /// Which leaf pair was used last, as directions on the way down; or used bits.
    tree: Vec<bool>,
    used: Vec<bool>,
    random: u64,
}

impl Set {
    fn new(array: &Array, number: u32) -> Self {
        Self {
            replacement: array.replacement,
            ways: vec![None; array.ways as usize],
            tree: vec![false; array.ways.next_power_of_two() as usize],
            used: vec![false; array.ways as usize],
            random: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn access(&mut self, page: (Bytes, u64), now: i64) -> bool {
        let held = (0..self.ways.len()).find(|&way| self.ways[way].is_some_and(|held| held.page == page));
        let way = held.unwrap_or_else(|| self.victim());
        self.ways[way] = Some(Way { page, used: now });
        self.lean_away(way);
        self.used[way] = true;
        if self.used.iter().all(|&used| used) {
            self.used.fill(false);
            self.used[way] = true;
        }
        held.is_some()
    }

    fn victim(&mut self) -> usize {
        if let Some(empty) = self.ways.iter().position(Option::is_none) {
            return empty;
        }
        let oldest = |nth: usize| {
            let used = |(way, held): (usize, &Option<Way>)| (held.expect("full").used, way);
            let mut ways: Vec<(i64, usize)> = self.ways.iter().enumerate().map(used).collect();
            ways.sort_unstable();
            ways[nth].1
        };
        match self.replacement {
            Replacement::Lru => oldest(0),
            Replacement::NearLru => {
                let mut random = self.random;
                let nth = next_random(&mut random) as usize % self.ways.len().div_ceil(4);
                let way = oldest(nth);
                self.random = random;
                way
            }
            Replacement::Random => next_random(&mut self.random) as usize % self.ways.len(),
            Replacement::NotRecentlyUsed => self.used.iter().position(|used| !used).unwrap_or(0),
            Replacement::TreePlru => self.leaned_to(0, self.tree.len(), 1),
        }
    }

    /// The way that the tree over ways `from..from + count` leans to.
    fn leaned_to(&self, from: usize, count: usize, node: usize) -> usize {
        if count == 1 {
            return from;
        }
        let half = count / 2;
        if self.tree[node] && from + half < self.ways.len() {
            self.leaned_to(from + half, half, 2 * node + 1)
        } else {
            self.leaned_to(from, half, 2 * node)
        }
    }

    /// Every node above a way leans to the half without it.
    fn lean_away(&mut self, way: usize) {
        let (mut from, mut count, mut node) = (0, self.tree.len(), 1);
        while count > 1 {
            count /= 2;
            let is_right = way >= from + count;
            self.tree[node] = !is_right;
            from += if is_right { count } else { 0 };
            node = 2 * node + usize::from(is_right);
        }
    }
}

fn next_random(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// The slow model of [`crate::tlb::front::Front`].
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    arrays: Vec<(Array, Vec<Set>)>,
    backing: Backing,
    now: u64,
    /// Lookups and misses by level.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl Reference {
    pub(crate) fn new(arrays: &[Array], backing: Backing) -> Self {
        let levels = arrays.iter().map(|array| array.level).max().unwrap_or(0);
        let sets = |array: &Array| (0..array.sets).map(|number| Set::new(array, number)).collect();
        Self {
            arrays: arrays.iter().map(|array| (array.clone(), sets(array))).collect(),
            backing,
            now: 0,
            counts: vec![(0, 0); levels.into()],
        }
    }

    fn page(&self, address: u64) -> (Bytes, u64) {
        let guest = guest_page(self.backing, address);
        let size = self.backing.host.map_or(guest, |host| guest.min(host));
        (size, address / size.0)
    }

    /// Must it be walked?
    pub(crate) fn access(&mut self, access: Access) -> bool {
        self.now += 1;
        let (size, number) = self.page(access.address());
        for level in 1..=self.counts.len() {
            self.counts[level - 1].0 += 1;
            let found = self.arrays.iter_mut().find(|(array, _)| {
                usize::from(array.level) == level
                    && array.sides.contains(&access.side())
                    && array.holds.iter().any(|held| held.page == size)
            });
            let hit = found.is_some_and(|(array, sets)| {
                let held = array
                    .holds
                    .iter()
                    .find(|held| held.page == size)
                    .expect("it holds them");
                let set = if held.sets.is_power_of_two() {
                    held.hash.set(number, held.sets)
                } else {
                    (number % u64::from(held.sets)) as u32
                };
                sets[(held.first + set) as usize].access((size, number), self.now as i64)
            });
            if hit {
                return false;
            }
            self.counts[level - 1].1 += 1;
        }
        true
    }

    pub(crate) fn flush(&mut self) {
        self.drop_if(|_| true);
    }

    pub(crate) fn invalidate(&mut self, address: u64) {
        let gone = self.page(address);
        self.drop_if(|page| page == gone);
    }

    fn drop_if(&mut self, goes: impl Fn((Bytes, u64)) -> bool) {
        let sets = self.arrays.iter_mut().flat_map(|(_, sets)| sets);
        for way in sets.flat_map(|set| &mut set.ways) {
            if way.is_some_and(|held| goes(held.page)) {
                *way = None;
            }
        }
    }
}

/// The guest's page with an address.
pub(crate) fn guest_page(backing: Backing, address: u64) -> Bytes {
    let huge = Bytes::mib(2);
    match backing.share {
        Some(percent) if mixed(address / huge.0) % 100 < u64::from(percent) => huge,
        _ => backing.guest,
    }
}

/// Backings of all pairs of some page sizes, and base pages with a share of huge ones.
pub(crate) fn backings(sizes: [Bytes; 3]) -> impl Strategy<Value = Backing> {
    let host = prop::option::of(prop::sample::select(sizes.to_vec()));
    let pages = prop_oneof![
        prop::sample::select(sizes.to_vec()).prop_map(|guest| (guest, None)),
        (1..100_u8).prop_map(move |percent| (sizes[0], Some(percent))),
    ];
    (pages, host).prop_map(|((guest, share), host)| Backing { guest, host, share })
}

pub(crate) fn side(number: u8) -> Side {
    Side::ALL[usize::from(number % 3)]
}
