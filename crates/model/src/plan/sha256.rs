//! SHA-256 (FIPS 180-4): a plan names the file that it changes by this checksum, so that it need not hold the file.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const K: [u32; 64] = roots(3);
/// Those of the square roots of the first 8.
const START: [u32; 8] = roots(2);

/// Roots of the first primes, as the standard defines its constants; 36 bits hold the largest of them with its fraction.
const fn roots<const COUNT: usize>(power: u32) -> [u32; COUNT] {
    let (mut all, mut found, mut prime) = ([0; COUNT], 0, 2_u128);
    while found < COUNT {
        let (mut root, mut bit) = (0_u128, 1 << 36);
        while bit > 0 {
            if (root | bit).pow(power) <= prime << (32 * power) {
                root |= bit;
            }
            bit >>= 1;
        }
        all[found] = root as u32;
        (found, prime) = (found + 1, next_prime(prime));
    }
    all
}

const fn next_prime(after: u128) -> u128 {
    let (mut number, mut divisor) = (after + 1, 2);
    while divisor < number {
        (number, divisor) = match number.is_multiple_of(divisor) {
            true => (number + 1, 2),
            false => (number, divisor + 1),
        };
    }
    number
}

/// The checksum in hex, as sha256sum(1) prints it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    padded.chunks_exact(64).for_each(|block| add(&mut state, block));
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn add(state: &mut [u32; 8], block: &[u8]) {
    let mut w = [0_u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for t in 16..64 {
        let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ (w[t - 15] >> 3);
        let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ (w[t - 2] >> 10);
        w[t] = [w[t - 16], s0, w[t - 7], s1].into_iter().fold(0, u32::wrapping_add);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in w.iter().zip(K) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = [h, s1, choice, constant, *word].into_iter().fold(0, u32::wrapping_add);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
    }
    for (sum, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn the_standard_s_own_examples_come_out() {
        for (text, sum) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(sha256(text.as_bytes()), sum, "{text}");
        }
    }
}
