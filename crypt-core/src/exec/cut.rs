//! How a work is cut into parts: at crypto-sector boundaries, as evenly as they allow.
#![forbid(unsafe_code)]

/// The parts of one work, as byte ranges from its start. Disjoint, in order, none empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    unit_bytes: u32,
    units: u32,
    parts: u32,
    next: u32,
}

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset_bytes: u32,
    pub(crate) len_bytes: u32,
}

impl Cut {
    /// Cuts `len_bytes`, a multiple of `unit_bytes` that is not 0, into `parts` parts or as many as
    /// there are units.
    pub(crate) fn new(len_bytes: u32, unit_bytes: u32, parts: u32) -> Self {
        let units = len_bytes / unit_bytes;
        Self {
            unit_bytes,
            units,
            parts: parts.min(units),
            next: 0,
        }
    }

    /// Parts in all.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Bytes in all.
    pub(crate) fn len_bytes(&self) -> u64 {
        u64::from(self.units) * u64::from(self.unit_bytes)
    }

    fn boundary(&self, part: u32) -> u32 {
        let units = u64::from(self.units) * u64::from(part) / u64::from(self.parts);
        units as u32 * self.unit_bytes
    }
}

impl Iterator for Cut {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.next == self.parts {
            return None;
        }
        let (start, end) = (self.boundary(self.next), self.boundary(self.next + 1));
        self.next += 1;
        Some(Piece {
            offset_bytes: start,
            len_bytes: end - start,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_work_without_gap_overlap_or_empty_piece() {
        for (units, parts) in [(1, 1), (1, 9), (7, 3), (255, 255), (8_388_607, 255)] {
            let cut = Cut::new(units * 512, 512, parts);
            assert_eq!(cut.parts(), parts.min(units));
            let mut expected_start = 0;
            for piece in cut {
                assert_eq!(piece.offset_bytes, expected_start);
                assert!(piece.len_bytes > 0 && piece.len_bytes.is_multiple_of(512));
                expected_start += piece.len_bytes;
            }
            assert_eq!(u64::from(expected_start), cut.len_bytes());
        }
    }
}
