//! Which page sizes, in the guest and in the host, back which address.

use model::Bytes;

/// The page sizes of one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// The page of the operating system that runs the program.
    pub guest: Bytes,
    /// The page of the hypervisor below; none natively.
    pub host: Option<Bytes>,
}

impl Backing {
    /// Pages of one size, without a hypervisor.
    pub fn native(page: Bytes) -> Self {
        Self {
            guest: page,
            host: None,
        }
    }

    /// A guest's pages on a host's.
    pub fn nested(guest: Bytes, host: Bytes) -> Self {
        let host = Some(host);
        Self { guest, host }
    }

    /// What a TLB entry covers: the smaller of both pages (splintering).
    pub fn entry(self) -> Bytes {
        self.host.map_or(self.guest, |host| host.min(self.guest))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// The first one is everywhere.
    Everywhere,
    /// From each address on, that one.
    Ranges(Vec<(u64, u8)>),
    /// The first one behind so many of 65,536 ranges of its size, the second one behind the others: by chance.
    Share(u32),
}

/// All addresses with what backs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    backings: Vec<Backing>,
    place: Place,
}

/// Backings that one layout may mix.
pub const MOST_BACKINGS: usize = 8;

impl Layout {
    pub fn uniform(backing: Backing) -> Self {
        Self {
            backings: vec![backing],
            place: Place::Everywhere,
        }
    }

    /// One backing up to the first address, then others, each from an address on (a pool that ends; regions with their own
    /// pages). At most [`MOST_BACKINGS`] in all; the addresses rise, and no page lies across one.
    pub fn ranges(first: Backing, others: &[(u64, Backing)]) -> Self {
        let others = &others[..others.len().min(MOST_BACKINGS - 1)];
        let backings = std::iter::once(first).chain(others.iter().map(|&(_, backing)| backing));
        Self {
            backings: backings.collect(),
            place: Place::Ranges((1..).zip(others).map(|(class, &(from, _))| (from, class)).collect()),
        }
    }

    /// Huge pages behind a share of memory, decided by chance for each range of their size (THP in fragmented memory).
    pub fn share(large: Backing, small: Backing, share: f64) -> Self {
        Self {
            backings: vec![large, small],
            place: Place::Share((share.clamp(0.0, 1.0) * 65_536.0) as u32),
        }
    }

    pub fn backings(&self) -> &[Backing] {
        &self.backings
    }

    /// Is one backing behind everything?
    pub(crate) fn is_uniform(&self) -> bool {
        self.place == Place::Everywhere
    }

    /// The number of an address's backing.
    #[inline]
    pub(crate) fn class(&self, address: u64) -> u8 {
        match &self.place {
            Place::Everywhere => 0,
            Place::Ranges(ranges) => {
                let before = ranges.partition_point(|&(from, _)| from <= address);
                before.checked_sub(1).map_or(0, |last| ranges[last].1)
            }
            Place::Share(share) => {
                let range = address >> shift(self.backings[0].guest);
                let chance = crate::random::mixed(range) & 0xffff;
                u8::from(chance >= u64::from(*share))
            }
        }
    }
}

/// Address bits within a page.
pub(crate) fn shift(page: Bytes) -> u32 {
    page.0.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::{Backing, Layout};
    use model::Bytes;

    const BASE: Bytes = Bytes::kib(4);
    const LARGE: Bytes = Bytes::mib(2);

    #[test]
    fn an_entry_covers_the_smaller_page() {
        assert_eq!(Backing::nested(LARGE, BASE).entry(), BASE);
        assert_eq!(Backing::nested(LARGE, Bytes::gib(1)).entry(), LARGE);
        assert_eq!(Backing::native(LARGE).entry(), LARGE);
    }

    #[test]
    fn ranges_and_shares_are_where_they_should_be() {
        let (large, base) = (Backing::native(LARGE), Backing::native(BASE));
        let pool = Layout::ranges(large, &[(1 << 30, base)]);
        assert_eq!(
            [0, (1 << 30) - 1, 1 << 30, 1 << 40].map(|at| pool.class(at)),
            [0, 0, 1, 1]
        );
        for share in [0.0, 0.3, 1.0] {
            let layout = Layout::share(large, base, share);
            let large = (0..10_000_u64).filter(|range| layout.class(range << 21) == 0).count();
            assert!(
                (large as f64 / 10_000.0 - share).abs() < 0.02,
                "{large} of 10000, expected {share}"
            );
            assert_eq!(
                layout.class(5 << 21),
                layout.class((5 << 21) + 0x1f_ffff),
                "one range, one page"
            );
        }
    }
}
