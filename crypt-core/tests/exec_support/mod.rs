//! What the tests of the worker side share: toy ciphers, and short forms of common calls.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

use std::num::{NonZeroU8, NonZeroUsize};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex};

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::exec::{Done, Lane, Route, Source, Work, WorkerConfig, WorkerPool};
use crypt_core::policy::Direction;
use crypt_core::units::{SectorIndex, SectorSize};
use rustix::event::{PollFd, PollFlags, poll};

/// A toy: adds a byte that depends on the crypto sector and the position in it. Not a secret, but
/// every byte depends on its address, so work that lands in the wrong place shows.
#[derive(Debug)]
pub(crate) struct AddressCipher(pub(crate) SectorSize);

impl AddressCipher {
    fn apply(&self, first: SectorIndex, buf: &mut [u8], sign: u8) {
        let unit = self.0.bytes();
        assert!(buf.len().is_multiple_of(unit));
        let first = first.get() >> self.0.shift();
        for (n, sector) in buf.chunks_exact_mut(unit).enumerate() {
            let tweak = (first + n as u64)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .to_le_bytes();
            for (at, byte) in sector.iter_mut().enumerate() {
                let mask = tweak[at % 8].wrapping_add((at / 8) as u8) | 1;
                *byte = byte.wrapping_add(mask.wrapping_mul(sign));
            }
        }
    }
}

impl SectorCipher for AddressCipher {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        dst.copy_from_slice(src);
        self.apply(first, dst, 1);
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.apply(first, buf, 1);
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        dst.copy_from_slice(src);
        self.apply(first, dst, 255);
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.apply(first, buf, 255);
    }

    fn sector_size(&self) -> SectorSize {
        self.0
    }

    fn backend(&self) -> &'static str {
        "address"
    }
}

/// Holds up everyone who runs it until it is opened, and panics on request.
#[derive(Debug, Default)]
pub(crate) struct GateCipher {
    open: Mutex<bool>,
    opened: Condvar,
    /// The crypto sector of 512 bytes that panics.
    bad_sector: Option<u64>,
}

impl GateCipher {
    /// A gate behind which the crypto sector `bad_sector` panics.
    pub(crate) fn with_bad_sector(bad_sector: u64) -> Self {
        Self {
            bad_sector: Some(bad_sector),
            ..Self::default()
        }
    }

    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self, first: SectorIndex, len: usize) {
        drop(
            self.opened
                .wait_while(self.open.lock().unwrap(), |open| !*open),
        );
        let sectors = first.get()..first.get() + len as u64 / 512;
        if self.bad_sector.is_some_and(|bad| sectors.contains(&bad)) {
            // As `panic!`, but without the message on standard error.
            std::panic::resume_unwind(Box::new("bad sector"));
        }
    }
}

impl SectorCipher for GateCipher {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.pass(first, src.len());
        dst.copy_from_slice(src);
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.pass(first, buf.len());
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], dst: &mut [u8]) {
        self.encrypt_sectors(first, src, dst);
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.pass(first, buf.len());
    }

    fn sector_size(&self) -> SectorSize {
        SectorSize::B512
    }

    fn backend(&self) -> &'static str {
        "gate"
    }
}

pub(crate) fn pool(threads: usize) -> Arc<WorkerPool> {
    WorkerPool::start(&config(threads)).unwrap()
}

pub(crate) fn config(threads: usize) -> WorkerConfig {
    WorkerConfig {
        threads: Some(NonZeroUsize::new(threads).unwrap()),
        ..WorkerConfig::default()
    }
}

/// In-place encryption of the data area's first `len_bytes` bytes, as one part.
pub(crate) fn encrypt(token: u64, len_bytes: u32, buffer: SlotBuffer) -> Work {
    Work {
        token,
        direction: Direction::Encrypt,
        first: SectorIndex::new(0),
        len_bytes,
        source: Source::Area(Area::Data),
        target: Area::Data,
        buffer,
        parts: NonZeroU8::MIN,
        same_cpu: false,
        wake_each: false,
        route: Route::Return,
    }
}

/// Waits for `count` results the way a driver does: collect, sleep, collect.
pub(crate) fn wait_for(lane: &mut Lane, count: usize) -> Vec<Done> {
    let mut done = Vec::with_capacity(count);
    loop {
        lane.collect(&mut done);
        if done.len() == count {
            return done;
        }
        if lane.prepare_sleep() {
            let wake = lane.wake_fd();
            let _ = poll(
                &mut [PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)],
                None,
            );
            lane.end_sleep();
        }
    }
}

/// Bytes that differ from each other and from zero.
pub(crate) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|n| (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8) ^ seed)
        .collect()
}
