//! `cipher_null`: no encryption, so that the cost of everything else can be measured.
//!
//! Out of place it copies; in place it does nothing.

#![forbid(unsafe_code)]

use super::{SectorCipher, check_run};
use crate::units::{SectorIndex, SectorSize};

/// The cipher that changes nothing.
#[derive(Debug)]
pub(super) struct Null {
    sector_size: SectorSize,
}

impl Null {
    pub(super) fn new(sector_size: SectorSize) -> Self {
        Self { sector_size }
    }

    fn copy(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        check_run(first, src.len(), dst.len(), self.sector_size);
        dst.copy_from_slice(src);
    }
}

impl SectorCipher for Null {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.copy(first, src, dst);
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        check_run(first, buf.len(), buf.len(), self.sector_size);
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.copy(first, src, dst);
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        check_run(first, buf.len(), buf.len(), self.sector_size);
    }

    fn sector_size(&self) -> SectorSize {
        self.sector_size
    }

    fn backend(&self) -> &'static str {
        "null"
    }
}
