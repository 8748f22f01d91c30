//! The tweak sequence of one data unit: multiplication by powers of x in GF(2^128) with the
//! polynomial x^128 + x^7 + x^2 + x + 1, in XTS's little-endian bit order (IEEE 1619, 5.2).
//!
//! All of it runs in constant time. [`expand`] is written so that a compiler turns it into vector
//! code: eight tweaks move ahead together by x^8, which is a shift by one byte and a small product.

#![forbid(unsafe_code)]

/// A tweak as a number: byte 0 is the least significant.
pub(in crate::cipher) type Tweak = u128;

/// Tweaks that move ahead together.
const LANES: usize = 8;

/// `tweak * x`.
#[inline(always)]
pub(in crate::cipher) const fn mul_x(tweak: Tweak) -> Tweak {
    let carry = tweak >> 127;
    (tweak << 1) ^ (0x87 & carry.wrapping_neg())
}

/// `tweak * x^count`, for the tweak behind a run of `count` blocks.
#[inline]
pub(super) fn mul_x_pow(mut tweak: Tweak, mut count: usize) -> Tweak {
    /// The widest step whose overflow, reduced, still fits in 64 bits.
    const STEP: usize = 56;
    while count > 0 {
        let step = count.min(STEP);
        let overflow = (tweak >> (128 - step)) as u64;
        tweak = (tweak << step) ^ Tweak::from(reduce(overflow));
        count -= step;
    }
    tweak
}

/// Writes the tweaks `start`, `start * x`, ... to `out`.
#[inline(always)]
pub(super) fn expand(start: Tweak, out: &mut [[u8; 16]]) {
    let (mut low, mut high) = first_lanes(start);
    let mut groups = out.chunks_exact_mut(LANES);
    for group in &mut groups {
        store(&low, &high, group);
        advance(&mut low, &mut high);
    }
    store(&low, &high, groups.into_remainder());
}

#[inline(always)]
fn first_lanes(start: Tweak) -> ([u64; LANES], [u64; LANES]) {
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    let mut tweak = start;
    for lane in 0..LANES {
        low[lane] = tweak as u64;
        high[lane] = (tweak >> 64) as u64;
        tweak = mul_x(tweak);
    }
    (low, high)
}

#[inline(always)]
fn store(low: &[u64; LANES], high: &[u64; LANES], out: &mut [[u8; 16]]) {
    for (lane, tweak) in out.iter_mut().enumerate() {
        tweak[..8].copy_from_slice(&low[lane].to_le_bytes());
        tweak[8..].copy_from_slice(&high[lane].to_le_bytes());
    }
}

/// Multiplies every lane by x^8.
#[inline(always)]
fn advance(low: &mut [u64; LANES], high: &mut [u64; LANES]) {
    for lane in 0..LANES {
        let overflow = high[lane] >> 56;
        high[lane] = (high[lane] << 8) | (low[lane] >> 56);
        low[lane] = (low[lane] << 8) ^ reduce(overflow);
    }
}

/// `overflow * (x^7 + x^2 + x + 1)`, for an overflow of at most 57 bits.
#[inline(always)]
const fn reduce(overflow: u64) -> u64 {
    overflow ^ (overflow << 1) ^ (overflow << 2) ^ (overflow << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One bit at a time, as the standard writes it.
    fn slow_mul_x(tweak: [u8; 16]) -> [u8; 16] {
        let mut product = [0; 16];
        let mut carry = 0;
        for (byte, out) in tweak.iter().zip(&mut product) {
            *out = (byte << 1) | carry;
            carry = byte >> 7;
        }
        if carry == 1 {
            product[0] ^= 0x87;
        }
        product
    }

    proptest! {
        #[test]
        fn expands_to_the_standard_sequence(start: u128, len in 0_usize..300) {
            let mut tweaks = vec![[0; 16]; len];
            expand(start, &mut tweaks);
            let mut expected = start.to_le_bytes();
            for (index, tweak) in tweaks.iter().enumerate() {
                prop_assert_eq!(tweak, &expected);
                prop_assert_eq!(mul_x_pow(start, index).to_le_bytes(), expected);
                prop_assert_eq!(mul_x(Tweak::from_le_bytes(expected)).to_le_bytes(), slow_mul_x(expected));
                expected = slow_mul_x(expected);
            }
        }
    }
}
