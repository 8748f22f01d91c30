//! AES-XTS (IEEE 1619, NIST SP 800-38E): over the crypto sectors of a volume, and over single data
//! units of any length for callers with their own numbering.
//!
//! Data units have 16 bytes to 16 MiB. Ciphertext stealing covers those that are not a multiple of
//! 16 bytes.

#![forbid(unsafe_code)]

mod batched;
pub(super) mod gf128;
mod portable;
mod stealing;

use std::fmt;

use aes::cipher::inout::InOutBuf;
use aes::{Aes128, Aes256};

use super::Backend;
use super::engine::{Engine, EngineVisitor};
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::error::{Error, ErrorKind, Result};
use crate::iv::{Iv, Ivs};
use crate::key::Key;

use batched::Batched;
use portable::Portable;

/// Shortest data unit, one block.
pub const MIN_UNIT_BYTES: usize = 16;

/// Longest data unit: 2^20 blocks (SP 800-38E).
pub const MAX_UNIT_BYTES: usize = 16 << 20;

/// AES-XTS over single data units, each with an IV of the caller's own.
///
/// Volumes don't need it: they use [`crate::spec::CipherSpec::build`]. Equal key halves are accepted.
pub struct Xts {
    units: Box<dyn Units>,
}

impl Xts {
    /// Keys AES-128 (a key of 32 bytes) or AES-256 (64 bytes); the data key comes first. The backend
    /// is chosen as in [`crate::spec::CipherSpec::build`].
    ///
    /// # Errors
    /// [`ErrorKind::Key`] for any other key length, and as [`Backend::choose`].
    pub fn new(key: &Key, backend: Option<Backend>) -> Result<Self> {
        struct AnyLength;
        impl EngineVisitor for AnyLength {
            type Output = Box<dyn Units>;
            fn visit(self, engine: impl Engine + 'static) -> Self::Output {
                Box::new(engine)
            }
        }
        let units = with_engine(key, Backend::choose(backend)?, AnyLength)?;
        Ok(Self { units })
    }

    /// Encrypts the data unit `src` into `dst`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a unit shorter than 16 bytes or longer than 16 MiB;
    /// [`ErrorKind::InvalidInput`] where the lengths differ.
    pub fn encrypt_unit(&self, iv: &Iv, src: &[u8], dst: &mut [u8]) -> Result<()> {
        let data = two_buffers(src, dst)?;
        self.units.encrypt(iv, check_unit(data)?);
        Ok(())
    }

    /// Encrypts the data unit `buf` where it is.
    ///
    /// # Errors
    /// As [`Xts::encrypt_unit`].
    pub fn encrypt_unit_in_place(&self, iv: &Iv, buf: &mut [u8]) -> Result<()> {
        self.units.encrypt(iv, check_unit(buf.into())?);
        Ok(())
    }

    /// Decrypts the data unit `src` into `dst`.
    ///
    /// # Errors
    /// As [`Xts::encrypt_unit`].
    pub fn decrypt_unit(&self, iv: &Iv, src: &[u8], dst: &mut [u8]) -> Result<()> {
        let data = two_buffers(src, dst)?;
        self.units.decrypt(iv, check_unit(data)?);
        Ok(())
    }

    /// Decrypts the data unit `buf` where it is.
    ///
    /// # Errors
    /// As [`Xts::encrypt_unit`].
    pub fn decrypt_unit_in_place(&self, iv: &Iv, buf: &mut [u8]) -> Result<()> {
        self.units.decrypt(iv, check_unit(buf.into())?);
        Ok(())
    }

    /// The backend that runs.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.units.backend()
    }
}

impl fmt::Debug for Xts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Xts")
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

/// The object-safe view of an engine that [`Xts`] holds: one unit at a time.
trait Units: Send + Sync {
    fn encrypt(&self, iv: &Iv, data: InOutBuf<'_, '_, u8>);
    fn decrypt(&self, iv: &Iv, data: InOutBuf<'_, '_, u8>);
    fn backend(&self) -> Backend;
}

impl<E: Engine> Units for E {
    fn encrypt(&self, iv: &Iv, data: InOutBuf<'_, '_, u8>) {
        self.encrypt_units(Ivs::Listed(std::slice::from_ref(iv)), data.len(), data);
    }

    fn decrypt(&self, iv: &Iv, data: InOutBuf<'_, '_, u8>) {
        self.decrypt_units(Ivs::Listed(std::slice::from_ref(iv)), data.len(), data);
    }

    fn backend(&self) -> Backend {
        E::BACKEND
    }
}

/// Keys the engine that `backend` and the key's length ask for.
pub(super) fn with_engine<V: EngineVisitor>(
    key: &Key,
    backend: Backend,
    visitor: V,
) -> Result<V::Output> {
    let (data_key, tweak_key) = key.expose().split_at(key.len_bytes() / 2);
    match (backend, data_key.len()) {
        (_, len) if len != 16 && len != 32 => Err(Error::new(
            ErrorKind::Key,
            format!(
                "AES-XTS takes a key of 256 or 512 bits: this one has {} bits",
                8 * key.len_bytes()
            ),
        )),
        (Backend::Portable, 16) => Ok(visitor.visit(Portable::<Aes128>::new(data_key, tweak_key)?)),
        (Backend::Portable, _) => Ok(visitor.visit(Portable::<Aes256>::new(data_key, tweak_key)?)),
        (Backend::Batched, 16) => Ok(visitor.visit(Batched::<Aes128>::new(data_key, tweak_key)?)),
        (Backend::Batched, _) => Ok(visitor.visit(Batched::<Aes256>::new(data_key, tweak_key)?)),
        #[cfg(target_arch = "x86_64")]
        (Backend::AesNi, _) => with_kernel::<x86::AesNi, V>(data_key, tweak_key, visitor),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes256, _) => with_kernel::<x86::Vaes256, V>(data_key, tweak_key, visitor),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes512, _) => with_kernel::<x86::Vaes512, V>(data_key, tweak_key, visitor),
    }
}

/// Keys the kernel of one instruction set. The keys have 16 or 32 bytes.
#[cfg(target_arch = "x86_64")]
fn with_kernel<I: x86::InstructionSet, V: EngineVisitor>(
    data_key: &[u8],
    tweak_key: &[u8],
    visitor: V,
) -> Result<V::Output> {
    use x86::{AES_128, AES_256, XtsKernel};
    let isa = I::new().ok_or_else(|| I::BACKEND.unavailable())?;
    Ok(match data_key.len() {
        16 => visitor.visit(XtsKernel::<I, AES_128>::new(isa, data_key, tweak_key)?),
        _ => visitor.visit(XtsKernel::<I, AES_256>::new(isa, data_key, tweak_key)?),
    })
}

fn two_buffers<'a>(src: &'a [u8], dst: &'a mut [u8]) -> Result<InOutBuf<'a, 'a, u8>> {
    let (src_len, dst_len) = (src.len(), dst.len());
    InOutBuf::new(src, dst).map_err(|_| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("source of {src_len} bytes and destination of {dst_len} bytes differ"),
        )
    })
}

fn check_unit<'a>(data: InOutBuf<'a, 'a, u8>) -> Result<InOutBuf<'a, 'a, u8>> {
    if (MIN_UNIT_BYTES..=MAX_UNIT_BYTES).contains(&data.len()) {
        return Ok(data);
    }
    Err(Error::new(
        ErrorKind::OutOfRange,
        format!(
            "an XTS data unit has {MIN_UNIT_BYTES} to {MAX_UNIT_BYTES} bytes: this one has {}",
            data.len()
        ),
    ))
}
