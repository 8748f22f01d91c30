//! Cipher work on whole buffers and file ranges, spread over all cores by rayon.
//!
//! For work that has no queue: encrypting a volume in one go, preparing an image. Not for requests:
//! rayon allocates per task and its hand-off costs more than most requests.
#![forbid(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;

use rayon::prelude::*;

use crate::cipher::SectorCipher;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Direction;
use crate::units::{SECTOR_BYTES, SectorCount, SectorIndex};

/// A task's share: long enough to hide its cost, short enough to balance, whole crypto sectors.
const CHUNK_BYTES: usize = 256 << 10;

/// Encrypts `buf` in place on all cores. Same bytes as one call of the cipher.
///
/// # Panics
/// As [`SectorCipher::encrypt_in_place`].
pub fn encrypt_parallel(cipher: &dyn SectorCipher, first: SectorIndex, buf: &mut [u8]) {
    chunks(first, buf).for_each(|(first, chunk)| cipher.encrypt_in_place(first, chunk));
}

/// Decrypts `buf` in place on all cores. Same bytes as one call of the cipher.
///
/// # Panics
/// As [`SectorCipher::decrypt_in_place`].
pub fn decrypt_parallel(cipher: &dyn SectorCipher, first: SectorIndex, buf: &mut [u8]) {
    chunks(first, buf).for_each(|(first, chunk)| cipher.decrypt_in_place(first, chunk));
}

/// A range of one file, and where it goes in another (or the same) file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// First byte read.
    pub source_offset_bytes: u64,
    /// First byte written.
    pub target_offset_bytes: u64,
    /// Length, a multiple of the crypto sector.
    pub len_bytes: u64,
    /// The 512-byte sector of the first byte, counted from the start of the encrypted segment.
    pub first: SectorIndex,
}

/// Runs the cipher from a range of `source` to a range of `target` on all cores, in chunks.
///
/// The ranges may be the same range of one file, but must not overlap otherwise. An interruption
/// leaves some chunks done and others not: keep the source until this has returned, and sync the
/// target after.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] where the length is not whole crypto sectors; the system's error with
/// the offset for a read, a write, or an early end of the source.
pub fn crypt_file_parallel(
    cipher: &dyn SectorCipher,
    direction: Direction,
    source: &File,
    target: &File,
    range: &FileRange,
) -> Result<()> {
    let unit = cipher.sector_size();
    if !range.len_bytes.is_multiple_of(unit.bytes() as u64) {
        let context = format!(
            "a range of {} bytes is not whole crypto sectors of {unit} bytes",
            range.len_bytes
        );
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    let count = range.len_bytes.div_ceil(CHUNK_BYTES as u64);
    let buffer = || vec![0; CHUNK_BYTES];
    (0..count)
        .into_par_iter()
        .try_for_each_init(buffer, |buffer, chunk| {
            let start = chunk * CHUNK_BYTES as u64;
            let len = (range.len_bytes - start).min(CHUNK_BYTES as u64) as usize;
            let buffer = &mut buffer[..len];
            let at = range.source_offset_bytes + start;
            let failed = |what: &'static str, at| {
                move |error| Error::io(format!("{what} {len} bytes at {at}"), error)
            };
            source
                .read_exact_at(buffer, at)
                .map_err(failed("read", at))?;
            let first = advance(range.first, start);
            match direction {
                Direction::Encrypt => cipher.encrypt_in_place(first, buffer),
                Direction::Decrypt => cipher.decrypt_in_place(first, buffer),
            }
            let at = range.target_offset_bytes + start;
            target.write_all_at(buffer, at).map_err(failed("write", at))
        })
}

/// The chunks of `buf`, each with its first sector.
fn chunks(
    first: SectorIndex,
    buf: &mut [u8],
) -> impl ParallelIterator<Item = (SectorIndex, &mut [u8])> {
    let chunks = buf.par_chunks_mut(CHUNK_BYTES).enumerate();
    chunks.map(move |(n, chunk)| (advance(first, (n * CHUNK_BYTES) as u64), chunk))
}

/// The sector `bytes` further on; past the last sector the cipher's own checks refuse.
fn advance(first: SectorIndex, bytes: u64) -> SectorIndex {
    first
        .checked_add(SectorCount::new(bytes / SECTOR_BYTES))
        .unwrap_or(SectorIndex::new(u64::MAX))
}
