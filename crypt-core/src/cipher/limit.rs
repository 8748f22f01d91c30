//! The limit that a backend's other modes are measured against: its AES rounds alone.
//!
//! [`AesLimit`] runs each block by itself (ECB), with as many in flight, the same loads and the same
//! stores as the backend's XTS, but without tweaks. It exists to be measured. As encryption it is
//! worthless, since equal blocks stay equal.

#![forbid(unsafe_code)]

use std::fmt;

use aes::cipher::inout::InOutBuf;

use super::Backend;
use super::blocks::{Blocks, keyed_blocks};
use crate::error::Result;
use crate::key::Key;

/// AES blocks without a mode, on one backend. For measurements only.
pub struct AesLimit {
    blocks: Box<dyn Blocks>,
    backend: Backend,
}

impl AesLimit {
    /// Keys AES-128 (16 bytes) or AES-256 (32 bytes). The backend is chosen as in
    /// [`crate::spec::CipherSpec::build`]; `portable` and `batched` are the same here.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Key`] for any other key length, and as [`Backend::choose`].
    pub fn new(key: &Key, backend: Option<Backend>) -> Result<Self> {
        let backend = Backend::choose(backend)?;
        let blocks = keyed_blocks(key.expose(), backend)?;
        Ok(Self { blocks, backend })
    }

    /// Encrypts the blocks of `src` to `dst`.
    ///
    /// # Panics
    /// Where the lengths differ or are not a multiple of 16.
    pub fn encrypt(&self, src: &[u8], dst: &mut [u8]) {
        assert_eq!(
            src.len(),
            dst.len(),
            "source and destination differ in length"
        );
        if let Ok(data) = InOutBuf::new(src, dst) {
            self.blocks.encrypt(whole_blocks(data));
        }
    }

    /// Encrypts the blocks of `buf` where they are.
    ///
    /// # Panics
    /// Where the length is not a multiple of 16.
    pub fn encrypt_in_place(&self, buf: &mut [u8]) {
        self.blocks.encrypt(whole_blocks(buf.into()));
    }

    /// Decrypts the blocks of `buf` where they are.
    ///
    /// # Panics
    /// Where the length is not a multiple of 16.
    pub fn decrypt_in_place(&self, buf: &mut [u8]) {
        self.blocks.decrypt(whole_blocks(buf.into()));
    }

    /// The backend that runs.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

impl fmt::Debug for AesLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AesLimit")
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

fn whole_blocks<'a>(data: InOutBuf<'a, 'a, u8>) -> InOutBuf<'a, 'a, u8> {
    assert!(
        data.len().is_multiple_of(16),
        "{} bytes are not a whole number of blocks",
        data.len()
    );
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_encrypts_blocks_as_fips_197_does() {
        // FIPS 197, appendix C.1 and C.3.
        let cases = [
            (16, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128),
            (32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089),
        ];
        let plaintext = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
        for backend in Backend::available() {
            for (key_len, expected) in cases {
                let key: Vec<u8> = (0..key_len).collect();
                let limit = AesLimit::new(&Key::from_bytes(&key).unwrap(), Some(backend)).unwrap();
                for blocks in 1..80 {
                    let mut buf = plaintext.repeat(blocks);
                    limit.encrypt_in_place(&mut buf);
                    assert_eq!(
                        buf,
                        expected.to_be_bytes().repeat(blocks),
                        "{backend} {blocks}"
                    );
                    limit.decrypt_in_place(&mut buf);
                    assert_eq!(buf, plaintext.repeat(blocks), "{backend} {blocks}");
                }
            }
        }
    }
}
