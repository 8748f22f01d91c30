//! fio's header of a verified block (`struct verify_header` of fio 3.33), as bytes on a little-endian machine.
//!
//! ```text
//! 0 magic u16 | 2 kind u16 | 4 length u32 | 8 seed u64 | 16 offset u64 | 24 seconds u32 | 28 nanoseconds u32
//! 32 thread u16 | 34 number of the request u16 | 36 CRC-32C of these 36 bytes u32
//! ```
//!
//! fio's CRC-32C lacks the last inversion of the standard's. Time, thread and number are zero here: fio compares
//! none of them where it only reads.

#![forbid(unsafe_code)]

/// Length in bytes.
pub(super) const LEN_BYTES: usize = 40;
/// First two bytes.
const MAGIC: u16 = 0xacca;
/// Bytes that the header's own checksum covers.
const COVERED_BYTES: usize = 36;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number of the checksum.
    pub(super) kind: u16,
    /// Length of the block, header included.
    pub(super) len_bytes: u32,
    /// Seed of the block's bytes.
    pub(super) seed: u64,
    /// Where it is in its file.
    pub(super) offset_bytes: u64,
}

impl Header {
    /// Writes it into [`LEN_BYTES`] bytes.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        put(bytes, 0, &MAGIC.to_le_bytes());
        put(bytes, 2, &self.kind.to_le_bytes());
        put(bytes, 4, &self.len_bytes.to_le_bytes());
        put(bytes, 8, &self.seed.to_le_bytes());
        put(bytes, 16, &self.offset_bytes.to_le_bytes());
        let checksum = fio_crc32c(&bytes[..COVERED_BYTES]);
        put(bytes, COVERED_BYTES, &checksum.to_le_bytes());
    }
}

/// What a header must say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Numbers of the checksum.
    pub(super) kinds: &'static [u16],
    /// Length of the block.
    pub(super) len_bytes: u32,
    /// Where it is in its file.
    pub(super) offset_bytes: u64,
    /// Seed of its bytes; `None` for any.
    pub(super) seed: Option<u64>,
}

/// A header that says something else.
pub(super) struct Wrong {
    pub(super) what: &'static str,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Wanted {
    /// Compares [`LEN_BYTES`] bytes with it.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), Wrong> {
        let found = |at, len| number(bytes, at, len);
        same("the magic number of the header", MAGIC.into(), found(0, 2))?;
        let checksum = fio_crc32c(&bytes[..COVERED_BYTES]);
        same(
            "the checksum of the header",
            checksum.into(),
            found(COVERED_BYTES, 4),
        )?;
        same("the offset in the header", self.offset_bytes, found(16, 8))?;
        same(
            "the length in the header",
            self.len_bytes.into(),
            found(4, 4),
        )?;
        let kind = found(2, 2);
        if !self.kinds.iter().any(|known| u64::from(*known) == kind) {
            let known = self.kinds.first().copied().unwrap_or_default();
            same("the kind of checksum in the header", known.into(), kind)?;
        }
        match self.seed {
            Some(seed) => same("the seed of the run in the header", seed, found(8, 8)),
            None => Ok(()),
        }
    }
}

fn same(what: &'static str, expected: u64, found: u64) -> Result<(), Wrong> {
    if expected == found {
        return Ok(());
    }
    Err(Wrong {
        what,
        expected: format!("{expected:#x}"),
        found: format!("{found:#x}"),
    })
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut value = [0; 8];
    value[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(value)
}

/// CRC-32C as fio has it.
pub(super) fn fio_crc32c(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}
