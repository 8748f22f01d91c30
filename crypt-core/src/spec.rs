//! What to encrypt with: a cipher specification in dm-crypt's notation, plus how sectors are
//! numbered.
//!
//! [`CipherSpec`] is a plain value: parsing it needs no key, and a parsed one always names a cipher
//! that this build has. [`CipherSpec::build`] turns it and a key into a keyed cipher. The notation
//! is that of the kernel's `Documentation/admin-guide/device-mapper/dm-crypt.rst`:
//! `cipher-mode-iv`.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use subtle::ConstantTimeEq;

use crate::cipher::{self, Backend, SectorCipher};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::units::{SectorCount, SectorSize};

/// Cipher, mode and IV generator, with the numbering of sectors.
///
/// ```
/// use crypt_core::spec::CipherSpec;
/// use crypt_core::units::SectorSize;
///
/// let spec: CipherSpec = "aes-xts-plain64".parse()?;
/// let spec = spec.with_sector_size(SectorSize::B4096);
/// assert_eq!(spec.to_string(), "aes-xts-plain64");
/// # Ok::<(), crypt_core::error::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CipherSpec {
    algorithm: Algorithm,
    iv: IvKind,
    sector_size: SectorSize,
    iv_offset: SectorCount,
    iv_large_sectors: bool,
}

/// Cipher and mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// AES in XTS mode (IEEE 1619, NIST SP 800-38E), with a 256-bit or 512-bit key.
    AesXts,
    /// AES in CBC mode (NIST SP 800-38A), with a 128-bit or 256-bit key, for old volumes.
    AesCbc,
    /// Adiantum (Crowley and Biggers 2018) with XChaCha12, AES-256 and NH, with a 256-bit key, for
    /// CPUs without AES instructions.
    Adiantum,
    /// No encryption at all, with an empty key: the cost of everything else.
    Null,
}

/// How the IV of a crypto sector comes from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IvKind {
    /// No IV; the notation has none either (`cipher_null-ecb`).
    None,
    /// The low 32 bits of the sector number, little-endian; wraps at 2 TiB of 512-byte sectors.
    Plain,
    /// The 64-bit sector number, little-endian.
    Plain64,
    /// The 64-bit sector number, big-endian, at the end of the IV.
    Plain64be,
    /// The number of the sector's first block, counted from 1, as in `plain64be`.
    Benbi,
    /// Zeros.
    Null,
    /// `plain64`, encrypted by AES-256 with the SHA-256 of the volume key (`essiv:sha256`).
    Essiv,
    /// The byte offset of the sector, little-endian, used as the IV to encrypt a block of zeros with
    /// the volume's own cipher and key.
    Eboiv,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::AesXts, Self::AesCbc, Self::Adiantum, Self::Null];

    /// The part of the notation in front of the IV generator.
    const fn notation(self) -> &'static str {
        match self {
            Self::AesXts => "aes-xts",
            Self::AesCbc => "aes-cbc",
            Self::Adiantum => "xchacha12,aes-adiantum",
            Self::Null => "cipher_null-ecb",
        }
    }

    /// The IV generators that go with it, the usual one first.
    const fn iv_kinds(self) -> &'static [IvKind] {
        use IvKind::{Benbi, Eboiv, Essiv, Null, Plain, Plain64, Plain64be};
        match self {
            Self::AesXts => &[Plain64, Plain, Plain64be, Benbi, Null, Essiv, Eboiv],
            Self::AesCbc => &[Essiv, Plain64, Plain, Plain64be, Benbi, Null, Eboiv],
            Self::Adiantum => &[Plain64, Plain, Null],
            Self::Null => &[IvKind::None],
        }
    }
}

impl IvKind {
    /// The part of the notation behind the mode.
    const fn notation(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Plain => "plain",
            Self::Plain64 => "plain64",
            Self::Plain64be => "plain64be",
            Self::Benbi => "benbi",
            Self::Null => "null",
            Self::Essiv => "essiv:sha256",
            Self::Eboiv => "eboiv",
        }
    }
}

