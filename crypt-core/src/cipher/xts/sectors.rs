//! XTS over the crypto sectors of a volume: numbers the sectors and hands them to an engine in
//! groups, so that an engine can encrypt the tweaks of a whole group at once.

#![forbid(unsafe_code)]

use std::fmt;

use aes::cipher::inout::InOutBuf;

use super::XtsEngine;
use crate::cipher::{SectorCipher, check_run};
use crate::iv::{Iv, IvGenerator};
use crate::spec::CipherSpec;
use crate::units::{SectorIndex, SectorSize};

/// Most sectors handed to the engine at once; bounds the IVs on the stack.
const GROUP_SECTORS: usize = 32;

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

    /// Calls `work` with the IVs and the data of each group of sectors.
    #[inline]
    fn for_each_group(
        &self,
        first: SectorIndex,
        mut data: InOutBuf<'_, '_, u8>,
        work: impl Fn(&[Iv], usize, InOutBuf<'_, '_, u8>),
    ) {
        let unit_len = self.sector_size.bytes();
        let mut sector = first.get();
        let mut ivs: [Iv; GROUP_SECTORS] = [[0; 16]; GROUP_SECTORS];
        while !data.is_empty() {
            let group_len = data.len().min(GROUP_SECTORS * unit_len);
            let (group, rest) = data.split_at(group_len);
            let ivs = &mut ivs[..group_len / unit_len];
            self.ivs.fill(SectorIndex::new(sector), ivs);
            work(ivs, unit_len, group);
            sector = sector.wrapping_add((ivs.len() as u64) << self.sector_size.shift());
            data = rest;
        }
    }

    fn encrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        self.for_each_group(first, data, |ivs, unit_len, group| {
            self.engine.encrypt_units(ivs, unit_len, group);
        });
    }

    fn decrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        self.for_each_group(first, data, |ivs, unit_len, group| {
            self.engine.decrypt_units(ivs, unit_len, group);
        });
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
