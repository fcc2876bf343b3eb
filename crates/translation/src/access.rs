//! One access in one word: its address, and whether it loads, stores or fetches.

/// Addresses have this many bits: enough for 4 PiB of memory.
pub const ADDRESS_BITS: u32 = 52;

/// The bits of an access that are its address.
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// Which side of the first level an access uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Load,
    Store,
    Fetch,
}

impl Side {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Load, Self::Store, Self::Fetch];
}

/// An access: the address in the low bits, the side in the two highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access(u64);

/// The first bit of the side.
const SIDE: u32 = 62;

impl Access {
    pub const fn load(address: u64) -> Self {
        Self(address & ADDRESS)
    }

    pub const fn new(address: u64, side: Side) -> Self {
        Self(Self::load(address).0 | (side as u64) << SIDE)
    }

    /// The address of a word of a trace: a user address below 2^52, or a canonical kernel address, of which 48 bits are kept.
    pub fn canonical(word: u64) -> Option<u64> {
        const KERNEL: u64 = 0xffff_8000_0000_0000;
        match word {
            _ if word >> ADDRESS_BITS == 0 => Some(word),
            _ if word >= KERNEL => Some(word & ((1 << 48) - 1)),
            _ => None,
        }
    }

    pub const fn address(self) -> u64 {
        self.0 & ADDRESS
    }

    pub const fn side(self) -> Side {
        match self.0 >> SIDE {
            0 => Side::Load,
            1 => Side::Store,
            _ => Side::Fetch,
        }
    }

    /// The same word for accesses of one side to one page.
    pub(super) const fn page_and_side(self, shift: u32) -> u64 {
        self.0 >> shift
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Side};

    #[test]
    fn address_and_side_come_back() {
        for side in Side::ALL {
            let access = Access::new(0x7fff_1234_5678, side);
            assert_eq!((access.address(), access.side()), (0x7fff_1234_5678, side));
        }
    }

    #[test]
    fn kernel_addresses_are_taken_and_absurd_ones_are_not() {
        assert_eq!(Access::canonical(0xffff_8880_0000_1000), Some(0x8880_0000_1000));
        assert_eq!(Access::canonical(0x7fff_ffff_f000), Some(0x7fff_ffff_f000));
        assert_eq!(Access::canonical(0x4141_4141_4141_4141), None);
    }
}
