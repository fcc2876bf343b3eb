//! The slow and obvious TLB that the fast one must equal: whole entries in lists, one access at a time.

use model::Bytes;
use proptest::prelude::*;

use crate::random::mixed;
use crate::setting::{Mode, Setting};
use crate::{Access, Array, Side};

/// One way: the page it holds, and when it was last used.
#[derive(Clone, Copy, Debug)]
struct Way {
    page: (Bytes, u64),
    used: u64,
}

/// One set with a list of ways; `None` is an empty way.
#[derive(Clone, Debug)]
struct Set(Vec<Option<Way>>);

impl Set {
    fn access(&mut self, page: (Bytes, u64), now: u64) -> bool {
        let held = self.0.iter().position(|way| way.is_some_and(|held| held.page == page));
        // An empty one, or the one used longest ago.
        let oldest = || (0..self.0.len()).min_by_key(|&way| self.0[way].map(|held| held.used));
        if let Some(way) = held.or_else(oldest) {
            self.0[way] = Some(Way { page, used: now });
        }
        held.is_some()
    }
}

/// The slow model of [`crate::tlb::front::Front`].
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    arrays: Vec<(Array, Vec<Set>)>,
    setting: Setting,
    now: u64,
    /// Lookups and misses by level.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl Reference {
    pub(crate) fn new(arrays: &[Array], setting: Setting) -> Self {
        let levels = arrays.iter().map(|array| array.level).max().unwrap_or(0);
        let sets = |array: &Array| vec![Set(vec![None; array.ways as usize]); array.sets as usize];
        Self {
            arrays: arrays.iter().map(|array| (array.clone(), sets(array))).collect(),
            setting,
            now: 0,
            counts: vec![(0, 0); levels.into()],
        }
    }

    fn page(&self, address: u64) -> (Bytes, u64) {
        let guest = guest_page(self.setting, address);
        let size = self.setting.host_page.map_or(guest, |host| guest.min(host));
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
                let set = (number % u64::from(held.sets)) as u32;
                sets[(held.first + set) as usize].access((size, number), self.now)
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
        for way in sets.flat_map(|set| &mut set.0) {
            if way.is_some_and(|held| goes(held.page)) {
                *way = None;
            }
        }
    }
}

/// The guest's page with an address.
pub(crate) fn guest_page(setting: Setting, address: u64) -> Bytes {
    let huge = Bytes::mib(2);
    match setting.share {
        Some(percent) if mixed(address / huge.0) % 100 < u64::from(percent) => huge,
        _ => setting.guest_page,
    }
}

/// Settings of all pairs of some page sizes, and base pages with a share of huge ones.
pub(crate) fn settings(sizes: [Bytes; 3]) -> impl Strategy<Value = Setting> {
    let host = prop::option::of(prop::sample::select(sizes.to_vec()));
    let pages = prop_oneof![
        prop::sample::select(sizes.to_vec()).prop_map(|guest| (guest, None)),
        (1..100_u8).prop_map(move |percent| (sizes[0], Some(percent))),
    ];
    (pages, host).prop_map(|((guest_page, share), host_page)| Setting {
        mode: Mode::Native,
        guest_page,
        host_page,
        share,
    })
}

pub(crate) fn side(number: u8) -> Side {
    Side::ALL[usize::from(number % 3)]
}
