//! AES over any vector: round keys spread over the lanes, and the rounds of several vectors in step.

use core::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};

use super::InOutBuf;
use super::schedule::RoundKeys;
use super::vector::Vector;

/// Vectors in flight: enough to hide the latency of an AES round on every CPU so far.
pub(super) const BATCH: usize = 8;

/// Encryption or decryption, decided at compile time.
pub(in crate::cipher) trait Way {
    /// Whether this is encryption.
    const ENCRYPTS: bool;

    /// One inner round.
    fn round<V: Vector>(state: V, key: V) -> V;

    /// The last round.
    fn last<V: Vector>(state: V, key: V) -> V;
}

/// Plaintext to ciphertext.
pub(in crate::cipher) struct Encrypt;

/// Ciphertext to plaintext, with the keys of the equivalent inverse cipher.
pub(in crate::cipher) struct Decrypt;

impl Way for Encrypt {
    const ENCRYPTS: bool = true;

    #[inline(always)]
    fn round<V: Vector>(state: V, key: V) -> V {
        state.encrypt_round(key)
    }

    #[inline(always)]
    fn last<V: Vector>(state: V, key: V) -> V {
        state.encrypt_last(key)
    }
}

impl Way for Decrypt {
    const ENCRYPTS: bool = false;

    #[inline(always)]
    fn round<V: Vector>(state: V, key: V) -> V {
        state.decrypt_round(key)
    }

    #[inline(always)]
    fn last<V: Vector>(state: V, key: V) -> V {
        state.decrypt_last(key)
    }
}

/// Round keys of `ROUNDS` rounds, loaded anew for each batch. The loads are volatile for two reasons:
/// no copy of a key may be spilled to the stack, and without all the keys at hand the compiler can't
/// undo the interleaving of the vectors in flight, which it does to save registers.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a, V: Vector, const ROUNDS: usize> {
    isa: V::Isa,
    keys: &'a RoundKeys,
}

impl<'a, V: Vector, const ROUNDS: usize> Keys<'a, V, ROUNDS> {
    #[inline(always)]
    pub(super) fn new(isa: V::Isa, keys: &'a RoundKeys) -> Self {
        Self { isa, keys }
    }

    /// What is added to a block before the first round.
    #[inline(always)]
    pub(super) fn first(&self) -> V {
        V::round_key(self.isa, &self.keys.0[0])
    }

    /// The key of the last round.
    #[inline(always)]
    pub(super) fn last(&self) -> V {
        V::round_key(self.isa, &self.keys.0[ROUNDS])
    }

    /// All rounds, on blocks to which the first key has been added.
    #[inline(always)]
    pub(super) fn all_rounds<W: Way, const N: usize>(&self, states: &mut [V; N]) {
        self.inner_rounds::<W, N>(states);
        let last = self.last();
        for state in states {
            *state = W::last(*state, last);
        }
    }

    /// All rounds but the last, in step so that each hides the latency of the others.
    #[inline(always)]
    pub(super) fn inner_rounds<W: Way, const N: usize>(&self, states: &mut [V; N]) {
        for round in 1..ROUNDS {
            let key = V::round_key(self.isa, &self.keys.0[round]);
            for state in states.iter_mut() {
                *state = W::round(*state, key);
            }
        }
    }
}

/// Every block for itself, without a mode. The length of `data` is a multiple of 16.
#[inline(always)]
pub(super) fn ecb<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &RoundKeys,
    data: InOutBuf<'_, '_, u8>,
) {
    let keys = Keys::<V, ROUNDS>::new(isa, keys);
    let mut left = data.len() / 16;
    let (mut src, mut dst) = data.into_raw();
    macro_rules! whole_batches {
        ($($vectors:expr),*) => {$(
            while left >= $vectors * V::BLOCKS {
                // SAFETY: `left` blocks are still in the buffers, which are the same or disjoint.
                unsafe { ecb_batch::<V, W, ROUNDS, { $vectors }>(isa, keys, src, dst) };
                left -= $vectors * V::BLOCKS;
                src = src.wrapping_add($vectors * V::BYTES);
                dst = dst.wrapping_add($vectors * V::BYTES);
            }
        )*};
    }
    whole_batches!(BATCH, 1);
    if left > 0 {
        // SAFETY: `left` blocks are still in the source.
        let mut states = [unsafe { V::load_partial(isa, src, left) }.xor(keys.first())];
        keys.all_rounds::<W, _>(&mut states);
        // SAFETY: `left` blocks are still in the destination.
        unsafe { states[0].store_partial(dst, left) };
    }
}

/// # Safety
/// `src` and `dst` are valid for `N` vectors, and are the same or don't overlap.
#[inline(always)]
unsafe fn ecb_batch<V: Vector, W: Way, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    src: *const u8,
    dst: *mut u8,
) {
    let first = keys.first();
    let mut states = [first; N];
    for (index, state) in states.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `src`.
        let block = unsafe { V::load(isa, src.wrapping_add(index * V::BYTES)) };
        *state = block.xor(first);
        prefetch::<V, N>(index, src, dst);
    }
    keys.all_rounds::<W, _>(&mut states);
    for (index, state) in states.into_iter().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `dst`.
        unsafe { state.store(dst.wrapping_add(index * V::BYTES)) };
    }
}

/// How far ahead of a batch its successors are fetched.
const PREFETCH_BYTES: usize = 1024;

/// Asks for the cache lines of vector `index` of a later batch, in source and destination. Where the
/// two together outgrow the second-level cache, this is worth a fifth. Batches of fewer than eight
/// vectors are the end of a unit and fetch nothing.
#[inline(always)]
pub(super) fn prefetch<V: Vector, const N: usize>(index: usize, src: *const u8, dst: *mut u8) {
    const LINE_BYTES: usize = 64;
    let offset = index * V::BYTES;
    if N < BATCH || !offset.is_multiple_of(LINE_BYTES) {
        return;
    }
    let later = offset + PREFETCH_BYTES;
    // SAFETY: fetching ahead touches no memory, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(src.wrapping_add(later).cast()) };
    // SAFETY: as above.
    unsafe { _mm_prefetch::<_MM_HINT_ET0>(dst.wrapping_add(later).cast()) };
}
