//! What a mode's implementation on one backend offers: runs of data units, each with its own IV.
//!
//! An engine knows raw IVs only; [`super::sectors`] numbers the sectors of a volume for it. The type
//! of an engine is fixed when a cipher is built, so that a request costs one virtual call.

#![forbid(unsafe_code)]

use aes::cipher::KeyInit;
use aes::cipher::inout::InOutBuf;

use super::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::iv::Ivs;

/// A keyed mode over runs of equally long data units.
///
/// `data` holds one unit of `unit_len` bytes per IV. Which lengths a mode takes, its module says;
/// callers see to it.
pub(super) trait Engine: Send + Sync {
    /// Which backend this is.
    const BACKEND: Backend;

    /// Encrypts every unit.
    fn encrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>);

    /// Decrypts every unit.
    fn decrypt_units(&self, ivs: Ivs<'_>, unit_len: usize, data: InOutBuf<'_, '_, u8>);
}

/// What to do with an engine once its type is known.
pub(super) trait EngineVisitor {
    type Output;
    fn visit(self, engine: impl Engine + 'static) -> Self::Output;
}

/// Keys a block cipher of the `aes` library. It wipes its round keys on drop.
pub(super) fn keyed<C: KeyInit>(key: &[u8]) -> Result<C> {
    C::new_from_slice(key).map_err(|error| {
        Error::new(
            ErrorKind::Key,
            format!("a block cipher key of {} bytes", key.len()),
        )
        .with_source(error)
    })
}
