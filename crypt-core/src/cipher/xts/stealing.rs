//! Data units of any length over an implementation that knows whole blocks only: ciphertext
//! stealing (IEEE 1619, 5.3.2 and 5.4.2), written once for every backend.

#![forbid(unsafe_code)]

use aes::cipher::inout::InOutBuf;

use super::gf128::{self, Tweak};
use crate::iv::{Iv, Ivs};

/// Most units whose tweaks are encrypted together; bounds the tweaks on the stack.
const GROUP_UNITS: usize = 32;

/// XTS over units that are whole blocks, with tweaks already encrypted.
pub(super) trait XtsBlocks: Send + Sync {
    /// Encrypts IVs to the tweaks of the first blocks of their units.
    fn encrypt_ivs(&self, ivs: &mut [Iv]);

    /// Encrypts one unit of `unit_len` bytes per tweak; `unit_len` is a multiple of 16.
    fn encrypt_blocks(&self, tweaks: &[Iv], unit_len: usize, data: InOutBuf<'_, '_, u8>);

    /// Decrypts one unit of `unit_len` bytes per tweak; `unit_len` is a multiple of 16.
    fn decrypt_blocks(&self, tweaks: &[Iv], unit_len: usize, data: InOutBuf<'_, '_, u8>);
}

/// Encrypts units of any length: the whole of [`crate::cipher::engine::Engine::encrypt_units`].
pub(super) fn encrypt_units<B: XtsBlocks>(
    blocks: &B,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    for_each_group(blocks, ivs, unit_len, data, |tweaks, group| {
        if unit_len.is_multiple_of(16) {
            return blocks.encrypt_blocks(tweaks, unit_len, group);
        }
        for_each_unit(tweaks, unit_len, group, |tweak, unit| {
            encrypt_stealing(blocks, tweak, unit);
        });
    });
}

/// Decrypts units of any length: the whole of [`crate::cipher::engine::Engine::decrypt_units`].
pub(super) fn decrypt_units<B: XtsBlocks>(
    blocks: &B,
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
) {
    for_each_group(blocks, ivs, unit_len, data, |tweaks, group| {
        if unit_len.is_multiple_of(16) {
            return blocks.decrypt_blocks(tweaks, unit_len, group);
        }
        for_each_unit(tweaks, unit_len, group, |tweak, unit| {
            decrypt_stealing(blocks, tweak, unit);
        });
    });
}

/// Calls `work` with the tweaks and the data of each group of units.
#[inline]
fn for_each_group<B: XtsBlocks>(
    blocks: &B,
    ivs: Ivs<'_>,
    unit_len: usize,
    mut data: InOutBuf<'_, '_, u8>,
    work: impl Fn(&[Iv], InOutBuf<'_, '_, u8>),
) {
    let mut tweaks: [Iv; GROUP_UNITS] = [[0; 16]; GROUP_UNITS];
    let mut done = 0;
    while done < ivs.len() {
        let tweaks = &mut tweaks[..GROUP_UNITS.min(ivs.len() - done)];
        ivs.fill(done, tweaks);
        blocks.encrypt_ivs(tweaks);
        let (group, rest) = data.split_at(tweaks.len() * unit_len);
        work(tweaks, group);
        done += tweaks.len();
        data = rest;
    }
}

fn for_each_unit(
    tweaks: &[Iv],
    unit_len: usize,
    mut data: InOutBuf<'_, '_, u8>,
    work: impl Fn(Iv, InOutBuf<'_, '_, u8>),
) {
    for tweak in tweaks {
        let (unit, rest) = data.split_at(unit_len);
        work(*tweak, unit);
        data = rest;
    }
}

/// Encrypts the whole blocks, then the last of them once more with the partial block's bytes in
/// front, giving up its own first bytes to the partial block.
fn encrypt_stealing<B: XtsBlocks>(blocks: &B, tweak: Iv, unit: InOutBuf<'_, '_, u8>) {
    let whole_len = unit.len() / 16 * 16;
    let (mut whole, mut partial) = unit.split_at(whole_len);
    blocks.encrypt_blocks(&[tweak], whole_len, whole.reborrow());
    let last_tweak = step(tweak, whole_len / 16);
    let last: &mut [u8] = &mut whole.get_out()[whole_len - 16..];
    let mut stolen = [0; 16];
    stolen.copy_from_slice(last);
    join(partial.get_in(), &stolen, last);
    blocks.encrypt_blocks(&[last_tweak], 16, last.into());
    let partial_len = partial.len();
    partial.get_out().copy_from_slice(&stolen[..partial_len]);
}

/// The reverse: the last whole block is decrypted first, with the tweak behind its own.
fn decrypt_stealing<B: XtsBlocks>(blocks: &B, tweak: Iv, unit: InOutBuf<'_, '_, u8>) {
    let head_len = unit.len() / 16 * 16 - 16;
    let (head, tail) = unit.split_at(head_len);
    let (mut last, mut partial) = tail.split_at(16);
    if head_len > 0 {
        blocks.decrypt_blocks(&[tweak], head_len, head);
    }
    let full_tweak = step(tweak, head_len / 16);
    let partial_tweak = step(full_tweak, 1);
    blocks.decrypt_blocks(&[partial_tweak], 16, last.reborrow());
    let last = last.get_out();
    let mut stolen = [0; 16];
    stolen.copy_from_slice(last);
    join(partial.get_in(), &stolen, last);
    blocks.decrypt_blocks(&[full_tweak], 16, last.into());
    let partial_len = partial.len();
    partial.get_out().copy_from_slice(&stolen[..partial_len]);
}

/// The tweak `count` blocks further on.
fn step(tweak: Iv, count: usize) -> Iv {
    gf128::mul_x_pow(Tweak::from_le_bytes(tweak), count).to_le_bytes()
}

/// The partial block, filled up with the end of the stolen one.
fn join(partial: &[u8], stolen: &Iv, block: &mut [u8]) {
    block[..partial.len()].copy_from_slice(partial);
    block[partial.len()..].copy_from_slice(&stolen[partial.len()..]);
}
