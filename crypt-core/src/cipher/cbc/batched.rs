//! Safe and fast: the multi-block interface of RustCrypto's `aes`, with many sectors encrypted in
//! step and many blocks of one sector decrypted at once.

#![forbid(unsafe_code)]

use aes::Block;
use aes::cipher::inout::InOutBuf;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16};

use crate::cipher::Backend;
use crate::cipher::engine::{Engine, keyed};
use crate::error::Result;
use crate::iv::{Iv, Ivs};

/// Sectors encrypted in step, and blocks decrypted at once: the widest that `aes` has.
const WIDTH: usize = 64;

/// CBC over the block cipher `C`, several blocks at a time.
pub(super) struct Batched<C> {
    cipher: C,
}

impl<C: KeyInit> Batched<C> {
    pub(super) fn new(key: &[u8]) -> Result<Self> {
        let cipher = keyed(key)?;
        Ok(Self { cipher })
    }
}

impl<C> Engine for Batched<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Send + Sync,
{
    const BACKEND: Backend = Backend::Batched;

    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, mut data: InOutBuf<'_, '_, u8>) {
        let mut done = 0;
        while done < ivs.len() {
            let mut chain: [Iv; WIDTH] = [[0; 16]; WIDTH];
            let chain = &mut chain[..WIDTH.min(ivs.len() - done)];
            ivs.fill(done, chain);
            let (group, rest) = data.split_at(chain.len() * unit_len);
            self.encrypt_in_step(chain, unit_len, group);
            done += chain.len();
            data = rest;
        }
    }

    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, mut data: InOutBuf<'_, '_, u8>) {
        for index in 0..ivs.len() {
            let mut iv = [[0; 16]];
            ivs.fill(index, &mut iv);
            let (unit, rest) = data.split_at(unit_len);
            self.decrypt_unit(iv[0], unit);
            data = rest;
        }
    }
}

impl<C> Batched<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>,
{
    /// Encrypts the first blocks of all units, then the second ones, and so on.
    fn encrypt_in_step(&self, chain: &mut [Iv], unit_len: usize, mut data: InOutBuf<'_, '_, u8>) {
        for offset in (0..unit_len).step_by(16) {
            let src = data.get_in()[offset..].chunks(unit_len);
            for (state, unit) in chain.iter_mut().zip(src) {
                xor(state, &unit[..16]);
            }
            let (states, _) = Block::slice_as_chunks_mut(chain.as_flattened_mut());
            self.cipher.encrypt_blocks(states);
            let dst = data.get_out()[offset..].chunks_mut(unit_len);
            for (state, unit) in chain.iter().zip(dst) {
                unit[..16].copy_from_slice(state);
            }
        }
    }

    fn decrypt_unit(&self, iv: Iv, mut unit: InOutBuf<'_, '_, u8>) {
        let mut before = iv;
        while !unit.is_empty() {
            let len = unit.len().min(16 * WIDTH);
            let (mut part, rest) = unit.split_at(len);
            let mut source: [Iv; WIDTH] = [[0; 16]; WIDTH];
            let source = &mut source[..len / 16];
            source.as_flattened_mut().copy_from_slice(part.get_in());
            let out = part.get_out();
            out.copy_from_slice(source.as_flattened());
            let (blocks, _) = Block::slice_as_chunks_mut(out);
            self.cipher.decrypt_blocks(blocks);
            for (block, ciphertext) in blocks.iter_mut().zip(source) {
                xor(&mut block.0, &before);
                before = *ciphertext;
            }
            unit = rest;
        }
    }
}

fn xor(block: &mut Iv, other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}
