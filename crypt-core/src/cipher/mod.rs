//! Sector ciphers: one object-safe trait, built once from a specification and a key.
//!
//! A [`SectorCipher`] is keyed, immutable and shared between threads without a lock. There is one
//! virtual call per request, never per sector or block. The backend (instruction set) is chosen at
//! construction; holding the value is the proof that the CPU has it.

use std::fmt;

use crate::units::{SectorIndex, SectorSize};

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
