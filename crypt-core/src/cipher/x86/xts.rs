//! XTS for any vector: eight vectors in flight, tweaks by carry-less products.
//!
//! IVs are made in registers and encrypted for up to eight vectors of data units at once. Nothing of
//! that waits for memory written a moment before, so the CPU starts on it while it is still busy
//! with the units, or the request, before.
//!
//! The tweaks of the first eight vectors of a unit come from its encrypted IV: each of the first
//! eight blocks by one product with its power of x, the others from the block eight before them,
//! which is a shift by one byte and the product of the byte that falls out. From one batch of eight
//! vectors to the next all tweaks move on together in the same way. The second whitening is merged
//! into the key of the last round.

use super::aes::{BATCH, Encrypt, Keys, Way, prefetch};
use super::vector::{POWERS, Vector};
use super::{InOutBuf, XtsKeys, ivs};
use crate::cipher::xts::gf128::{Tweak, mul_x};
use crate::iv::{Iv, Ivs};

/// One block per lane of eight vectors, of the largest ones: encrypted IVs of one group of units, or the
/// tweaks of one batch.
#[repr(C, align(64))]
struct Tweaks([Iv; 4 * BATCH]);

/// Processes one unit of `unit_len` bytes, at least 16, per IV.
#[inline(always)]
pub(super) fn xts<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: XtsKeys<'_>,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    assert!(unit_len >= 16 && Some(data.len()) == ivs.len().checked_mul(unit_len));
    let tweak_keys = Keys::<V, ROUNDS>::new(isa, keys.tweak);
    let data_keys = Keys::<V, ROUNDS>::new(isa, keys.data);
    let (mut src, mut dst) = data.into_raw();
    let mut tweaks = Tweaks([[0; 16]; 4 * BATCH]);
    let mut done = 0;
    while done < ivs.len() {
        let count = (ivs.len() - done).min(BATCH * V::BLOCKS);
        encrypt_ivs(isa, tweak_keys, &ivs, done, count, &mut tweaks);
        for tweak in &tweaks.0[..count] {
            // SAFETY: `data` holds one unit per IV; the pointers are at this IV's unit, and source
            // and destination are the same or don't overlap.
            unsafe { unit::<V, W, ROUNDS>(isa, data_keys, tweak, unit_len, src, dst) };
            src = src.wrapping_add(unit_len);
            dst = dst.wrapping_add(unit_len);
        }
        done += count;
    }
}

/// Encrypts `count` IVs from IV `from` on, at most eight vectors of them.
#[inline(always)]
fn encrypt_ivs<V: Vector, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    ivs: &Ivs<'_>,
    from: usize,
    count: usize,
    tweaks: &mut Tweaks,
) {
    if count <= V::BLOCKS {
        encrypt_iv_vectors::<V, ROUNDS, 1>(isa, keys, ivs, from, tweaks);
    } else if count <= 2 * V::BLOCKS {
        encrypt_iv_vectors::<V, ROUNDS, 2>(isa, keys, ivs, from, tweaks);
    } else if count <= 4 * V::BLOCKS {
        encrypt_iv_vectors::<V, ROUNDS, 4>(isa, keys, ivs, from, tweaks);
    } else {
        encrypt_iv_vectors::<V, ROUNDS, BATCH>(isa, keys, ivs, from, tweaks);
    }
}

/// Encrypts `N` vectors of IVs from IV `from` on.
#[inline(always)]
fn encrypt_iv_vectors<V: Vector, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    ivs: &Ivs<'_>,
    from: usize,
    tweaks: &mut Tweaks,
) {
    let mut states = ivs::vectors::<V, N>(isa, ivs, from);
    for state in &mut states {
        *state = state.xor(keys.first());
    }
    keys.all_rounds::<Encrypt, N>(&mut states);
    for (state, lanes) in states.iter().zip(tweaks.0.chunks_exact_mut(V::BLOCKS)) {
        // SAFETY: the chunk has as many blocks as the vector.
        unsafe { state.store(lanes.as_mut_ptr().cast()) };
    }
}

