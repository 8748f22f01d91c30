//! A keyed block cipher over any number of blocks, on any backend: what ESSIV encrypts IVs with, and
//! what the limit of a backend is measured with.

#![forbid(unsafe_code)]

use aes::cipher::inout::InOutBuf;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, consts::U16};
use aes::{Aes128, Aes256};

use super::Backend;
use super::engine::keyed;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::error::{Error, ErrorKind, Result};

/// AES blocks without a mode.
pub(super) trait Blocks: Send + Sync {
    /// Encrypts each block by itself. The length of `data` is a multiple of 16.
    fn encrypt(&self, data: InOutBuf<'_, '_, u8>);

    /// Decrypts each block by itself. The length of `data` is a multiple of 16.
    fn decrypt(&self, data: InOutBuf<'_, '_, u8>);
}

/// Keys AES-128 (16 bytes) or AES-256 (32 bytes). `portable` and `batched` are the same here.
///
/// # Errors
/// [`ErrorKind::Key`] for any other key length.
pub(super) fn keyed_blocks(key: &[u8], backend: Backend) -> Result<Box<dyn Blocks>> {
    match (backend, key.len()) {
        (_, len) if len != 16 && len != 32 => Err(Error::new(
            ErrorKind::Key,
            format!(
                "AES takes a key of 128 or 256 bits here: this one has {} bits",
                8 * len
            ),
        )),
        (Backend::Portable | Backend::Batched, 16) => Ok(Box::new(Library::<Aes128>(keyed(key)?))),
        (Backend::Portable | Backend::Batched, _) => Ok(Box::new(Library::<Aes256>(keyed(key)?))),
        #[cfg(target_arch = "x86_64")]
        (Backend::AesNi, _) => kernel_blocks::<x86::AesNi>(key),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes256, _) => kernel_blocks::<x86::Vaes256>(key),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes512, _) => kernel_blocks::<x86::Vaes512>(key),
    }
}

#[cfg(target_arch = "x86_64")]
fn kernel_blocks<I: x86::InstructionSet>(key: &[u8]) -> Result<Box<dyn Blocks>> {
    use x86::{AES_128, AES_256, AesKernel};
    let isa = I::new().ok_or_else(|| I::BACKEND.unavailable())?;
    Ok(match key.len() {
        16 => Box::new(AesKernel::<I, AES_128>::new(isa, key)?),
        _ => Box::new(AesKernel::<I, AES_256>::new(isa, key)?),
    })
}

struct Library<C>(C);

impl<C> Blocks for Library<C>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Send + Sync,
{
    fn encrypt(&self, data: InOutBuf<'_, '_, u8>) {
        let (blocks, _) = data.into_chunks();
        self.0.encrypt_blocks_inout(blocks);
    }

    fn decrypt(&self, data: InOutBuf<'_, '_, u8>) {
        let (blocks, _) = data.into_chunks();
        self.0.decrypt_blocks_inout(blocks);
    }
}
