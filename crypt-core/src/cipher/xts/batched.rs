//! Safe and fast: drives the multi-block interface of RustCrypto's `aes` with tiles of blocks.
//!
//! The work runs inside the closures that `aes` calls with its chosen instruction set enabled, so
//! the tweak arithmetic around it is vectorised with the same instructions. The tweaks of a whole
//! group of sectors are encrypted in one call, and a tile may span several sectors. There is no
//! architecture-specific code here; on aarch64 `aes` uses the crypto extensions, untested so far.

#![forbid(unsafe_code)]

use aes::Block;
use aes::cipher::inout::InOutBuf;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend,
    BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
};

use super::gf128::{self, Tweak};
use super::stealing::{self, XtsBlocks};
use crate::cipher::Backend;
use crate::cipher::engine::{Engine, keyed};
use crate::error::Result;
use crate::iv::{Iv, Ivs};

/// Blocks in one tile: 1 KiB of data and 1 KiB of tweaks, well inside the first-level cache, and a
/// multiple of every parallel width that `aes` has (8, 32, 64).
const TILE_BLOCKS: usize = 64;

/// XTS over the block cipher `C`, several blocks at a time.
pub(super) struct Batched<C> {
    data: C,
    tweak: C,
}

impl<C: KeyInit> Batched<C> {
    pub(super) fn new(data_key: &[u8], tweak_key: &[u8]) -> Result<Self> {
        Ok(Self {
            data: keyed(data_key)?,
            tweak: keyed(tweak_key)?,
        })
    }
}

impl<C> XtsBlocks for Batched<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Send + Sync,
{
    fn encrypt_ivs(&self, ivs: &mut [Iv]) {
        self.tweak.encrypt_blocks(as_blocks(ivs));
    }

    fn encrypt_blocks(&self, tweaks: &[Iv], unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let run = TweakRun::new(tweaks, unit_len);
        self.data.encrypt_with_backend(Tiles { run, data });
    }

    fn decrypt_blocks(&self, tweaks: &[Iv], unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let run = TweakRun::new(tweaks, unit_len);
        self.data.decrypt_with_backend(Tiles { run, data });
    }
}

impl<C> Engine for Batched<C>
where
    Self: XtsBlocks,
{
    const BACKEND: Backend = Backend::Batched;

    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        stealing::encrypt_units(self, ivs, unit_len, data);
    }

    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        stealing::decrypt_units(self, ivs, unit_len, data);
    }
}

/// Tile-wise XTS over a run of units; the closure that `aes` calls with its backend.
struct Tiles<'a, 'inp, 'out> {
    run: TweakRun<'a>,
    data: InOutBuf<'inp, 'out, u8>,
}

impl BlockSizeUser for Tiles<'_, '_, '_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Tiles<'_, '_, '_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        self.for_each_tile(|blocks| {
            let (chunks, tail) = InOutBuf::from(blocks).into_chunks::<B::ParBlocksSize>();
            for chunk in chunks {
                backend.encrypt_par_blocks(chunk);
            }
            if B::ParBlocksSize::USIZE > 1 {
                backend.encrypt_tail_blocks(tail);
            }
        });
    }
}

impl BlockCipherDecClosure for Tiles<'_, '_, '_> {
    #[inline(always)]
    fn call<B: BlockCipherDecBackend<BlockSize = U16>>(self, backend: &B) {
        self.for_each_tile(|blocks| {
            let (chunks, tail) = InOutBuf::from(blocks).into_chunks::<B::ParBlocksSize>();
            for chunk in chunks {
                backend.decrypt_par_blocks(chunk);
            }
            if B::ParBlocksSize::USIZE > 1 {
                backend.decrypt_tail_blocks(tail);
            }
        });
    }
}

impl Tiles<'_, '_, '_> {
    /// Whitens each tile, has `crypt` encrypt or decrypt its blocks, and whitens it again.
    #[inline(always)]
    fn for_each_tile(self, crypt: impl Fn(&mut [Block])) {
        let Self { mut run, mut data } = self;
        let mut tweaks = [[0; 16]; TILE_BLOCKS];
        let mut tile = [Block::default(); TILE_BLOCKS];
        while !data.is_empty() {
            let len = data.len().min(16 * TILE_BLOCKS);
            let (mut part, rest) = data.split_at(len);
            let tweaks = &mut tweaks[..len / 16];
            let tile = &mut tile[..len / 16];
            run.next_tweaks(tweaks);
            whiten(part.get_in(), tweaks, tile);
            crypt(tile);
            unwhiten(tile, tweaks, part.get_out());
            data = rest;
        }
    }
}

#[inline(always)]
fn whiten(src: &[u8], tweaks: &[Iv], tile: &mut [Block]) {
    let (src, _) = src.as_chunks::<16>();
    for ((out, block), tweak) in tile.iter_mut().zip(src).zip(tweaks) {
        let value = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*tweak);
        out.0 = value.to_ne_bytes();
    }
}

#[inline(always)]
fn unwhiten(tile: &[Block], tweaks: &[Iv], dst: &mut [u8]) {
    let (dst, _) = dst.as_chunks_mut::<16>();
    for ((out, block), tweak) in dst.iter_mut().zip(tile).zip(tweaks) {
        let value = u128::from_ne_bytes(block.0) ^ u128::from_ne_bytes(*tweak);
        *out = value.to_ne_bytes();
    }
}

/// The tweaks of all blocks of a run of units, in order.
struct TweakRun<'a> {
    starts: std::slice::Iter<'a, Iv>,
    unit_blocks: usize,
    next: Tweak,
    left_in_unit: usize,
}

impl<'a> TweakRun<'a> {
    fn new(starts: &'a [Iv], unit_len: usize) -> Self {
        Self {
            starts: starts.iter(),
            unit_blocks: unit_len / 16,
            next: 0,
            left_in_unit: 0,
        }
    }

    /// Fills `tweaks`, across the ends of units.
    #[inline(always)]
    fn next_tweaks(&mut self, mut tweaks: &mut [Iv]) {
        while !tweaks.is_empty() {
            if self.left_in_unit == 0 {
                let Some(start) = self.starts.next() else {
                    return;
                };
                self.next = Tweak::from_le_bytes(*start);
                self.left_in_unit = self.unit_blocks;
            }
            let count = tweaks.len().min(self.left_in_unit);
            let (now, later) = tweaks.split_at_mut(count);
            gf128::expand(self.next, now);
            self.next = gf128::mul_x_pow(self.next, count);
            self.left_in_unit -= count;
            tweaks = later;
        }
    }
}

fn as_blocks(bytes: &mut [Iv]) -> &mut [Block] {
    let (blocks, _) = Block::slice_as_chunks_mut(bytes.as_flattened_mut());
    blocks
}
