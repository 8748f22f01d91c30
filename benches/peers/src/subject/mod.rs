//! What is compared: one encryption or decryption of a request in place, sector by sector where a
//! library has nothing better.

mod aws_lc;

use std::sync::Arc;

use aes::Aes256;
use aes::cipher::KeyInit;
use crypt_core::cipher::{AesLimit, Backend, SectorCipher};
use crypt_core::error::Result;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorIndex, SectorSize};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use xts_mode::Xts128;

use aws_lc::AwsLc;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

impl Direction {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }
}

/// One contestant.
pub trait Subject {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Does one request that starts at 512-byte sector `first`.
    fn run(&mut self, direction: Direction, first: u64, buf: &mut [u8]);
}

/// The limit of the backend, ours on that backend, and the peers.
pub fn all(backend: Backend, sector_size: SectorSize) -> Result<Vec<Box<dyn Subject>>> {
    let key: [u8; 64] = std::array::from_fn(|index| index as u8);
    let spec: CipherSpec = "aes-xts-plain64".parse()?;
    let ours = spec
        .with_sector_size(sector_size)
        .build(&Key::from_bytes(&key)?, Some(backend))?;
    let limit = AesLimit::new(&Key::from_bytes(&key[..32])?, Some(backend))?;
    let sector_bytes = sector_size.bytes();
    Ok(vec![
        Box::new(limit),
        Box::new(Ours(ours)),
        Box::new(XtsMode::new(&key, sector_bytes)),
        Box::new(OpenSsl::new(&key, sector_bytes)),
        Box::new(AwsLc::new(&key, sector_bytes)),
    ])
}

impl Subject for AesLimit {
    fn name(&self) -> &'static str {
        "limit"
    }

    fn run(&mut self, direction: Direction, _first: u64, buf: &mut [u8]) {
        match direction {
            Direction::Encrypt => self.encrypt_in_place(buf),
            Direction::Decrypt => self.decrypt_in_place(buf),
        }
    }
}

struct Ours(Arc<dyn SectorCipher>);

impl Subject for Ours {
    fn name(&self) -> &'static str {
        "crypt-core"
    }

    fn run(&mut self, direction: Direction, first: u64, buf: &mut [u8]) {
        let first = SectorIndex::new(first);
        match direction {
            Direction::Encrypt => self.0.encrypt_in_place(first, buf),
            Direction::Decrypt => self.0.decrypt_in_place(first, buf),
        }
    }
}

/// The IV of the sector at index `index` of a request, as `plain64` counts.
fn iv(first: u64, index: usize, sector_bytes: usize) -> [u8; 16] {
    u128::from(first + (index * sector_bytes / 512) as u64).to_le_bytes()
}

struct XtsMode {
    xts: Xts128<Aes256>,
    sector_bytes: usize,
}

impl XtsMode {
    fn new(key: &[u8; 64], sector_bytes: usize) -> Self {
        let half = |half: &[u8]| Aes256::new_from_slice(half).expect("half a key has 32 bytes");
        Self {
            xts: Xts128::new(half(&key[..32]), half(&key[32..])),
            sector_bytes,
        }
    }
}

impl Subject for XtsMode {
    fn name(&self) -> &'static str {
        "xts-mode"
    }

    fn run(&mut self, direction: Direction, first: u64, buf: &mut [u8]) {
        for (index, sector) in buf.chunks_exact_mut(self.sector_bytes).enumerate() {
            let iv = iv(first, index, self.sector_bytes).into();
            match direction {
                Direction::Encrypt => self.xts.encrypt_sector(sector, iv),
                Direction::Decrypt => self.xts.decrypt_sector(sector, iv),
            }
        }
    }
}

/// OpenSSL's EVP, keyed once, with only the IV set per sector: its fastest way.
struct OpenSsl {
    encrypt: CipherCtx,
    decrypt: CipherCtx,
    sector_bytes: usize,
}

impl OpenSsl {
    fn new(key: &[u8; 64], sector_bytes: usize) -> Self {
        let cipher = Cipher::aes_256_xts();
        let mut encrypt = CipherCtx::new().expect("OpenSSL has memory");
        let mut decrypt = CipherCtx::new().expect("OpenSSL has memory");
        encrypt
            .encrypt_init(Some(cipher), Some(key), None)
            .expect("OpenSSL has AES-256-XTS");
        decrypt
            .decrypt_init(Some(cipher), Some(key), None)
            .expect("OpenSSL has AES-256-XTS");
        Self {
            encrypt,
            decrypt,
            sector_bytes,
        }
    }
}

impl Subject for OpenSsl {
    fn name(&self) -> &'static str {
        "openssl"
    }

    fn run(&mut self, direction: Direction, first: u64, buf: &mut [u8]) {
        for (index, sector) in buf.chunks_exact_mut(self.sector_bytes).enumerate() {
            let iv = iv(first, index, self.sector_bytes);
            let context = match direction {
                Direction::Encrypt => {
                    self.encrypt
                        .encrypt_init(None, None, Some(&iv))
                        .expect("an IV fits");
                    &mut self.encrypt
                }
                Direction::Decrypt => {
                    self.decrypt
                        .decrypt_init(None, None, Some(&iv))
                        .expect("an IV fits");
                    &mut self.decrypt
                }
            };
            let len = sector.len();
            let done = context
                .cipher_update_inplace(sector, len)
                .expect("a sector fits");
            assert_eq!(done, len, "OpenSSL stopped early");
        }
    }
}
