//! A decorator that makes a cipher take as long as a slower one would.
//!
//! It stands in for slow ciphers and old cores in experiments about where a cipher should run. The
//! thread stays busy for the modelled time, as it would with the real thing, so that scheduling and
//! contention behave alike. A cipher that is slower than the model is not made faster.

#![forbid(unsafe_code)]

use std::sync::Arc;

use super::SectorCipher;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::units::{SectorIndex, SectorSize};

/// A cipher slowed down to a number of bytes per second.
#[derive(Debug)]
pub struct Throttled {
    inner: Arc<dyn SectorCipher>,
    clock: Clock,
    bytes_per_second: u64,
}

impl Throttled {
    /// Slows `inner` down to at most `bytes_per_second` on each thread that calls it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a rate of zero.
    pub fn new(inner: Arc<dyn SectorCipher>, bytes_per_second: u64) -> Result<Self> {
        if bytes_per_second == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "a cipher throttled to 0 bytes per second never ends: give a rate above zero",
            ));
        }
        Ok(Self {
            inner,
            clock: Clock::monotonic(),
            bytes_per_second,
        })
    }

    /// The modelled rate.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    fn modelled_ns(&self, len: usize) -> u64 {
        let ns = len as u128 * 1_000_000_000 / u128::from(self.bytes_per_second);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Does `work` on `len` bytes and stays busy until the modelled time is over.
    fn paced(&self, len: usize, work: impl FnOnce()) {
        let start_ns = self.clock.now_ns();
        work();
        let duration_ns = self.modelled_ns(len);
        while self.clock.now_ns().saturating_sub(start_ns) < duration_ns {
            std::hint::spin_loop();
        }
    }
}

impl SectorCipher for Throttled {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.paced(src.len(), || self.inner.encrypt_sectors(first, src, dst));
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.paced(buf.len(), || self.inner.encrypt_in_place(first, buf));
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.paced(src.len(), || self.inner.decrypt_sectors(first, src, dst));
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.paced(buf.len(), || self.inner.decrypt_in_place(first, buf));
    }

    fn sector_size(&self) -> SectorSize {
        self.inner.sector_size()
    }

    /// The backend of the cipher that is slowed down.
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::null::Null;

    fn throttled(bytes_per_second: u64) -> Throttled {
        let null = Arc::new(Null::new(SectorSize::B512));
        Throttled::new(null, bytes_per_second).unwrap()
    }

    #[test]
    fn takes_at_least_the_modelled_time() {
        let cipher = throttled(1_000_000);
        let clock = Clock::monotonic();
        let start_ns = clock.now_ns();
        cipher.encrypt_in_place(SectorIndex::new(0), &mut [0; 4096]);
        assert!(clock.now_ns() - start_ns >= 4_096_000);
    }

    #[test]
    fn extreme_rates_neither_overflow_nor_divide_by_zero() {
        assert_eq!(throttled(u64::MAX).modelled_ns(1 << 30), 0);
        assert_eq!(throttled(1).modelled_ns(usize::MAX), u64::MAX);
        let null = Arc::new(Null::new(SectorSize::B512));
        assert!(Throttled::new(null, 0).is_err());
    }
}
