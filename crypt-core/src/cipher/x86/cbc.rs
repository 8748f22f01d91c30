//! CBC for any vector. Blocks of one unit are decrypted eight vectors at a time. Units are encrypted
//! in step, each lane of up to eight vectors holding the chain of its own unit.

use super::InOutBuf;
use super::aes::{BATCH, Decrypt, Encrypt, Keys, Way};
use super::ivs;
use super::schedule::RoundKeys;
use super::vector::Vector;
use crate::iv::Ivs;

/// Most bytes of units that are encrypted in step. Blocks at the same place in units of 4096 bytes
/// fall into one set of the first-level cache, which has room for 8 or 12 lines; more chains than that
/// evict each other's lines before these are done with, which halves the throughput.
const MOST_BYTES_IN_STEP: usize = 32 << 10;

/// Encrypts one unit of `unit_len` bytes, a multiple of 16, per IV.
#[inline(always)]
pub(super) fn encrypt<V: Vector, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &RoundKeys,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    check(&ivs, unit_len, &data);
    let keys = Keys::<V, ROUNDS>::new(isa, keys);
    let (src, dst) = data.into_raw();
    let most = (BATCH * V::BLOCKS).min((MOST_BYTES_IN_STEP / unit_len.max(1)).max(4));
    let mut done = 0;
    while done < ivs.len() {
        let left = ivs.len() - done;
        let units = Units {
            count: left.min(most),
            unit_len,
            src: src.wrapping_add(done * unit_len),
            dst: dst.wrapping_add(done * unit_len),
        };
        // SAFETY: `data` holds these units, in source and destination, the same or disjoint.
        unsafe { encrypt_group::<V, ROUNDS>(isa, keys, &ivs, done, &units) };
        done += units.count;
    }
}

/// Units to encrypt in step.
struct Units {
    count: usize,
    unit_len: usize,
    src: *const u8,
    dst: *mut u8,
}

impl Units {
    /// Where block `block` of unit `index` is. Behind the last unit it is that one again: its lanes do
    /// the same work twice and store the same result.
    #[inline(always)]
    fn offset(&self, index: usize, block: usize) -> usize {
        index.min(self.count - 1) * self.unit_len + 16 * block
    }
}

/// # Safety
/// The pointers of `units` are valid for all of them, and are the same or don't overlap.
#[inline(always)]
unsafe fn encrypt_group<V: Vector, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    ivs: &Ivs<'_>,
    from: usize,
    units: &Units,
) {
    macro_rules! in_step {
        ($vectors:expr) => {{
            let chains = ivs::vectors::<V, { $vectors }>(isa, ivs, from);
            // SAFETY: the caller vouches for the units.
            unsafe { encrypt_in_step::<V, ROUNDS, { $vectors }>(isa, keys, chains, units) }
        }};
    }
    match units.count.div_ceil(V::BLOCKS) {
        1 => in_step!(1),
        2 => in_step!(2),
        3 | 4 => in_step!(4),
        _ => in_step!(BATCH),
    }
}

/// # Safety
/// The pointers of `units` are valid for all of them, and are the same or don't overlap.
#[inline(always)]
unsafe fn encrypt_in_step<V: Vector, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    mut chains: [V; N],
    units: &Units,
) {
    for block in 0..units.unit_len / 16 {
        let first = keys.first();
        for (index, chain) in chains.iter_mut().enumerate() {
            let lane = |lane| {
                units
                    .src
                    .wrapping_add(units.offset(V::BLOCKS * index + lane, block))
            };
            // SAFETY: the caller vouches for every block of the units.
            let plaintext = unsafe { V::gather(isa, lane) };
            *chain = plaintext.xor3(*chain, first);
        }
        keys.all_rounds::<Encrypt, N>(&mut chains);
        for (index, chain) in chains.iter().enumerate() {
            let lane = |lane| {
                units
                    .dst
                    .wrapping_add(units.offset(V::BLOCKS * index + lane, block))
            };
            // SAFETY: the caller vouches for every block of the units.
            unsafe { chain.scatter(lane) };
        }
    }
}

