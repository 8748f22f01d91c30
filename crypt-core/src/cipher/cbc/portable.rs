//! The oracle: RustCrypto's `cbc` over `aes`, one sector after the other.

#![forbid(unsafe_code)]

use aes::cipher::inout::InOutBuf;
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser,
    InnerIvInit, KeyInit, consts::U16,
};
use cbc::{Decryptor, Encryptor};

use crate::cipher::Backend;
use crate::cipher::engine::{Engine, keyed};
use crate::error::Result;
use crate::iv::{Iv, Ivs};

/// CBC over the block cipher `C`.
pub(super) struct Portable<C> {
    cipher: C,
}

impl<C: KeyInit> Portable<C> {
    pub(super) fn new(key: &[u8]) -> Result<Self> {
        let cipher = keyed(key)?;
        Ok(Self { cipher })
    }
}

impl<C> Engine for Portable<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Send + Sync,
{
    const BACKEND: Backend = Backend::Portable;

    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        for_each_unit(ivs, unit_len, data, |iv, unit| {
            let (blocks, _) = unit.into_chunks();
            Encryptor::inner_iv_init(&self.cipher, &iv.into()).encrypt_blocks_inout(blocks);
        });
    }

    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        for_each_unit(ivs, unit_len, data, |iv, unit| {
            let (blocks, _) = unit.into_chunks();
            Decryptor::inner_iv_init(&self.cipher, &iv.into()).decrypt_blocks_inout(blocks);
        });
    }
}

fn for_each_unit(
    ivs: Ivs<'_>,
    unit_len: usize,
    mut data: InOutBuf<'_, '_, u8>,
    work: impl Fn(Iv, InOutBuf<'_, '_, u8>),
) {
    for index in 0..ivs.len() {
        let mut iv = [[0; 16]];
        ivs.fill(index, &mut iv);
        let (unit, rest) = data.split_at(unit_len);
        work(iv[0], unit);
        data = rest;
    }
}