/// # Safety
/// `src` and `dst` are valid for `len` bytes, at least 16, and are the same or don't overlap.
#[inline(always)]
unsafe fn unit<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    tweak: &Iv,
    len: usize,
    mut src: *const u8,
    mut dst: *mut u8,
) {
    let mut tweaks = first_tweaks::<V>(isa, tweak);
    let mut left = len / 16;
    while left > BATCH * V::BLOCKS {
        // SAFETY: `left` blocks are still in the buffers.
        unsafe { batch::<V, W, ROUNDS, BATCH>(isa, keys, &tweaks, src, dst) };
        left -= BATCH * V::BLOCKS;
        src = src.wrapping_add(BATCH * V::BYTES);
        dst = dst.wrapping_add(BATCH * V::BYTES);
        for tweak in &mut tweaks {
            *tweak = tweak.mul_x8_per_block();
        }
    }
    let ending = match len % 16 {
        0 => None,
        // SAFETY: `left` blocks, one or more, and the partial one are still in the source.
        partial_len => Some(unsafe { Ending::read(&tweaks, left, partial_len, src) }),
    };
    // SAFETY: `left` blocks are still in the buffers, at most a batch.
    unsafe { tail::<V, W, ROUNDS>(isa, keys, tweaks, left, src, dst) };
    if let Some(ending) = ending {
        let dst = dst.wrapping_add(16 * (left - 1));
        // SAFETY: the last whole block and the partial one are at `dst`.
        unsafe { ending.steal::<V, W, ROUNDS>(isa, keys, dst) };
    }
}

/// The tweaks of the first batch of a unit.
#[inline(always)]
fn first_tweaks<V: Vector>(isa: V::Isa, tweak: &Iv) -> [V; BATCH] {
    let first = V::splat(isa, tweak);
    let mut tweaks = [first; BATCH];
    let by_power = 8 / V::BLOCKS;
    for index in 0..BATCH {
        tweaks[index] = if index < by_power {
            first.mul_power(POWERS.of::<V>(isa, index))
        } else {
            tweaks[index - by_power].mul_x8()
        };
    }
    tweaks
}

/// # Safety
/// `src` and `dst` are valid for `N` vectors, and are the same or don't overlap.
#[inline(always)]
unsafe fn batch<V: Vector, W: Way, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    tweaks: &[V; N],
    src: *const u8,
    dst: *mut u8,
) {
    let first = keys.first();
    let mut states = *tweaks;
    for (index, state) in states.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `src`.
        let block = unsafe { V::load(isa, src.wrapping_add(index * V::BYTES)) };
        *state = block.xor3(tweaks[index], first);
        prefetch::<V, N>(index, src, dst);
    }
    keys.inner_rounds::<W, N>(&mut states);
    let last = keys.last();
    for (index, state) in states.into_iter().enumerate() {
        let out = W::last(state, last.xor(tweaks[index]));
        // SAFETY: the caller vouches for `N` vectors at `dst`.
        unsafe { out.store(dst.wrapping_add(index * V::BYTES)) };
    }
}

/// The last batch of a unit, full or not.
///
/// # Safety
/// `src` and `dst` are valid for `blocks` blocks, and are the same or don't overlap; `blocks` is at
/// most a batch.
#[inline(always)]
unsafe fn tail<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    mut tweaks: [V; BATCH],
    blocks: usize,
    mut src: *const u8,
    mut dst: *mut u8,
) {
    let mut left = blocks;
    macro_rules! batch_of {
        ($vectors:expr) => {
            if left >= $vectors * V::BLOCKS {
                let mut now = [tweaks[0]; $vectors];
                now.copy_from_slice(&tweaks[..$vectors]);
                // SAFETY: `left` blocks are still in the buffers.
                unsafe { batch::<V, W, ROUNDS, { $vectors }>(isa, keys, &now, src, dst) };
                left -= $vectors * V::BLOCKS;
                if left == 0 {
                    return;
                }
                tweaks.copy_within($vectors.., 0);
                src = src.wrapping_add($vectors * V::BYTES);
                dst = dst.wrapping_add($vectors * V::BYTES);
            }
        };
    }
    batch_of!(BATCH);
    batch_of!(4);
    batch_of!(2);
    batch_of!(1);
    // SAFETY: `left` blocks, fewer than a vector, are still in the source.
    let block = unsafe { V::load_partial(isa, src, left) };
    let out = one::<V, W, ROUNDS>(keys, block, tweaks[0]);
    // SAFETY: as many blocks are still in the destination.
    unsafe { out.store_partial(dst, left) };
}

