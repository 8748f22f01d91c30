//! Open files one behind the other, as one range of bytes: where in which file an offset is.
//!
//! Each file starts at a multiple of [`START_UNIT_BYTES`], so that sectors and blocks never straddle two files. What
//! is between the end of one and the start of the next belongs to none; a read or write there is refused.

#![forbid(unsafe_code)]

use std::fs::File;
use std::sync::Arc;

/// Every file but the first starts at a multiple of this.
pub const START_UNIT_BYTES: u64 = 1 << 20;

/// Where files of these sizes start when they are opened as one device. Sizes and starts in bytes; a start that
/// 64 bits can't hold is the largest that they can.
pub fn starts_bytes(sizes_bytes: impl IntoIterator<Item = u64>) -> impl Iterator<Item = u64> {
    sizes_bytes
        .into_iter()
        .scan(0_u64, |next_bytes, size_bytes| {
            let start_bytes = *next_bytes;
            let end_bytes = start_bytes.saturating_add(size_bytes);
            *next_bytes = end_bytes
                .checked_next_multiple_of(START_UNIT_BYTES)
                .unwrap_or(u64::MAX);
            Some(start_bytes)
        })
}

/// One of the files.
#[derive(Debug)]
pub(super) struct Part {
    /// Open for what the device is open for.
    pub(super) file: Arc<File>,
    /// Whether it is a block device.
    pub(super) is_block: bool,
    start_bytes: u64,
    /// In whole blocks of the device.
    size_bytes: u64,
}

/// A range inside of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Which file.
    pub(super) index: usize,
    /// First byte in it.
    pub(super) offset_bytes: u64,
    /// Its length: of a place, up to the end of the file.
    pub(super) len_bytes: u64,
}

/// The files. At least one.
#[derive(Debug)]
pub(super) struct Files {
    parts: Box<[Part]>,
}

impl Files {
    /// Puts files with their sizes one behind the other; of each, whole blocks of `block_bytes` are used.
    pub(super) fn new(files: Vec<(Arc<File>, bool, u64)>, block_bytes: u64) -> Self {
        let starts: Vec<u64> = starts_bytes(files.iter().map(|file| file.2)).collect();
        let parts = files.into_iter().zip(starts);
        let parts = parts.map(|((file, is_block, size_bytes), start_bytes)| Part {
            file,
            is_block,
            start_bytes,
            size_bytes: size_bytes - size_bytes % block_bytes.max(1),
        });
        Self {
            parts: parts.collect(),
        }
    }

    /// All of them, in order.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// From the start of the first to the end of the last.
    pub(super) fn size_bytes(&self) -> u64 {
        let last = self.parts.last();
        last.map_or(0, |part| part.start_bytes.saturating_add(part.size_bytes))
    }

    /// The file at an offset, and what is left of it there; `None` between two files and beyond the last.
    #[inline]
    pub(super) fn place(&self, offset_bytes: u64) -> Option<Piece> {
        let index = match self.parts.len() {
            1 => 0,
            _ => self
                .parts
                .partition_point(|part| part.start_bytes <= offset_bytes)
                .checked_sub(1)?,
        };
        let part = self.parts.get(index)?;
        let offset_bytes = offset_bytes - part.start_bytes;
        let len_bytes = part.size_bytes.checked_sub(offset_bytes);
        Some(Piece {
            index,
            offset_bytes,
            len_bytes: len_bytes.filter(|len_bytes| *len_bytes > 0)?,
        })
    }

    /// A range cut at the ends of files; what is between files is left out.
    pub(super) fn pieces(
        &self,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> impl Iterator<Item = Piece> + '_ {
        let end_bytes = offset_bytes.saturating_add(len_bytes);
        let parts = self.parts.iter().enumerate();
        parts.filter_map(move |(index, part)| {
            let from = offset_bytes.max(part.start_bytes);
            let to = end_bytes.min(part.start_bytes.saturating_add(part.size_bytes));
            Some(Piece {
                index,
                offset_bytes: from - part.start_bytes,
                len_bytes: to.checked_sub(from).filter(|len_bytes| *len_bytes > 0)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: usize, offset_bytes: u64, len_bytes: u64) -> Piece {
        Piece {
            index,
            offset_bytes,
            len_bytes,
        }
    }

    #[test]
    fn offsets_are_in_one_file_or_in_none() {
        const MIB: u64 = 1 << 20;
        let file = || Arc::new(tempfile::tempfile().unwrap());
        let sizes = [3 * MIB, 5000, MIB];
        let files = sizes.map(|size_bytes| (file(), false, size_bytes));
        let files = Files::new(files.into(), 512);
        assert_eq!(files.size_bytes(), 5 * MIB);
        for (offset, expected) in [
            (0, Some(piece(0, 0, 3 * MIB))),
            (3 * MIB - 512, Some(piece(0, 3 * MIB - 512, 512))),
            (3 * MIB, Some(piece(1, 0, 4608))),
            (3 * MIB + 4608, None),
            (4 * MIB + 512, Some(piece(2, 512, MIB - 512))),
            (5 * MIB, None),
            (u64::MAX, None),
        ] {
            assert_eq!(files.place(offset), expected, "{offset}");
        }
        let pieces: Vec<Piece> = files.pieces(2 * MIB, 2 * MIB + 512).collect();
        let expected = [piece(0, 2 * MIB, MIB), piece(1, 0, 4608), piece(2, 0, 512)];
        assert_eq!(pieces, expected);
        assert_eq!(files.pieces(3 * MIB + 4608, 512).count(), 0);
        assert_eq!(starts_bytes([u64::MAX, 1, 1]).last(), Some(u64::MAX));
    }
}
