//! The oracle: RustCrypto's `xts-mode` over `aes`, one block after the other.
//!
//! Round keys are wiped on drop by `aes` itself.

#![forbid(unsafe_code)]

use aes::cipher::inout::InOutBuf;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16};
use xts_mode::Xts128;

use crate::cipher::Backend;
use crate::cipher::engine::{Engine, keyed};
use crate::error::Result;
use crate::iv::Ivs;

/// XTS over the block cipher `C`.
pub(super) struct Portable<C> {
    xts: Xts128<C>,
}

impl<C> Portable<C>
where
    C: KeyInit + BlockSizeUser<BlockSize = U16>,
{
    pub(super) fn new(data_key: &[u8], tweak_key: &[u8]) -> Result<Self> {
        let xts = Xts128::new(keyed::<C>(data_key)?, keyed::<C>(tweak_key)?);
        Ok(Self { xts })
    }
}

impl<C> Engine for Portable<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Send + Sync,
{
    const BACKEND: Backend = Backend::Portable;

    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let units = data.into_out_with_copied_in().chunks_exact_mut(unit_len);
        for (index, unit) in units.enumerate() {
            let mut iv = [[0; 16]];
            ivs.fill(index, &mut iv);
            self.xts.encrypt_sector(unit, iv[0].into());
        }
    }

    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        let units = data.into_out_with_copied_in().chunks_exact_mut(unit_len);
        for (index, unit) in units.enumerate() {
            let mut iv = [[0; 16]];
            ivs.fill(index, &mut iv);
            self.xts.decrypt_sector(unit, iv[0].into());
        }
    }
}
