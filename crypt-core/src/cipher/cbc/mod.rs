//! AES-CBC (NIST SP 800-38A) over crypto sectors, for old volumes.
//!
//! Decryption is parallel by nature. A sector can only be encrypted block after block, so many
//! sectors are encrypted in step. Data units are multiples of 16 bytes.

#![forbid(unsafe_code)]

mod batched;
mod portable;

use aes::{Aes128, Aes256};

use super::Backend;
use super::engine::EngineVisitor;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;

use batched::Batched;
use portable::Portable;

/// Keys the engine that `backend` and the key's length ask for.
///
/// # Errors
/// [`ErrorKind::Key`] unless the key has 16 or 32 bytes.
pub(super) fn with_engine<V: EngineVisitor>(
    key: &Key,
    backend: Backend,
    visitor: V,
) -> Result<V::Output> {
    let key = key.expose();
    match (backend, key.len()) {
        (_, len) if len != 16 && len != 32 => Err(Error::new(
            ErrorKind::Key,
            format!(
                "AES-CBC takes a key of 128 or 256 bits: this one has {} bits",
                8 * len
            ),
        )),
        (Backend::Portable, 16) => Ok(visitor.visit(Portable::<Aes128>::new(key)?)),
        (Backend::Portable, _) => Ok(visitor.visit(Portable::<Aes256>::new(key)?)),
        (Backend::Batched, 16) => Ok(visitor.visit(Batched::<Aes128>::new(key)?)),
        (Backend::Batched, _) => Ok(visitor.visit(Batched::<Aes256>::new(key)?)),
        #[cfg(target_arch = "x86_64")]
        (Backend::AesNi, _) => with_kernel::<x86::AesNi, V>(key, visitor),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes256, _) => with_kernel::<x86::Vaes256, V>(key, visitor),
        #[cfg(target_arch = "x86_64")]
        (Backend::Vaes512, _) => with_kernel::<x86::Vaes512, V>(key, visitor),
    }
}

/// Keys the kernel of one instruction set. The key has 16 or 32 bytes.
#[cfg(target_arch = "x86_64")]
fn with_kernel<I: x86::InstructionSet, V: EngineVisitor>(
    key: &[u8],
    visitor: V,
) -> Result<V::Output> {
    use x86::{AES_128, AES_256, CbcKernel};
    let isa = I::new().ok_or_else(|| I::BACKEND.unavailable())?;
    Ok(match key.len() {
        16 => visitor.visit(CbcKernel::<I, AES_128>::new(isa, key)?),
        _ => visitor.visit(CbcKernel::<I, AES_256>::new(isa, key)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::engine::Engine;
    use crate::iv::{Iv, Ivs};

    /// NIST SP 800-38A, F.2: keys and ciphertexts of CBC-AES128 and CBC-AES256.
    const CASES: [(&str, &str); 2] = [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
             73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
             39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        ),
    ];
    const PLAINTEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

    fn hex(digits: &str) -> Vec<u8> {
        Key::from_hex(digits).unwrap().expose().to_vec()
    }

    /// Encrypts and decrypts every number of equal units, so that every number of lanes is tried.
    struct Check<'a> {
        plaintext: &'a [u8],
        ciphertext: &'a [u8],
    }

    impl EngineVisitor for Check<'_> {
        type Output = ();

        fn visit(self, engine: impl Engine + 'static) {
            let iv: Iv = std::array::from_fn(|index| index as u8);
            for units in 1..70 {
                let ivs = vec![iv; units];
                let mut buf = self.plaintext.repeat(units);
                engine.encrypt_units(Ivs::Listed(&ivs), 64, buf.as_mut_slice().into());
                assert!(
                    buf == self.ciphertext.repeat(units),
                    "encrypt {units} units"
                );
                engine.decrypt_units(Ivs::Listed(&ivs), 64, buf.as_mut_slice().into());
                assert!(buf == self.plaintext.repeat(units), "decrypt {units} units");
            }
        }
    }

    #[test]
    fn every_backend_agrees_with_sp_800_38a() {
        let plaintext = hex(PLAINTEXT);
        for backend in Backend::available() {
            for (key, ciphertext) in CASES {
                let check = Check {
                    plaintext: &plaintext,
                    ciphertext: &hex(ciphertext),
                };
                with_engine(&Key::from_hex(key).unwrap(), backend, check).unwrap();
            }
        }
    }
}