/// Why a key is wanted, which decides what a weak one means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyUse {
    /// For data yet to be written: a weak key is refused.
    Create,
    /// For data that exists: a weak key is accepted, as dm-crypt does, and reported.
    Open,
}

/// A property of an accepted key that its user should hear about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyWeakness {
    /// Both halves of an XTS key are the same, which leaks relations between blocks (Rogaway 2004;
    /// forbidden by FIPS 140-2 IG A.9).
    EqualHalves,
}

impl CipherSpec {
    /// The notations that [`CipherSpec::from_str`] accepts.
    pub const SUPPORTED: &'static [&'static str] = &[
        "aes-xts-plain64",
        "aes-xts-plain",
        "aes-xts-plain64be",
        "aes-xts-benbi",
        "aes-xts-null",
        "aes-xts-essiv:sha256",
        "aes-xts-eboiv",
        "aes-cbc-essiv:sha256",
        "aes-cbc-plain64",
        "aes-cbc-plain",
        "aes-cbc-plain64be",
        "aes-cbc-benbi",
        "aes-cbc-null",
        "aes-cbc-eboiv",
        "xchacha12,aes-adiantum-plain64",
        "xchacha12,aes-adiantum-plain",
        "xchacha12,aes-adiantum-null",
        "cipher_null-ecb",
    ];

    /// The same cipher with this unit of one IV. The default is 512 bytes.
    #[must_use]
    pub const fn with_sector_size(mut self, sector_size: SectorSize) -> Self {
        self.sector_size = sector_size;
        self
    }

    /// The same cipher with this many 512-byte sectors added to each sector number before the IV is
    /// made: `iv_offset` of a dm-crypt table line, `iv_tweak` of a LUKS2 segment. The default is 0.
    ///
    /// It must be a whole number of crypto sectors; [`CipherSpec::build`] refuses it otherwise.
    #[must_use]
    pub const fn with_iv_offset(mut self, iv_offset: SectorCount) -> Self {
        self.iv_offset = iv_offset;
        self
    }

    /// The same cipher with IVs that count crypto sectors (dm-crypt's `iv_large_sectors`) instead of
    /// 512-byte sectors, the default. LUKS2 never sets it.
    #[must_use]
    pub const fn with_iv_large_sectors(mut self, iv_large_sectors: bool) -> Self {
        self.iv_large_sectors = iv_large_sectors;
        self
    }

    /// Block cipher and mode.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// IV generator.
    #[must_use]
    pub const fn iv(&self) -> IvKind {
        self.iv
    }

    /// The unit of one IV.
    #[must_use]
    pub const fn sector_size(&self) -> SectorSize {
        self.sector_size
    }

    /// What is added to each sector number.
    #[must_use]
    pub const fn iv_offset(&self) -> SectorCount {
        self.iv_offset
    }

    /// Whether IVs count crypto sectors rather than 512-byte sectors.
    #[must_use]
    pub const fn iv_large_sectors(&self) -> bool {
        self.iv_large_sectors
    }

    /// Key lengths that fit, in bytes, preferred first.
    #[must_use]
    pub const fn key_lens_bytes(&self) -> &'static [usize] {
        match self.algorithm {
            Algorithm::AesXts => &[64, 32],
            Algorithm::AesCbc => &[32, 16],
            Algorithm::Adiantum => &[32],
            Algorithm::Null => &[0],
        }
    }

    /// Checks the IV offset against the sector size, as dm-crypt does.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where the offset is not a whole number of crypto sectors.
    pub fn validate(&self) -> Result<()> {
        let sectors = 1 << self.sector_size.shift();
        if self.iv_offset.get().is_multiple_of(sectors) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "iv_offset {} is not a multiple of {sectors}, the number of 512-byte sectors in \
                 one {}-byte crypto sector",
                self.iv_offset, self.sector_size
            ),
        ))
    }

    /// Checks that `key` fits, and reports a weakness that `key_use` tolerates.
    ///
    /// # Errors
    /// [`ErrorKind::Key`] where the length is wrong, or where the key is weak and meant for new
    /// data.
    pub fn check_key(&self, key: &Key, key_use: KeyUse) -> Result<Option<KeyWeakness>> {
        self.check_key_len(key)?;
        let weakness = self.key_weakness(key);
        match (weakness, key_use) {
            (Some(weakness), KeyUse::Create) => Err(Error::new(
                ErrorKind::Key,
                format!("refused to encrypt new data with a weak key: {weakness}; make a new key"),
            )),
            _ => Ok(weakness),
        }
    }

    /// Builds the keyed cipher, on `backend` or else on the one that `CRYPT_CORE_BACKEND` names or
    /// else on the fastest that this CPU has. Adiantum and `cipher_null` exist once only and ignore
    /// the choice.
    ///
    /// Weak keys are accepted, as for data that exists; callers that create a volume ask
    /// [`CipherSpec::check_key`] first.
    ///
    /// # Errors
    /// [`ErrorKind::Key`] for a key of the wrong length; [`ErrorKind::InvalidInput`] for an IV offset
    /// that doesn't fit the sector size or an unknown backend name; [`ErrorKind::Unsupported`] for a
    /// backend that this CPU or this cipher lacks, with the list of those it has.
    pub fn build(&self, key: &Key, backend: Option<Backend>) -> Result<Arc<dyn SectorCipher>> {
        self.validate()?;
        self.check_key_len(key)?;
        cipher::build(self, key, backend)
    }

    fn check_key_len(&self, key: &Key) -> Result<()> {
        if self.key_lens_bytes().contains(&key.len_bytes()) {
            return Ok(());
        }
        let wanted: Vec<String> = self
            .key_lens_bytes()
            .iter()
            .map(|bytes| format!("{} bits", 8 * bytes))
            .collect();
        Err(Error::new(
            ErrorKind::Key,
            format!(
                "{self} takes a key of {}: this one has {} bits",
                wanted.join(" or "),
                8 * key.len_bytes()
            ),
        ))
    }

    fn key_weakness(&self, key: &Key) -> Option<KeyWeakness> {
        if self.algorithm != Algorithm::AesXts {
            return None;
        }
        let (data_key, tweak_key) = key.expose().split_at(key.len_bytes() / 2);
        let equal: bool = data_key.ct_eq(tweak_key).into();
        equal.then_some(KeyWeakness::EqualHalves)
    }
}

