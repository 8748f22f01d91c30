//! Volume keys: raw key bytes that are wiped when dropped, never printed, and compared in constant
//! time.
//!
//! A [`Key`] knows its bytes only; which lengths fit and which keys are weak is for the cipher
//! specification to say ([`crate::spec::CipherSpec::check_key`]). The bytes live in memory that is
//! locked where the system allows and left out of core dumps.

#![forbid(unsafe_code)]

use std::fmt;

use subtle::ConstantTimeEq;

use crate::error::{Error, ErrorKind, Result};
use crate::secret::Secret;

/// Longest key, far above what any supported cipher takes.
const MAX_LEN: usize = 256;

/// Raw key bytes. `Debug` prints the length only.
pub struct Key {
    bytes: Secret<[u8; MAX_LEN]>,
    len: usize,
}

impl Key {
    /// Copies a key. The caller wipes its own copy.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for more than 256 bytes; an I/O error where no memory is left.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_LEN {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a key of {} bytes is too long: at most {MAX_LEN} bytes",
                    bytes.len()
                ),
            ));
        }
        let mut secret = Secret::new([0; MAX_LEN])?;
        secret[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            bytes: secret,
            len: bytes.len(),
        })
    }

    /// The key without bytes, for `cipher_null`.
    ///
    /// # Errors
    /// An I/O error where no memory is left.
    pub fn empty() -> Result<Self> {
        Self::from_bytes(&[])
    }

    /// Reads a key from hexadecimal digits, as in a device-mapper table line; `-` is the empty key.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an odd number of digits or anything that isn't one. The
    /// message never repeats the input.
    pub fn from_hex(digits: &str) -> Result<Self> {
        if digits == "-" {
            return Self::empty();
        }
        let digits = digits.as_bytes();
        if !digits.len().is_multiple_of(2) || digits.len() > 2 * MAX_LEN {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a hexadecimal key has an even number of digits, at most {}: found {}",
                    2 * MAX_LEN,
                    digits.len()
                ),
            ));
        }
        let mut secret = Secret::new([0; MAX_LEN])?;
        for (index, pair) in digits.chunks_exact(2).enumerate() {
            secret[index] = hex_byte(pair).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("key digit {} or the next is not hexadecimal", 2 * index + 1),
                )
            })?;
        }
        Ok(Self {
            bytes: secret,
            len: digits.len() / 2,
        })
    }

    /// A copy in memory of its own, wiped separately.
    ///
    /// # Errors
    /// An I/O error where no memory is left.
    pub fn try_clone(&self) -> Result<Self> {
        Self::from_bytes(self.expose())
    }

    /// The secret bytes. Don't copy them to memory that isn't wiped.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Whether the key's memory is locked into RAM, which `RLIMIT_MEMLOCK` may forbid.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.bytes.is_locked()
    }
}

impl PartialEq for Key {
    /// Takes the same time wherever two keys of equal length differ.
    fn eq(&self, other: &Self) -> bool {
        self.expose().ct_eq(other.expose()).into()
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bits, redacted)", 8 * self.len)
    }
}

fn hex_byte(pair: &[u8]) -> Option<u8> {
    let high = char::from(pair[0]).to_digit(16)?;
    let low = char::from(pair[1]).to_digit(16)?;
    u8::try_from(16 * high + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_byte() {
        let key = Key::from_bytes(&[0xab; 64]).unwrap();
        let text = format!("{key:?}");
        assert_eq!(text, "Key(512 bits, redacted)");
    }

    #[test]
    fn hex_round_trips_and_refuses_garbage_without_showing_it() {
        let key = Key::from_hex("00ffA1").unwrap();
        assert_eq!(key.expose(), [0x00, 0xff, 0xa1]);
        assert_eq!(Key::from_hex("-").unwrap().len_bytes(), 0);
        for bad in ["abc", "zz", "0x12", "é1"] {
            let error = Key::from_hex(bad).unwrap_err().to_string();
            assert!(!error.contains(bad), "{error}");
        }
    }

    #[test]
    fn equality_compares_content_and_length() {
        let key = |bytes: &[u8]| Key::from_bytes(bytes).unwrap();
        assert_eq!(key(&[1, 2]), key(&[1, 2]).try_clone().unwrap());
        assert_ne!(key(&[1, 2]), key(&[1, 3]));
        assert_ne!(key(&[1, 2]), key(&[1, 2, 0]));
        assert!(Key::from_bytes(&[0; 257]).is_err());
    }
}
