//! Types for the quantities of a block device, so that a sector index is never taken for a length.
//!
//! A *sector* is 512 bytes, the unit of Linux block addresses. A *crypto sector* is the unit of
//! one IV (dm-crypt's `sector_size`): 512, 1024, 2048 or 4096 bytes.
//!
//! Nothing here rounds silently: a byte position that is not on a sector boundary has no index.

#![forbid(unsafe_code)]

use std::fmt;

/// Bytes in one Linux sector.
pub const SECTOR_BYTES: u64 = 512;

/// Address of a 512-byte sector, counted from the start of the volume or device it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorIndex(u64);

impl SectorIndex {
    /// The sector with this index.
    #[must_use]
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The sector that starts at `offset_bytes`, or `None` where that is not a sector boundary.
    #[must_use]
    pub const fn from_bytes(offset_bytes: u64) -> Option<Self> {
        if offset_bytes.is_multiple_of(SECTOR_BYTES) {
            Some(Self(offset_bytes / SECTOR_BYTES))
        } else {
            None
        }
    }

    /// The index as a plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Byte offset of the sector, or `None` past the end of 64-bit byte addresses.
    #[must_use]
    pub const fn to_bytes(self) -> Option<u64> {
        self.0.checked_mul(SECTOR_BYTES)
    }

    /// The sector `count` further on, or `None` when that overflows.
    #[must_use]
    pub const fn checked_add(self, count: SectorCount) -> Option<Self> {
        match self.0.checked_add(count.0) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }
}

impl fmt::Display for SectorIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorCount(u64);

impl SectorCount {
    /// This many sectors.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count as a plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same amount in bytes, or `None` when that overflows.
    #[must_use]
    pub const fn to_bytes(self) -> Option<u64> {
        self.0.checked_mul(SECTOR_BYTES)
    }
}

impl fmt::Display for SectorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteLength(u64);

impl ByteLength {
    /// This many bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The length as a plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same length in sectors, or `None` where it is not a whole number of them.
    #[must_use]
    pub const fn to_sectors(self) -> Option<SectorCount> {
        if self.0.is_multiple_of(SECTOR_BYTES) {
            Some(SectorCount(self.0 / SECTOR_BYTES))
        } else {
            None
        }
    }
}

impl fmt::Display for ByteLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Size of a crypto sector, dm-crypt's `sector_size`: the unit of one IV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectorSize {
    /// 512 bytes, dm-crypt's default and the only size of LUKS1.
    #[default]
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes, what `cryptsetup luksFormat` picks where the device allows.
    B4096,
}

impl SectorSize {
    /// Every size that dm-crypt accepts, smallest first.
    pub const ALL: [Self; 4] = [Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// The size of this many bytes, or `None` where dm-crypt has no such size.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            512 => Some(Self::B512),
            1024 => Some(Self::B1024),
            2048 => Some(Self::B2048),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        512 << self.shift()
    }

    /// log2 of the number of 512-byte sectors in one crypto sector (dm-crypt's `sector_shift`).
    #[must_use]
    pub const fn shift(self) -> u32 {
        match self {
            Self::B512 => 0,
            Self::B1024 => 1,
            Self::B2048 => 2,
            Self::B4096 => 3,
        }
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_sizes_round_trip_through_bytes() {
        for size in SectorSize::ALL {
            assert_eq!(SectorSize::from_bytes(size.bytes() as u64), Some(size));
        }
        assert_eq!(SectorSize::from_bytes(8192), None);
    }

    #[test]
    fn unaligned_and_overflowing_positions_have_no_value() {
        assert_eq!(SectorIndex::from_bytes(513), None);
        assert_eq!(SectorIndex::new(u64::MAX).to_bytes(), None);
        assert_eq!(
            SectorIndex::new(u64::MAX).checked_add(SectorCount::new(1)),
            None
        );
        assert_eq!(ByteLength::new(1000).to_sectors(), None);
    }
}