impl FromStr for CipherSpec {
    type Err = Error;

    /// Parses `cipher-mode-iv`, in lower case as the kernel does.
    fn from_str(text: &str) -> Result<Self> {
        let (algorithm, iv) = parse(text).ok_or_else(|| unsupported(text))?;
        Ok(Self {
            algorithm,
            iv,
            sector_size: SectorSize::default(),
            iv_offset: SectorCount::default(),
            iv_large_sectors: false,
        })
    }
}

impl fmt::Display for CipherSpec {
    /// Prints the notation only, without sector size and offset.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.notation())?;
        match self.iv {
            IvKind::None => Ok(()),
            iv => write!(f, "-{}", iv.notation()),
        }
    }
}

impl fmt::Display for KeyWeakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EqualHalves => f.write_str("both halves of the XTS key are the same"),
        }
    }
}

fn parse(text: &str) -> Option<(Algorithm, IvKind)> {
    Algorithm::ALL.into_iter().find_map(|algorithm| {
        let iv = match text.strip_prefix(algorithm.notation())? {
            "" => "",
            rest => rest.strip_prefix('-').filter(|iv| !iv.is_empty())?,
        };
        let mut kinds = algorithm.iv_kinds().iter();
        let kind = kinds.find(|kind| kind.notation() == iv)?;
        Some((algorithm, *kind))
    })
}

