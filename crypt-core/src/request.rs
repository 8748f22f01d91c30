//! What a caller asks of a volume: one operation on a range of sectors, with its flags.
//!
//! Linux block-layer semantics: no order holds between requests in flight, and a flush covers what
//! has completed before it was submitted. Data does not travel in the request; it sits in the slot
//! that the request is submitted with.

#![forbid(unsafe_code)]

use crate::units::{ByteLength, SectorIndex};

/// Operation of a [`Request`], named as in Linux's `REQ_OP_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read and decrypt into the slot's data area.
    Read,
    /// Encrypt the slot's data area and write it.
    Write,
    /// Make everything completed so far durable (`fdatasync`; `fsync` with [`Flags::META`]).
    Flush,
    /// The range's content is no longer needed; it does not read back as zero.
    Discard,
    /// The range reads back as zero plaintext: encrypted zeros are written.
    WriteZeroes,
    /// Reserve backing space for the range, keeping its data (`fallocate(0)`).
    Allocate,
}

impl Op {
    /// Every operation, for conformance suites.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::WriteZeroes,
        Self::Allocate,
    ];

    /// Whether the operation changes the device.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read | Self::Flush)
    }
}

bitflags::bitflags! {
    /// Flags of a [`Request`], named as in Linux's `REQ_*`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Flags: u8 {
        /// The submitter polls for the completion (`REQ_POLLED`, once `REQ_HIPRI`).
        const HIPRI = 1;
        /// Speculative read; nobody waits for it yet (`REQ_RAHEAD`).
        const READAHEAD = 2;
        /// Durable when completed (`REQ_FUA`, `RWF_DSYNC`).
        const FUA = 4;
        /// Somebody waits for it (`REQ_SYNC`).
        const SYNC = 8;
        /// With `Flush`: all metadata of a file is made durable too (`fsync` instead of `fdatasync`).
        const META = 16;
    }
}

/// One operation on `len` bytes from `sector` of a volume.
///
/// `Read` and `Write` are at most one slot long; `Discard`, `WriteZeroes` and `Allocate` may cover
/// the whole volume. `Flush` has no range. A range that is empty, unaligned to the crypto sector,
/// or past the end completes with `EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector of the range, in the volume's own address space.
    pub sector: SectorIndex,
    /// Length of the range.
    pub len: ByteLength,
}

impl Request {
    /// A request without flags.
    #[must_use]
    pub const fn new(op: Op, sector: SectorIndex, len: ByteLength) -> Self {
        Self {
            op,
            flags: Flags::empty(),
            sector,
            len,
        }
    }

    /// A flush of the whole volume.
    #[must_use]
    pub const fn flush() -> Self {
        Self::new(Op::Flush, SectorIndex::new(0), ByteLength::new(0))
    }

    /// The same request with these flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }
}
