//! Chance that is the same on every machine: a fixed generator, a fixed mixing function, and permutations without a table.

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Chance(u64);

/// 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    /// A generator with its seed.
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed ^ 0x6875_6765_7769_7365))
    }

    /// A generator in a state; the states of two that are to be independent are made with [`mixed`].
    pub fn at(state: u64) -> Self {
        Self(state)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// A number below `most`, without the bias of a remainder that matters here (below 2^-20 for `most` up to 2^44).
    #[inline]
    pub fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(most)) >> 64) as u64
    }

    /// A number from 0 to 1, without 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// All bits of the result depend on all bits of the argument; one to one.
#[inline]
pub fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A hash in the upper bits: numbers that follow each other lie as far apart as so many can. The upper halves for any two of them
/// that are less than 1,700 million apart differ.
#[inline]
pub fn golden(word: u64) -> u64 {
    word.wrapping_mul(STEP)
}

/// A fixed order of the numbers below `count` that looks random and needs no memory.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    count: u64,
    mask: u64,
    bits: u32,
    key: u64,
}

impl Permutation {
    /// The order of so many numbers that a seed gives.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = (64 - count.saturating_sub(1).leading_zeros()).max(2);
        Self {
            count: count.max(1),
            mask: u64::MAX >> (64 - bits),
            bits,
            key: mixed(seed ^ STEP),
        }
    }

    /// The number at a place below the count.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        let mut number = place;
        loop {
            number = self.step(number);
            if number < self.count {
                return number;
            }
        }
    }

    /// One to one below the next power of two: every step is.
    #[inline]
    fn step(&self, number: u64) -> u64 {
        let half = self.bits / 2;
        let mut number = (number ^ self.key) & self.mask;
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, STEP] {
            number = number.wrapping_mul(factor) & self.mask;
            number ^= number >> half.max(1);
        }
        (number.wrapping_add(self.key >> 32)) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Permutation, golden};

    #[test]
    fn upper_halves_of_the_hash_differ_for_numbers_less_than_1700_million_apart() {
        let far = |apart: u64| golden(apart).min(golden(apart).wrapping_neg()) >> 32 > 0;
        // The multiples of the golden ratio that come closest to whole numbers are those by Fibonacci's.
        let (mut one, mut next) = (1, 2);
        while one < 1_700_000_000 {
            assert!(far(one), "{one}");
            (one, next) = (next, one + next);
        }
        let mut chance = Chance::new(1);
        assert!((0..1_000_000).all(|_| far(1 + chance.below(1_700_000_000))));
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        for count in [1, 2, 3, 7, 64, 1000, 4097] {
            let order = Permutation::new(count, 7);
            let mut seen: Vec<u64> = (0..count).map(|place| order.at(place)).collect();
            assert!(
                count < 64 || seen.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < 5,
                "{count}: it is in order"
            );
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn chance_is_even_and_the_same_for_one_seed() {
        let mut chance = Chance::new(1);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[chance.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(Chance::new(5).bits(), Chance::new(5).bits());
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.unit())));
    }
}
