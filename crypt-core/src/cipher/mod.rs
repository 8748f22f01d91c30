//! Sector ciphers: one object-safe trait, built once from a specification and a key.
//!
//! A [`SectorCipher`] is keyed, immutable and shared between threads without a lock. There is one
//! virtual call per request, never per sector or block. The backend (instruction set) is chosen at
//! construction; holding the value is the proof that the CPU has it.
//!
//! [`Backend::ALL`] is the registry of implementations: test suites and benchmarks iterate over it.

#![deny(unsafe_code)]

mod adiantum;
mod backend;
mod blocks;
mod cbc;
mod engine;
mod limit;
mod null;
mod sectors;
mod throttled;
#[cfg(target_arch = "x86_64")]
mod x86;
pub mod xts;

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::key::Key;
use crate::spec::{Algorithm, CipherSpec};
use crate::units::{SectorIndex, SectorSize};

use sectors::SectorsOf;

pub use backend::{BACKEND_VARIABLE, Backend};
pub use limit::AesLimit;
pub use throttled::Throttled;

/// A keyed cipher over whole crypto sectors, in dm-crypt's on-disk format.
///
/// `first` is the 512-byte sector of the start of the buffer, counted from the start of the
/// encrypted segment; the cipher adds its own `iv_offset`. All lengths are multiples of
/// [`SectorCipher::sector_size`] and `first` lies on a crypto-sector boundary.
///
/// # Panics
/// Every method panics where a length or `first` is not on that boundary, or where `src` and `dst`
/// differ in length: those are bugs of the caller, the pipeline checks requests before.
pub trait SectorCipher: Send + Sync + fmt::Debug {
    /// Encrypts `src` into `dst`, leaving `src` unchanged.
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]);

    /// Encrypts `buf` where it is.
    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]);

    /// Decrypts `src` into `dst`, leaving `src` unchanged.
    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]);

    /// Decrypts `buf` where it is.
    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]);

    /// The unit of one IV.
    fn sector_size(&self) -> SectorSize;

    /// Name of the backend that runs, for results: `portable`, `batched`, `vaes512`, ...
    fn backend(&self) -> &'static str;
}

/// The factory behind [`CipherSpec::build`], which has checked the key's length and the IV offset.
pub(crate) fn build(
    spec: &CipherSpec,
    key: &Key,
    backend: Option<Backend>,
) -> Result<Arc<dyn SectorCipher>> {
    let sectors = |backend| SectorsOf { spec, key, backend };
    match spec.algorithm() {
        Algorithm::AesXts => {
            let backend = Backend::choose(backend)?;
            xts::with_engine(key, backend, sectors(backend))?
        }
        Algorithm::AesCbc => {
            let backend = Backend::choose(backend)?;
            cbc::with_engine(key, backend, sectors(backend))?
        }
        Algorithm::Adiantum => adiantum::with_engine(key, sectors(Backend::Portable))?,
        Algorithm::Null => Ok(Arc::new(null::Null::new(spec.sector_size()))),
    }
}

/// Holds callers to the contract of [`SectorCipher`].
///
/// # Panics
/// Where the contract is broken.
fn check_run(first: SectorIndex, src_len: usize, dst_len: usize, sector_size: SectorSize) {
    assert_eq!(src_len, dst_len, "source and destination differ in length");
    assert!(
        src_len.is_multiple_of(sector_size.bytes()),
        "{src_len} bytes are not a whole number of {sector_size}-byte crypto sectors"
    );
    assert!(
        first.get().is_multiple_of(1 << sector_size.shift()),
        "sector {first} is not the start of a {sector_size}-byte crypto sector"
    );
}
