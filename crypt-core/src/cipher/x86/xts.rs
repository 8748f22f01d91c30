//! XTS over whole blocks, for any vector: eight vectors in flight, tweaks by carry-less products.
//!
//! The tweaks of the first eight vectors of a unit come from its encrypted IV: each of the first
//! eight blocks by one product with its power of x, the others from the block eight before them,
//! which is a shift by one byte and the product of the byte that falls out. From one batch of eight
//! vectors to the next all tweaks move on together in the same way. The second whitening is merged
//! into the key of the last round.

use super::InOutBuf;
use super::aes::{BATCH, Keys, Way};
use super::schedule::RoundKeys;
use super::vector::{POWERS, Vector};
use crate::iv::Iv;

/// Processes one unit of `unit_len` bytes, a multiple of 16, per encrypted tweak.
#[inline(always)]
pub(super) fn xts<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &RoundKeys,
    tweaks: &[Iv],
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    assert_eq!(data.len(), tweaks.len() * unit_len);
    let keys = Keys::<V, ROUNDS>::new(isa, keys);
    let (mut src, mut dst) = data.into_raw();
    for tweak in tweaks {
        // SAFETY: `data` holds one unit per tweak; the pointers are at this tweak's unit, and source
        // and destination are the same or don't overlap.
        unsafe { unit::<V, W, ROUNDS>(isa, &keys, tweak, unit_len / 16, src, dst) };
        src = src.wrapping_add(unit_len);
        dst = dst.wrapping_add(unit_len);
    }
}

/// # Safety
/// `src` and `dst` are valid for `blocks` blocks, and are the same or don't overlap.
#[inline(always)]
unsafe fn unit<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &Keys<V, ROUNDS>,
    tweak: &Iv,
    blocks: usize,
    mut src: *const u8,
    mut dst: *mut u8,
) {
    let mut tweaks = first_tweaks::<V>(isa, tweak);
    let mut left = blocks;
    while left >= BATCH * V::BLOCKS {
        // SAFETY: `left` blocks are still in the buffers.
        unsafe { batch::<V, W, ROUNDS, BATCH>(isa, keys, &tweaks, src, dst) };
        left -= BATCH * V::BLOCKS;
        if left == 0 {
            return;
        }
        src = src.wrapping_add(BATCH * V::BYTES);
        dst = dst.wrapping_add(BATCH * V::BYTES);
        for tweak in &mut tweaks {
            *tweak = tweak.mul_x8_per_block();
        }
    }
    // SAFETY: `left` blocks are still in the buffers, fewer than a batch.
    unsafe { tail::<V, W, ROUNDS>(isa, keys, &tweaks, left, src, dst) };
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
    keys: &Keys<V, ROUNDS>,
    tweaks: &[V; N],
    src: *const u8,
    dst: *mut u8,
) {
    let mut states = *tweaks;
    for (index, state) in states.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `N` vectors at `src`.
        let block = unsafe { V::load(isa, src.wrapping_add(index * V::BYTES)) };
        *state = block.xor3(tweaks[index], keys.first());
    }
    keys.inner_rounds::<W, N>(&mut states);
    for (index, state) in states.into_iter().enumerate() {
        let last = W::last(state, keys.last().xor(tweaks[index]));
        // SAFETY: the caller vouches for `N` vectors at `dst`.
        unsafe { last.store(dst.wrapping_add(index * V::BYTES)) };
    }
}

/// What is left of a unit behind its last whole batch.
///
/// # Safety
/// `src` and `dst` are valid for `blocks` blocks, and are the same or don't overlap; `blocks` is
/// less than a batch.
#[inline(always)]
unsafe fn tail<V: Vector, W: Way, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &Keys<V, ROUNDS>,
    tweaks: &[V; BATCH],
    blocks: usize,
    mut src: *const u8,
    mut dst: *mut u8,
) {
    let mut left = blocks;
    let mut index = 0;
    while left >= V::BLOCKS {
        // SAFETY: `left` blocks are still in the buffers.
        unsafe { batch::<V, W, ROUNDS, 1>(isa, keys, &[tweaks[index]], src, dst) };
        left -= V::BLOCKS;
        index += 1;
        src = src.wrapping_add(V::BYTES);
        dst = dst.wrapping_add(V::BYTES);
    }
    if left > 0 {
        // SAFETY: `left` blocks are still in the source.
        let block = unsafe { V::load_partial(isa, src, left) };
        let mut states = [block.xor3(tweaks[index], keys.first())];
        keys.inner_rounds::<W, 1>(&mut states);
        let last = W::last(states[0], keys.last().xor(tweaks[index]));
        // SAFETY: `left` blocks are still in the destination.
        unsafe { last.store_partial(dst, left) };
    }
}
