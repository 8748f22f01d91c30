//! Checksums of verified blocks.

#![forbid(unsafe_code)]

use md5::{Digest, Md5};
use sha2::{Sha256, Sha512};

use super::header::fio_crc32c;

/// Longest checksum in bytes.
pub(super) const MOST_DIGEST_BYTES: usize = 64;

/// How blocks are told right from wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// CRC-32C, as fio writes it.
    Crc32c,
    /// MD5, as fio writes it.
    Md5,
    /// SHA-256. fio's is another one: it keeps one byte of each word.
    Sha256,
    /// SHA-512, likewise.
    Sha512,
    /// Every byte is known; there is no header.
    Pattern,
}

/// All methods, by fio's names.
const NAMES: &[(&str, Method)] = &[
    ("crc32c", Method::Crc32c),
    ("crc32c-intel", Method::Crc32c),
    ("md5", Method::Md5),
    ("sha256", Method::Sha256),
    ("sha512", Method::Sha512),
    ("pattern", Method::Pattern),
];

impl Method {
    /// The method of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, method)| *method)
    }

    /// fio's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, method)| *method == self);
        found.map_or("", |(name, _)| name)
    }

    /// Length of its checksum; `None` where there is no header.
    #[must_use]
    pub fn digest_bytes(self) -> Option<usize> {
        match self {
            Self::Crc32c => Some(4),
            Self::Md5 => Some(16),
            Self::Sha256 => Some(32),
            Self::Sha512 => Some(64),
            Self::Pattern => None,
        }
    }

    /// Its numbers in headers. fio never has those of checksums that differ from its own.
    pub(super) fn fio_kinds(self) -> &'static [u16] {
        match self {
            Self::Crc32c => &[5, 6],
            Self::Md5 => &[2],
            Self::Sha256 => &[0x8009],
            Self::Sha512 => &[0x800a],
            Self::Pattern => &[18],
        }
    }

    /// Computes the checksum, as long as [`Method::digest_bytes`] says.
    pub(super) fn digest(self, body: &[u8], digest: &mut [u8]) {
        match self {
            Self::Crc32c => digest.copy_from_slice(&fio_crc32c(body).to_le_bytes()),
            Self::Md5 => digest.copy_from_slice(&Md5::digest(body)),
            Self::Sha256 => digest.copy_from_slice(&Sha256::digest(body)),
            Self::Sha512 => digest.copy_from_slice(&Sha512::digest(body)),
            Self::Pattern => {}
        }
    }
}
