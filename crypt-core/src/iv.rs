//! IVs of runs of crypto sectors, as dm-crypt numbers them.
//!
//! With `cc_sector = sector + iv_offset` in 512-byte units (wrapping, as the kernel's 64-bit
//! arithmetic does), the number behind an IV is `cc_sector`, or `cc_sector >> sector_shift` with
//! `iv_large_sectors`. So without that flag the IVs of 4096-byte sectors go up in steps of eight.
//! Source: `drivers/md/dm-crypt.c`, `crypt_convert_init` and `crypt_iv_*_gen`.

#![forbid(unsafe_code)]

use crate::spec::{CipherSpec, IvKind};
use crate::units::SectorIndex;

/// The IV of one crypto sector.
pub type Iv = [u8; 16];

/// Makes IVs for consecutive crypto sectors. `Copy`, no state between calls.
#[derive(Clone, Copy, Debug)]
pub struct IvGenerator {
    kind: IvKind,
    iv_offset: u64,
    /// Shift from `cc_sector` to the number behind the IV.
    number_shift: u32,
    /// log2 of the 512-byte sectors in one crypto sector.
    sector_shift: u32,
}

impl IvGenerator {
    /// The generator of a specification.
    #[must_use]
    pub fn new(spec: &CipherSpec) -> Self {
        let sector_shift = spec.sector_size().shift();
        Self {
            kind: spec.iv(),
            iv_offset: spec.iv_offset().get(),
            number_shift: if spec.iv_large_sectors() {
                sector_shift
            } else {
                0
            },
            sector_shift,
        }
    }

    /// Fills `ivs` for the crypto sectors from the one that starts at 512-byte sector `first`.
    #[inline]
    pub fn fill(&self, first: SectorIndex, ivs: &mut [Iv]) {
        let mut cc_sector = first.get().wrapping_add(self.iv_offset);
        for iv in ivs {
            let number = cc_sector >> self.number_shift;
            let value = match self.kind {
                IvKind::None => 0,
                IvKind::Plain => number & u64::from(u32::MAX),
                IvKind::Plain64 => number,
            };
            *iv = u128::from(value).to_le_bytes();
            cc_sector = cc_sector.wrapping_add(1 << self.sector_shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{SectorCount, SectorSize};

    fn numbers(text: &str, first: u64, change: impl Fn(CipherSpec) -> CipherSpec) -> [u64; 3] {
        let spec = change(text.parse().unwrap());
        let mut ivs = [[0xff; 16]; 3];
        IvGenerator::new(&spec).fill(SectorIndex::new(first), &mut ivs);
        ivs.map(|iv| u64::try_from(u128::from_le_bytes(iv)).unwrap())
    }

    #[test]
    fn large_sectors_count_in_eights_unless_asked_otherwise() {
        let large = |spec: CipherSpec| {
            spec.with_sector_size(SectorSize::B4096)
                .with_iv_offset(SectorCount::new(16))
        };
        assert_eq!(numbers("aes-xts-plain64", 8, large), [24, 32, 40]);
        let counted_large = |spec| large(spec).with_iv_large_sectors(true);
        assert_eq!(numbers("aes-xts-plain64", 8, counted_large), [3, 4, 5]);
    }

    #[test]
    fn plain_wraps_at_32_bits_and_plain64_does_not() {
        let first = u64::from(u32::MAX);
        let same = |spec| spec;
        assert_eq!(numbers("aes-xts-plain", first, same), [first, 0, 1]);
        let far = [first, first + 1, first + 2];
        assert_eq!(numbers("aes-xts-plain64", first, same), far);
    }

    #[test]
    fn sector_numbers_wrap_at_64_bits() {
        let same = |spec| spec;
        assert_eq!(numbers("aes-xts-plain64", u64::MAX, same), [u64::MAX, 0, 1]);
        let offset = |spec: CipherSpec| spec.with_iv_offset(SectorCount::new(u64::MAX));
        assert_eq!(numbers("aes-xts-plain64", 5, offset), [4, 5, 6]);
    }
}