/// One vector by itself.
#[inline(always)]
fn one<V: Vector, W: Way, const ROUNDS: usize>(keys: Keys<'_, V, ROUNDS>, block: V, tweak: V) -> V {
    let mut states = [block.xor3(tweak, keys.first())];
    keys.inner_rounds::<W, 1>(&mut states);
    W::last(states[0], keys.last().xor(tweak))
}

/// The end of a unit that is not a multiple of 16 bytes, for ciphertext stealing (IEEE 1619, 5.3.2 and
/// 5.4.2): the last whole block lends its end to the partial block behind it.
///
/// All of it is read before the last batch is written, because source and destination may be the
/// same. Numbers take the place of copies of a few bytes, which would stall the loads behind them.
struct Ending {
    /// The last whole block of the source.
    whole: Iv,
    /// The partial block of the source, filled up with zeros.
    partial: u128,
    partial_len: usize,
    /// Of the last whole block and of the partial one. Decryption uses them in the other order.
    tweaks: [Iv; 2],
}

impl Ending {
    /// # Safety
    /// `src` is valid for `blocks` blocks, one to a batch, and the partial one.
    #[inline(always)]
    unsafe fn read<V: Vector>(
        tweaks: &[V; BATCH],
        blocks: usize,
        partial_len: usize,
        src: *const u8,
    ) -> Self {
        let src = src.wrapping_add(16 * (blocks - 1));
        // SAFETY: the caller vouches for a whole block.
        let whole = unsafe { src.cast::<Iv>().read_unaligned() };
        let end = src.wrapping_add(partial_len).cast::<Iv>();
        // SAFETY: the end of the whole block and the partial one are 16 bytes.
        let end = u128::from_le_bytes(unsafe { end.read_unaligned() });
        Self {
            whole,
            partial: end >> (128 - 8 * partial_len),
            partial_len,
            tweaks: two_tweaks(tweaks, blocks - 1),
        }
    }

    /// Writes the last whole block and the partial one. Encryption takes from `dst` what the last
    /// whole block has become by then.
    ///
    /// # Safety
    /// `dst` is valid for a whole block and the partial one.
    #[inline(always)]
    unsafe fn steal<V: Vector, W: Way, const ROUNDS: usize>(
        self,
        isa: V::Isa,
        keys: Keys<'_, V, ROUNDS>,
        dst: *mut u8,
    ) {
        let [tweak, next] = &self.tweaks;
        let (lent, joined_tweak) = if W::ENCRYPTS {
            // SAFETY: the caller vouches for a whole block.
            (unsafe { dst.cast::<Iv>().read_unaligned() }, next)
        } else {
            (
                by_itself::<V, W, ROUNDS>(isa, keys, &self.whole, next),
                tweak,
            )
        };
        let lent = u128::from_le_bytes(lent);
        let partial_bits = 8 * self.partial_len;
        let joined = self.partial | (lent >> partial_bits << partial_bits);
        let out = by_itself::<V, W, ROUNDS>(isa, keys, &joined.to_le_bytes(), joined_tweak);
        let end = dst.wrapping_add(self.partial_len).cast::<Iv>();
        let lent_to_end = (lent << (128 - partial_bits)).to_le_bytes();
        // SAFETY: the end of the whole block and the partial one are 16 bytes.
        unsafe { end.write_unaligned(lent_to_end) };
        // SAFETY: the caller vouches for a whole block.
        unsafe { dst.cast::<Iv>().write_unaligned(out) };
    }
}

/// One block by itself.
#[inline(always)]
fn by_itself<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    block: &Iv,
    tweak: &Iv,
) -> Iv {
    let (block, tweak) = (V::splat(isa, block), V::splat(isa, tweak));
    one::<V, W, ROUNDS>(keys, block, tweak).first_block()
}

/// The tweaks of block `block` of a batch and of the block behind it.
#[inline(always)]
fn two_tweaks<V: Vector>(tweaks: &[V; BATCH], block: usize) -> [Iv; 2] {
    let mut blocks = Tweaks([[0; 16]; 4 * BATCH]);
    for (tweak, lanes) in tweaks.iter().zip(blocks.0.chunks_exact_mut(V::BLOCKS)) {
        // SAFETY: the chunk has as many blocks as the vector.
        unsafe { tweak.store(lanes.as_mut_ptr().cast()) };
    }
    let tweak = blocks.0[block];
    [tweak, mul_x(Tweak::from_le_bytes(tweak)).to_le_bytes()]
}