/// Says which part of the notation is not supported, and what is.
fn unsupported(text: &str) -> Error {
    let known = Algorithm::ALL
        .into_iter()
        .find(|algorithm| text.starts_with(algorithm.notation()));
    let what = match known {
        Some(algorithm) => match text[algorithm.notation().len()..].trim_start_matches('-') {
            "" => format!("{} without an IV generator", algorithm.notation()),
            iv => format!("the IV generator `{iv}` with {}", algorithm.notation()),
        },
        None => match text
            .strip_prefix("aes-")
            .and_then(|rest| rest.split('-').next())
        {
            Some(mode) => format!("the mode `{mode}` of aes"),
            None => format!("`{text}`"),
        },
    };
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "cipher `{text}`: {what} is not supported; use one of {}",
            CipherSpec::SUPPORTED.join(" ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> CipherSpec {
        text.parse().unwrap()
    }

    #[test]
    fn every_supported_notation_prints_as_it_was_written() {
        for text in CipherSpec::SUPPORTED {
            assert_eq!(spec(text).to_string(), *text);
        }
        let kinds = Algorithm::ALL.map(|algorithm| algorithm.iv_kinds().len());
        assert_eq!(CipherSpec::SUPPORTED.len(), kinds.iter().sum::<usize>());
    }

    #[test]
    fn the_rest_is_refused_by_name_with_the_alternatives() {
        for (text, named) in [
            ("aes-xts-plain65", "`plain65`"),
            ("aes-xts-plain64-", "`plain64-`"),
            ("aes-xtsplain64", "`plain64`"),
            ("aes-cbc-essiv:md5", "`essiv:md5`"),
            ("xchacha12,aes-adiantum-benbi", "`benbi`"),
            ("aes-xts", "without an IV generator"),
            ("aes-lrw-plain64", "`lrw`"),
            ("serpent-xts-plain64", "`serpent-xts-plain64`"),
            ("AES-XTS-PLAIN64", "`AES-XTS-PLAIN64`"),
            ("", "``"),
        ] {
            let error = text.parse::<CipherSpec>().unwrap_err();
            let message = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(
                message.contains(named) && message.contains("aes-xts-plain64"),
                "{message}"
            );
        }
    }

    #[test]
    fn iv_offset_is_a_whole_number_of_crypto_sectors() {
        let large = spec("aes-xts-plain64").with_sector_size(SectorSize::B4096);
        for counted_large in [false, true] {
            let large = large.with_iv_large_sectors(counted_large);
            assert!(
                large
                    .with_iv_offset(SectorCount::new(16))
                    .validate()
                    .is_ok()
            );
            let error = large.with_iv_offset(SectorCount::new(12)).validate();
            let message = error.unwrap_err().to_string();
            assert!(message.contains("12") && message.contains('8'), "{message}");
        }
    }

    #[test]
    fn equal_halves_are_refused_for_new_data_and_reported_for_old() {
        let key = Key::from_bytes(&[9; 64]).unwrap();
        let xts = spec("aes-xts-plain64");
        assert!(xts.check_key(&key, KeyUse::Create).is_err());
        let weakness = xts.check_key(&key, KeyUse::Open).unwrap();
        assert_eq!(weakness, Some(KeyWeakness::EqualHalves));
    }

    #[test]
    fn wrong_key_lengths_are_named() {
        for (text, len) in [
            ("aes-xts-plain64", 48),
            ("aes-xts-plain", 0),
            ("cipher_null-ecb", 32),
        ] {
            let key = Key::from_bytes(&vec![1; len]).unwrap();
            let error = spec(text).build(&key, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Key);
            let bits = format!("{} bits", 8 * len);
            assert!(error.to_string().contains(&bits), "{error}");
        }
    }
}
