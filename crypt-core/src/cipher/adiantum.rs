//! Adiantum (Crowley and Biggers 2018), dm-crypt's choice for CPUs without AES instructions, from the
//! `adiantum` library over RustCrypto's `chacha20` and `aes`.
//!
//! Its tweak has 32 bytes, of which the IV is the first half. There is one implementation only.
//! Data units have 16 to 4096 bytes. The library wipes its keys on drop.

#![forbid(unsafe_code)]

use adiantum::Cipher;
use aes::Aes256;
use aes::cipher::inout::InOutBuf;
use chacha20::XChaCha12;

use super::Backend;
use super::engine::{Engine, EngineVisitor, keyed};
use crate::error::Result;
use crate::iv::Ivs;
use crate::key::Key;

/// Keys the engine. A key has 32 bytes.
pub(super) fn with_engine<V: EngineVisitor>(key: &Key, visitor: V) -> Result<V::Output> {
    Ok(visitor.visit(Adiantum(keyed(key.expose())?)))
}

struct Adiantum(Cipher<XChaCha12, Aes256>);

impl Engine for Adiantum {
    const BACKEND: Backend = Backend::Portable;

    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        for_each_unit(ivs, unit_len, data, |tweak, unit| {
            self.0.encrypt(unit, tweak);
        });
    }

    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>) {
        for_each_unit(ivs, unit_len, data, |tweak, unit| {
            self.0.decrypt(unit, tweak);
        });
    }
}

fn for_each_unit(
    ivs: Ivs<'_>,
    unit_len: usize,
    data: InOutBuf<'_, '_, u8>,
    work: impl Fn(&[u8], &mut [u8]),
) {
    let units = data.into_out_with_copied_in().chunks_exact_mut(unit_len);
    for (index, unit) in units.enumerate() {
        let mut tweak = [[0; 16]; 2];
        ivs.fill(index, &mut tweak[..1]);
        work(tweak.as_flattened(), unit);
    }
}
