//! The crypto sectors of a volume over an engine: numbers them, derives their IVs, and hands over
//! whole runs, so that an engine can work on many sectors at once.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use aes::cipher::inout::InOutBuf;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::blocks::{Blocks, keyed_blocks};
use super::engine::{Engine, EngineVisitor};
use super::{Backend, SectorCipher, check_run};
use crate::error::Result;
use crate::iv::{Iv, IvGenerator, Ivs};
use crate::key::Key;
use crate::spec::{CipherSpec, IvKind};
use crate::units::{SectorIndex, SectorSize};

/// Most sectors whose IVs are listed at once; bounds the IVs on the stack.
const GROUP_SECTORS: usize = 32;

/// An engine with the sector numbering of one volume.
pub(super) struct Sectors<E> {
    engine: E,
    ivs: IvGenerator,
    encryption: IvEncryption,
    sector_size: SectorSize,
}

/// What happens to an IV between its number and the engine.
enum IvEncryption {
    /// Nothing.
    None,
    /// It is one block of this cipher (`essiv`).
    Blocks(Box<dyn Blocks>),
    /// It encrypts a block of zeros in the engine's own mode (`eboiv`).
    Engine,
}

/// Builds the sector cipher of `spec` and `key` over the engine that it visits.
pub(super) struct SectorsOf<'a> {
    pub(super) spec: &'a CipherSpec,
    pub(super) key: &'a Key,
    pub(super) backend: Backend,
}

impl EngineVisitor for SectorsOf<'_> {
    type Output = Result<Arc<dyn SectorCipher>>;

    fn visit(self, engine: impl Engine + 'static) -> Self::Output {
        let encryption = match self.spec.iv() {
            IvKind::Essiv => IvEncryption::Blocks(essiv(self.key, self.backend)?),
            IvKind::Eboiv => IvEncryption::Engine,
            _ => IvEncryption::None,
        };
        Ok(Arc::new(Sectors {
            engine,
            ivs: IvGenerator::new(self.spec),
            encryption,
            sector_size: self.spec.sector_size(),
        }))
    }
}

/// The cipher of ESSIV: AES-256 keyed with the hash of the volume key (kernel: `crypto/essiv.c`).
fn essiv(key: &Key, backend: Backend) -> Result<Box<dyn Blocks>> {
    let mut digest: [u8; 32] = Sha256::digest(key.expose()).into();
    let blocks = keyed_blocks(&digest, backend);
    digest.zeroize();
    blocks
}

impl<E: Engine> Sectors<E> {
    /// Calls `work` with IVs and data: at once where the engine can number the sectors itself,
    /// otherwise group by group.
    #[inline]
    fn run(
        &self,
        first: SectorIndex,
        mut data: InOutBuf<'_, '_, u8>,
        work: impl Fn(&E, Ivs<'_>, usize, InOutBuf<'_, '_, u8>),
    ) {
        let unit_len = self.sector_size.bytes();
        let numbers = self.ivs.numbers(first);
        let count = data.len() / unit_len;
        if numbers.is_little_endian() && matches!(self.encryption, IvEncryption::None) {
            return work(
                &self.engine,
                Ivs::Numbers { numbers, count },
                unit_len,
                data,
            );
        }
        let mut ivs: [Iv; GROUP_SECTORS] = [[0; 16]; GROUP_SECTORS];
        let all = Ivs::Numbers { numbers, count };
        let mut done = 0;
        while done < count {
            let ivs = &mut ivs[..GROUP_SECTORS.min(count - done)];
            all.fill(done, ivs);
            self.encrypt_ivs(ivs);
            let (group, rest) = data.split_at(ivs.len() * unit_len);
            work(&self.engine, Ivs::Listed(ivs), unit_len, group);
            done += ivs.len();
            data = rest;
        }
    }

    fn encrypt_ivs(&self, ivs: &mut [Iv]) {
        match &self.encryption {
            IvEncryption::None => {}
            IvEncryption::Blocks(blocks) => blocks.encrypt(ivs.as_flattened_mut().into()),
            IvEncryption::Engine => {
                let mut out: [Iv; GROUP_SECTORS] = [[0; 16]; GROUP_SECTORS];
                let out = &mut out[..ivs.len()];
                let blocks = out.as_flattened_mut().into();
                self.engine.encrypt_units(Ivs::Listed(ivs), 16, blocks);
                ivs.copy_from_slice(out);
            }
        }
    }

    fn encrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        self.run(first, data, E::encrypt_units);
    }

    fn decrypt(&self, first: SectorIndex, data: InOutBuf<'_, '_, u8>) {
        self.run(first, data, E::decrypt_units);
    }
}

impl<E: Engine> SectorCipher for Sectors<E> {
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

impl<E: Engine> fmt::Debug for Sectors<E> {
    /// Shows no key material.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sectors")
            .field("backend", &E::BACKEND)
            .field("ivs", &self.ivs)
            .field("sector_size", &self.sector_size)
            .finish_non_exhaustive()
    }
}
