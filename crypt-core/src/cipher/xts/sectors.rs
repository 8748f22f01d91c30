//! XTS over the crypto sectors of a volume: numbers the sectors and hands the whole run to an engine,
//! which encrypts the tweaks of many sectors at once.

#![forbid(unsafe_code)]

use std::fmt;

use aes::cipher::inout::InOutBuf;

use super::XtsEngine;
use crate::cipher::{SectorCipher, check_run};
use crate::iv::{IvGenerator, Ivs};
use crate::spec::CipherSpec;
use crate::units::{SectorIndex, SectorSize};

/// An engine with the sector numbering of one volume.
pub(super) struct XtsSectors<E> {
    engine: E,
    ivs: IvGenerator,
    sector_size: SectorSize,
}

impl<E: XtsEngine> XtsSectors<E> {
    pub(super) fn new(engine: E, spec: &CipherSpec) -> Self {
        Self {
            engine,
            ivs: IvGenerator::new(spec),
            sector_size: spec.sector_size(),
        }
    }

    fn ivs(&self, first: SectorIndex, len_bytes: usize) -> Ivs<'static> {
        Ivs::Numbers {
            numbers: self.ivs.numbers(first),
            count: len_bytes / self.sector_size.bytes(),
        }
    }

    fn encrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        let ivs = self.ivs(first, data.len());
        self.engine
            .encrypt_units(ivs, self.sector_size.bytes(), data);
    }

    fn decrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        let ivs = self.ivs(first, data.len());
        self.engine
            .decrypt_units(ivs, self.sector_size.bytes(), data);
    }
}

impl<E: XtsEngine> SectorCipher for XtsSectors<E> {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        check_run(first, src.len(), dst.len(), self.sector_size);
        if let Ok(data) = InOutBuf::new(src, dst) {
            self.encrypt(first, data);
        }
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        check_run(first, buf.len(), buf.len(), self.sector_size);
        self.encrypt(first, buf.into());
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        check_run(first, src.len(), dst.len(), self.sector_size);
        if let Ok(data) = InOutBuf::new(src, dst) {
            self.decrypt(first, data);
        }
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        check_run(first, buf.len(), buf.len(), self.sector_size);
        self.decrypt(first, buf.into());
    }

    fn sector_size(&self) -> SectorSize {
        self.sector_size
    }

    fn backend(&self) -> &'static str {
        E::BACKEND.name()
    }
}

impl<E: XtsEngine> fmt::Debug for XtsSectors<E> {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XtsSectors")
            .field("backend", &E::BACKEND)
            .field("ivs", &self.ivs)
            .field("sector_size", &self.sector_size)
            .finish_non_exhaustive()
    }
}
