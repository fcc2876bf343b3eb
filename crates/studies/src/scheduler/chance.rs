//! Chance without floating point: the same seed gives the same times on any machine.

use translation::random::{self, golden, mixed};

#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(random::Chance);

/// ln 2 with 32 bits behind the point.
const LN_2: u64 = 2_977_044_472;
/// Steps of the table of logarithms, as bits.
const BITS: u32 = 8;
/// log2(1 + i/256) with 32 bits behind the point.
const LOG_2: [u64; (1 << BITS) + 1] = logarithms();

const fn logarithms() -> [u64; (1 << BITS) + 1] {
    let mut table = [0; (1 << BITS) + 1];
    let mut place = 0;
    while place < 1 << BITS {
        let mut value = ((1 << BITS) + place as u128) << (62 - BITS);
        let (mut bits, mut log) = (0, 0);
        while bits < 32 {
            value = (value * value) >> 62;
            log <<= 1;
            if value >> 63 != 0 {
                value >>= 1;
                log |= 1;
            }
            bits += 1;
        }
        table[place] = log;
        place += 1;
    }
    table[1 << BITS] = 1 << 32;
    table
}

impl Chance {
    /// One of many independent generators of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let state = mixed(seed ^ mixed(golden(number) ^ 0x7363_6865_6475_6c65));
        Self(random::Chance::at(state))
    }

    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Is it one of so many in 65,536?
    #[inline]
    pub(super) fn is(&mut self, parts: u32) -> bool {
        parts > 0 && (self.bits() >> 48) < u64::from(parts)
    }

    /// A time with this mean, exponentially distributed; 0 only for a mean of 0.
    #[inline]
    pub(super) fn exponential(&mut self, mean: u64) -> u64 {
        if mean == 0 {
            return 0;
        }
        let bits = self.bits() | 1;
        let zeros = u64::from(bits.leading_zeros());
        let fraction = (bits << zeros) << 1;
        let place = (fraction >> (64 - BITS)) as usize;
        let between = (fraction << BITS) >> 32;
        let (low, high) = (LOG_2[place], LOG_2[place + 1]);
        let log = low + (((high - low) * between) >> 32);
        let halvings = ((zeros + 1) << 32) - log;
        let natural = (u128::from(halvings) * u128::from(LN_2)) >> 32;
        (((u128::from(mean) * natural) >> 32) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, LOG_2};

    #[test]
    fn times_are_exponential() {
        let (mut chance, mean, count) = (Chance::new(1, 0), 8_000_000, 200_000);
        let mut times: Vec<u64> = (0..count).map(|_| chance.exponential(mean)).collect();
        let average = times.iter().sum::<u64>() / count;
        assert!(average.abs_diff(mean) < mean / 100, "{average}");
        times.sort_unstable();
        for part in [0.5_f64, 0.9, 0.99] {
            let expected = -(1.0 - part).ln();
            let found = times[(part * count as f64) as usize] as f64 / mean as f64;
            assert!((found / expected - 1.0).abs() < 0.03, "{part}: {found}");
        }
    }

    #[test]
    fn logarithms_are_right_and_generators_differ() {
        for (place, log) in LOG_2.iter().enumerate() {
            let expected = (1.0 + place as f64 / 256.0).log2();
            assert!((*log as f64 / (1_u64 << 32) as f64 - expected).abs() < 1e-9, "{place}");
        }
        let first = |seed, number| Chance::new(seed, number).bits();
        assert!(first(1, 1) == first(1, 1) && first(1, 1) != first(1, 2) && first(1, 1) != first(2, 1));
        let mut chance = Chance::new(3, 3);
        let hits = (0..100_000).filter(|_| chance.is(16_384)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
    }
}
