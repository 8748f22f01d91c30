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
    /// log2 of the 512-byte sectors in one crypto sector.
    sector_shift: u32,
    large_sectors: bool,
}

impl IvGenerator {
    /// The generator of a specification. What `essiv` and `eboiv` encrypt with is not part of it:
    /// their IVs come out as they are before that.
    #[must_use]
    pub fn new(spec: &CipherSpec) -> Self {
        Self {
            kind: spec.iv(),
            iv_offset: spec.iv_offset().get(),
            sector_shift: spec.sector_size().shift(),
            large_sectors: spec.iv_large_sectors(),
        }
    }

    /// Fills `ivs` for the crypto sectors from the one that starts at 512-byte sector `first`.
    pub fn fill(&self, first: SectorIndex, ivs: &mut [Iv]) {
        let numbers = self.numbers(first);
        for (index, iv) in ivs.iter_mut().enumerate() {
            *iv = numbers.iv(index);
        }
    }

    /// The numbers behind the IVs of the crypto sectors from `first` on.
    #[inline]
    pub(crate) fn numbers(&self, first: SectorIndex) -> IvNumbers {
        let cc_sector = first.get().wrapping_add(self.iv_offset);
        let (number, stride_log2, bits) = if self.large_sectors {
            let shift = self.sector_shift;
            (cc_sector >> shift, 0, 64 - shift)
        } else {
            (cc_sector, self.sector_shift, 64)
        };
        let numbers = IvNumbers {
            number,
            stride_log2,
            bits,
            big_endian: false,
        };
        match self.kind {
            IvKind::None | IvKind::Null => IvNumbers { bits: 0, ..numbers },
            IvKind::Plain => IvNumbers {
                bits: 32,
                ..numbers
            },
            IvKind::Plain64 | IvKind::Essiv => numbers,
            IvKind::Plain64be => IvNumbers {
                big_endian: true,
                ..numbers
            },
            IvKind::Benbi => numbers.benbi(),
            IvKind::Eboiv => numbers.scaled(9 + self.sector_shift),
        }
    }
}

/// The numbers behind the IVs of consecutive crypto sectors: an arithmetic progression, so that a
/// vector of IVs can be made in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IvNumbers {
    number: u64,
    stride_log2: u32,
    /// Low bits that go into the IV.
    bits: u32,
    /// Whether the number stands at the end of the IV, most significant byte first.
    big_endian: bool,
}

impl IvNumbers {
    /// Counts AES blocks from 1, at the end of the IV. What is shifted out of 64 bits is lost, so the
    /// mask of large sectors no longer matters.
    fn benbi(self) -> Self {
        const BLOCKS_PER_SECTOR_LOG2: u32 = 5;
        let scaled = self.scaled(BLOCKS_PER_SECTOR_LOG2);
        Self {
            number: scaled.number.wrapping_add(1),
            big_endian: true,
            ..scaled
        }
    }

    /// The same numbers times a power of two.
    fn scaled(self, log2: u32) -> Self {
        Self {
            number: self.number << log2,
            stride_log2: self.stride_log2 + log2,
            bits: 64,
            big_endian: self.big_endian,
        }
    }

    /// Whether an IV is the number in little-endian order, filled up with zeros.
    pub(crate) fn is_little_endian(&self) -> bool {
        !self.big_endian
    }

    /// The number of the sector `index` places behind the first.
    #[inline(always)]
    pub(crate) fn number(&self, index: usize) -> u64 {
        let number = self.number.wrapping_add((index as u64) << self.stride_log2);
        let mask = u64::MAX.checked_shr(64 - self.bits).unwrap_or(0);
        number & mask
    }

    /// The IV of the sector `index` places behind the first.
    #[inline]
    pub(crate) fn iv(&self, index: usize) -> Iv {
        let number = u128::from(self.number(index));
        if self.big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }
}

/// The IVs of a run of data units.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ivs<'a> {
    /// Those of `count` consecutive sectors, in little-endian order.
    Numbers {
        /// Their numbers.
        numbers: IvNumbers,
        /// How many there are.
        count: usize,
    },
    /// Any others.
    Listed(&'a [Iv]),
}

impl Ivs<'_> {
    /// How many there are.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers { count, .. } => *count,
            Self::Listed(ivs) => ivs.len(),
        }
    }

    /// Fills `ivs` from IV `from` on.
    ///
    /// # Panics
    /// Where a list is too short.
    pub(crate) fn fill(&self, from: usize, ivs: &mut [Iv]) {
        match self {
            Self::Numbers { numbers, .. } => {
                for (index, iv) in ivs.iter_mut().enumerate() {
                    *iv = numbers.iv(from + index);
                }
            }
            Self::Listed(list) => ivs.copy_from_slice(&list[from..from + ivs.len()]),
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

    fn first_iv(text: &str, first: u64, change: impl Fn(CipherSpec) -> CipherSpec) -> Iv {
        let spec = change(text.parse().unwrap());
        let mut ivs = [[0xff; 16]];
        IvGenerator::new(&spec).fill(SectorIndex::new(first), &mut ivs);
        ivs[0]
    }

    #[test]
    fn every_kind_is_as_the_kernel_writes_it() {
        let large = |spec: CipherSpec| spec.with_sector_size(SectorSize::B4096);
        let counted_large = |spec: CipherSpec| large(spec).with_iv_large_sectors(true);
        let big = |number: u64| u128::from(number).to_be_bytes();
        let little = |number: u64| u128::from(number).to_le_bytes();
        let sector = 0x0123_4567_89ab_cde0;
        assert_eq!(first_iv("aes-xts-plain64be", sector, large), big(sector));
        assert_eq!(first_iv("aes-cbc-benbi", 8, large), big((8 << 5) + 1));
        assert_eq!(
            first_iv("aes-cbc-benbi", 8, counted_large),
            big((1 << 5) + 1)
        );
        assert_eq!(first_iv("aes-cbc-null", sector, large), [0; 16]);
        assert_eq!(
            first_iv("aes-cbc-essiv:sha256", sector, large),
            little(sector)
        );
        assert_eq!(first_iv("aes-cbc-eboiv", 8, large), little(8 * 4096));
        assert_eq!(first_iv("aes-cbc-eboiv", 8, counted_large), little(4096));
        let wrapped = sector << 5;
        assert_eq!(first_iv("aes-cbc-benbi", sector, large), big(wrapped + 1));
    }

    #[test]
    fn sector_numbers_wrap_at_64_bits() {
        let same = |spec| spec;
        assert_eq!(numbers("aes-xts-plain64", u64::MAX, same), [u64::MAX, 0, 1]);
        let offset = |spec: CipherSpec| spec.with_iv_offset(SectorCount::new(u64::MAX));
        assert_eq!(numbers("aes-xts-plain64", 5, offset), [4, 5, 6]);
    }
}