/// Decrypts one unit of `unit_len` bytes, a multiple of 16, per IV.
#[inline(always)]
pub(super) fn decrypt<V: Vector, const ROUNDS: usize>(
    isa: V::Isa,
    keys: &RoundKeys,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    check(&ivs, unit_len, &data);
    let keys = Keys::<V, ROUNDS>::new(isa, keys);
    let (mut src, mut dst) = data.into_raw();
    for index in 0..ivs.len() {
        let [iv] = ivs::vectors::<V, 1>(isa, &ivs, index);
        let iv = V::splat(isa, &iv.first_block());
        // SAFETY: `data` holds one unit per IV; the pointers are at this IV's unit, the same or
        // disjoint.
        unsafe { decrypt_unit::<V, ROUNDS>(isa, keys, iv, unit_len / 16, src, dst) };
        src = src.wrapping_add(unit_len);
        dst = dst.wrapping_add(unit_len);
    }
}

/// `before` holds in its last lane what the first block is chained to.
///
/// # Safety
/// `src` and `dst` are valid for `blocks` blocks, and are the same or don't overlap.
#[inline(always)]
unsafe fn decrypt_unit<V: Vector, const ROUNDS: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    mut before: V,
    blocks: usize,
    mut src: *const u8,
    mut dst: *mut u8,
) {
    let mut left = blocks;
    macro_rules! whole_batches {
        ($($vectors:expr),*) => {$(
            while left >= $vectors * V::BLOCKS {
                // SAFETY: `left` blocks are still in the buffers.
                before = unsafe {
                    decrypt_batch::<V, ROUNDS, { $vectors }>(isa, keys, before, src, dst)
                };
                left -= $vectors * V::BLOCKS;
                src = src.wrapping_add($vectors * V::BYTES);
                dst = dst.wrapping_add($vectors * V::BYTES);
            }
        )*};
    }
    whole_batches!(BATCH, 1);
    if left > 0 {
        // SAFETY: `left` blocks are still in the source.
        let block = unsafe { V::load_partial(isa, src, left) };
        let mut states = [block.xor(keys.first())];
        keys.inner_rounds::<Decrypt, 1>(&mut states);
        let out = Decrypt::last(states[0], keys.last().xor(block.behind(before)));
        // SAFETY: as many blocks are still in the destination.
        unsafe { out.store_partial(dst, left) };
    }
}

/// Returns the last vector of ciphertext.
///
/// # Safety
/// `src` and `dst` are valid for `N` vectors, and are the same or don't overlap.
#[inline(always)]
unsafe fn decrypt_batch<V: Vector, const ROUNDS: usize, const N: usize>(
    isa: V::Isa,
    keys: Keys<'_, V, ROUNDS>,
    mut before: V,
    src: *const u8,
    dst: *mut u8,
) -> V {
    let first = keys.first();
    let mut states = [before; N];
    let mut chains = [before; N];
    for index in 0..N {
        // SAFETY: the caller vouches for `N` vectors at `src`.
        let block = unsafe { V::load(isa, src.wrapping_add(index * V::BYTES)) };
        states[index] = block.xor(first);
        chains[index] = block.behind(before);
        before = block;
    }
    keys.inner_rounds::<Decrypt, N>(&mut states);
    let last = keys.last();
    for index in 0..N {
        let out = Decrypt::last(states[index], last.xor(chains[index]));
        // SAFETY: the caller vouches for `N` vectors at `dst`.
        unsafe { out.store(dst.wrapping_add(index * V::BYTES)) };
    }
    before
}

#[inline(always)]
fn check(ivs: &Ivs<'_>, unit_len: usize, data: &InOutBuf<'_, '_, u8>) {
    assert!(unit_len.is_multiple_of(16) && Some(data.len()) == ivs.len().checked_mul(unit_len));
}
