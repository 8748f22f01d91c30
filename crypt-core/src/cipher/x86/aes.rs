//! AES over any vector: round keys spread over the lanes, and the rounds of several vectors in step.

use super::InOutBuf;
use super::schedule::{MAX_ROUND_KEYS, RoundKeys};
use super::vector::Vector;

/// Vectors in flight: enough to hide the latency of an AES round on every CPU so far.
pub(super) const BATCH: usize = 8;

/// Encryption or decryption, decided at compile time.
pub(in crate::cipher) trait Way {
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
    #[inline(always)]
    fn round<V: Vector>(state: V, key: V) -> V {
        state.decrypt_round(key)
    }

    #[inline(always)]
    fn last<V: Vector>(state: V, key: V) -> V {
        state.decrypt_last(key)
    }
}

/// Round keys of `ROUNDS` rounds in every lane.
#[derive(Clone, Copy)]
pub(super) struct Keys<V, const ROUNDS: usize>([V; MAX_ROUND_KEYS]);

impl<V: Vector, const ROUNDS: usize> Keys<V, ROUNDS> {
    #[inline(always)]
    pub(super) fn new(isa: V::Isa, keys: &RoundKeys) -> Self {
        let mut spread = [V::splat(isa, &keys.0[0]); MAX_ROUND_KEYS];
        for (lanes, key) in spread.iter_mut().zip(&keys.0).take(ROUNDS + 1).skip(1) {
            *lanes = V::splat(isa, key);
        }
        Self(spread)
    }

    /// What is added to a block before the first round.
    #[inline(always)]
    pub(super) fn first(&self) -> V {
        self.0[0]
    }

    /// The key of the last round.
    #[inline(always)]
    pub(super) fn last(&self) -> V {
        self.0[ROUNDS]
    }

    /// All rounds but the last, in step so that each hides the latency of the others.
    #[inline(always)]
    pub(super) fn inner_rounds<W: Way, const N: usize>(&self, states: &mut [V; N]) {
        for round in 1..ROUNDS {
            for state in states.iter_mut() {
                *state = W::round(*state, self.0[round]);
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
                unsafe { ecb_batch::<V, W, ROUNDS, { $vectors }>(isa, &keys, src, dst) };
                left -= $vectors * V::BLOCKS;
                src = src.wrapping_add($vectors * V::BYTES);
                dst = dst.wrapping_add($vectors * V::BYTES);
            }
        )*};
    }
    whole_batches!(BATCH, 4, 2, 1);
    if left > 0 {
        // SAFETY: `left` blocks are still in the source.
        let state = unsafe { V::load_partial(isa, src, left) };
        let mut states = [state.xor(keys.first())];
        keys.inner_rounds::<W, 1>(&mut states);
        // SAFETY: `left` blocks are still in the destination.
        unsafe { W::last(states[0], keys.last()).store_partial(dst, left) };
    }
}

/// # Safety
/// `src` and `dst` are valid for `N` vectors, and are the same or don't overlap.
#[inline(always)]
unsafe fn ecb_batch<V: Vector, W: Way, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: &Keys<V, ROUNDS>,
    src: *const u8,
    dst: *mut u8,
) {
    let mut states = [keys.first(); N];
    for (index, state) in states.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `src`.
        let block = unsafe { V::load(isa, src.wrapping_add(index * V::BYTES)) };
        *state = block.xor(keys.first());
    }
    keys.inner_rounds::<W, N>(&mut states);
    for (index, state) in states.into_iter().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `dst`.
        unsafe { W::last(state, keys.last()).store(dst.wrapping_add(index * V::BYTES)) };
    }
}
