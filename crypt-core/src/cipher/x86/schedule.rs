//! AES round keys, expanded by the CPU's own instructions (Intel, "AES New Instructions Set" white
//! paper; FIPS 197, 5.2).

use core::arch::x86_64::{
    __m128i, _mm_aesimc_si128, _mm_aeskeygenassist_si128, _mm_loadu_si128, _mm_shuffle_epi32,
    _mm_slli_si128, _mm_storeu_si128, _mm_xor_si128,
};

use zeroize::Zeroize;

use super::InstructionSet;
use crate::iv::Iv;

/// Most round keys: AES-256 has 14 rounds.
pub(super) const MAX_ROUND_KEYS: usize = 15;

/// A round key once for each block of the largest vector, so that any vector loads it as it is.
pub(in crate::cipher) type RoundKey = [Iv; 4];

/// Round keys in the order of use; a cipher of fewer rounds leaves the last ones unused.
#[repr(C, align(64))]
pub(in crate::cipher) struct RoundKeys(pub(super) [RoundKey; MAX_ROUND_KEYS]);

/// The round keys of both directions. Wiped on drop.
pub(super) struct Schedule {
    pub(super) encrypt: RoundKeys,
    pub(super) decrypt: RoundKeys,
}

impl Schedule {
    /// Round keys yet to be expanded.
    pub(super) const ZERO: Self = Self {
        encrypt: RoundKeys([[[0; 16]; 4]; MAX_ROUND_KEYS]),
        decrypt: RoundKeys([[[0; 16]; 4]; MAX_ROUND_KEYS]),
    };

    /// Expands a key of 16 bytes for 10 rounds or 32 bytes for 14.
    ///
    /// # Panics
    /// For any other length or number of rounds: the factory has checked them.
    pub(super) fn expand<I: InstructionSet, const ROUNDS: usize>(&mut self, _proof: I, key: &[u8]) {
        let keys = &mut self.encrypt.0;
        match (key.len(), ROUNDS) {
            // SAFETY: every instruction set of this folder has the AES instructions.
            (16, 10) => unsafe { expand_128(key, keys) },
            // SAFETY: as above.
            (32, 14) => unsafe { expand_256(key, keys) },
            _ => unreachable!("a key of {} bytes for {ROUNDS} rounds", key.len()),
        }
        // SAFETY: as above.
        unsafe { invert(&self.encrypt.0[..=ROUNDS], &mut self.decrypt.0[..=ROUNDS]) };
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.encrypt.0.zeroize();
        self.decrypt.0.zeroize();
    }
}

/// AES-128: each round key follows from the one before.
#[target_feature(enable = "aes,sse2")]
fn expand_128(key: &[u8], keys: &mut [RoundKey; MAX_ROUND_KEYS]) {
    let mut last = load(&key[..16]);
    store(last, &mut keys[0]);
    macro_rules! rounds {
        ($($round:literal: $constant:literal)*) => {$(
            let word = _mm_aeskeygenassist_si128::<$constant>(last);
            last = mix(last, _mm_shuffle_epi32::<0xff>(word));
            store(last, &mut keys[$round]);
        )*};
    }
    rounds!(1: 0x01 2: 0x02 3: 0x04 4: 0x08 5: 0x10 6: 0x20 7: 0x40 8: 0x80 9: 0x1b 10: 0x36);
}

/// AES-256: each round key follows from the two before.
#[target_feature(enable = "aes,sse2")]
fn expand_256(key: &[u8], keys: &mut [RoundKey; MAX_ROUND_KEYS]) {
    let (mut even, mut odd) = (load(&key[..16]), load(&key[16..32]));
    store(even, &mut keys[0]);
    store(odd, &mut keys[1]);
    macro_rules! even_round {
        ($round:literal: $constant:literal) => {
            let word = _mm_aeskeygenassist_si128::<$constant>(odd);
            even = mix(even, _mm_shuffle_epi32::<0xff>(word));
            store(even, &mut keys[$round]);
        };
    }
    macro_rules! two_rounds {
        ($($round:literal: $constant:literal)*) => {$(
            even_round!($round: $constant);
            let word = _mm_aeskeygenassist_si128::<0>(even);
            odd = mix(odd, _mm_shuffle_epi32::<0xaa>(word));
            store(odd, &mut keys[$round + 1]);
        )*};
    }
    two_rounds!(2: 0x01 4: 0x02 6: 0x04 8: 0x08 10: 0x10 12: 0x20);
    even_round!(14: 0x40);
}

/// The equivalent inverse cipher's keys: in reverse, the inner ones through InvMixColumns.
#[target_feature(enable = "aes,sse2")]
fn invert(encrypt: &[RoundKey], decrypt: &mut [RoundKey]) {
    let last = encrypt.len() - 1;
    for (index, (key, out)) in encrypt.iter().rev().zip(decrypt).enumerate() {
        let key = load(&key[0]);
        let inner = index != 0 && index != last;
        store(if inner { _mm_aesimc_si128(key) } else { key }, out);
    }
}

/// Adds to each word the words before it, and `word` to all.
#[target_feature(enable = "sse2")]
fn mix(key: __m128i, word: __m128i) -> __m128i {
    let pairs = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    let all = _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs));
    _mm_xor_si128(all, word)
}

#[target_feature(enable = "sse2")]
fn load(bytes: &[u8]) -> __m128i {
    let block = &bytes[..16];
    // SAFETY: 16 bytes are there, and the load takes any address.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[target_feature(enable = "sse2")]
fn store(value: __m128i, out: &mut RoundKey) {
    for block in out {
        // SAFETY: 16 bytes are there, and the store takes any address.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) };
    }
}
