//! One stretch of cipher work on one slot, run to its end on the calling thread.
//!
//! The queue's own thread uses [`run_span`] for work placed inline; workers run the same code on
//! the parts of handed-off work, so an error or a panic looks the same under every placement.
//!
//! Owns nothing, never allocates, never blocks. A cipher that panics is reported as `EIO`, and the
//! content of the target is then unspecified.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::buffer::{Area, SlotBuffer};
use crate::cipher::SectorCipher;
use crate::error::Errno;
use crate::policy::Direction;
use crate::units::{SECTOR_BYTES, SectorIndex, SectorSize};

/// Where a span's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The same bytes of an area. Where it is the target area, the cipher runs in place.
    Area(Area),
    /// Zeros: the target is filled with them and the cipher runs in place.
    Zeroes,
}

/// A stretch of crypto sectors of one slot. Source and target start at the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Encrypt or decrypt.
    pub direction: Direction,
    /// The 512-byte sector of the first byte, counted from the start of the encrypted segment.
    pub first: SectorIndex,
    /// Where the span starts in its areas.
    pub area_offset_bytes: u32,
    /// Length, a multiple of the crypto sector; zero does nothing.
    pub len_bytes: u32,
    /// What is read.
    pub source: Source,
    /// What is written.
    pub target: Area,
}

impl Span {
    /// Whether the span lies on crypto-sector boundaries and inside areas of `area_len` bytes.
    ///
    /// # Errors
    /// `EINVAL` where it doesn't.
    pub fn check(&self, size: SectorSize, area_len: usize) -> Result<(), Errno> {
        let unit = size.bytes();
        let start = self.area_offset_bytes as usize;
        let end = start.checked_add(self.len_bytes as usize);
        let inside = end.is_some_and(|end| end <= area_len);
        let lengths = start.is_multiple_of(unit) && (self.len_bytes as usize).is_multiple_of(unit);
        let first = self.first.get().is_multiple_of(1 << size.shift());
        let sectors = u64::from(self.len_bytes) / SECTOR_BYTES;
        let addressable = self.first.get().checked_add(sectors).is_some();
        if inside && lengths && first && addressable {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// Byte range of the span in its areas. Call it on a checked span.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let start = self.area_offset_bytes as usize;
        start..start + self.len_bytes as usize
    }
}

/// Runs `cipher` over `span` of `buffer` on the calling thread.
///
/// # Errors
/// `EINVAL` where the span is not on crypto-sector boundaries or leaves its areas (nothing is
/// touched then); `EIO` where the cipher panicked.
pub fn run_span(
    cipher: &dyn SectorCipher,
    span: &Span,
    buffer: &mut SlotBuffer,
) -> Result<(), Errno> {
    span.check(cipher.sector_size(), buffer.area_len())?;
    run_checked(cipher, span, buffer)
}

/// As [`run_span`], for a span whose sectors were checked before: the pipeline admits whole blocks
/// of the volume only.
#[inline]
pub(crate) fn run_checked(
    cipher: &dyn SectorCipher,
    span: &Span,
    buffer: &mut SlotBuffer,
) -> Result<(), Errno> {
    let range = span.range();
    if range.end > buffer.area_len() {
        return Err(Errno::EINVAL);
    }
    let target = match span.source {
        Source::Area(area) if area != span.target => {
            let (data, bounce) = buffer.split_mut();
            let (source, target) = match area {
                Area::Data => (&data[range.clone()], &mut bounce[range]),
                Area::Bounce => (&bounce[range.clone()], &mut data[range]),
            };
            return run_out_of_place(cipher, span.direction, span.first, source, target);
        }
        Source::Area(_) | Source::Zeroes => &mut buffer.area_mut(span.target)[range],
    };
    run_in_place(cipher, span, target)
}

/// Runs the cipher from `source` to `target`, both a whole number of crypto sectors.
pub(crate) fn run_out_of_place(
    cipher: &dyn SectorCipher,
    direction: Direction,
    first: SectorIndex,
    source: &[u8],
    target: &mut [u8],
) -> Result<(), Errno> {
    guard(|| match direction {
        Direction::Encrypt => cipher.encrypt_sectors(first, source, target),
        Direction::Decrypt => cipher.decrypt_sectors(first, source, target),
    })
}

/// Runs the cipher where the bytes are; they become zeros first where `span.source` says so.
pub(crate) fn run_in_place(
    cipher: &dyn SectorCipher,
    span: &Span,
    target: &mut [u8],
) -> Result<(), Errno> {
    guard(|| {
        if span.source == Source::Zeroes {
            target.fill(0);
        }
        match span.direction {
            Direction::Encrypt => cipher.encrypt_in_place(span.first, target),
            Direction::Decrypt => cipher.decrypt_in_place(span.first, target),
        }
    })
}

/// Runs the code of a cipher or device; a panic in it is `EIO`.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Errno> {
    // The bytes of the target are plain memory whatever the cipher did to them, and the cipher is
    // shared and immutable, so nothing observable is left half-changed. A device is shared too, and
    // answers for itself.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Errno::EIO)
}
