//! Workers that write what they encrypted: each part brings its own range to the device, and the
//! result is that of one write, whatever the device does to the parts.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

mod exec_support;

use std::num::NonZeroU8;
use std::sync::Arc;

use crypt_core::Volume;
use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::device::faulty::{FaultPlan, FaultyDevice};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::{Device, ImmediateDevice};
use crypt_core::error::Errno;
use crypt_core::exec::{Done, DoneKind, Lane, Route, Work, WorkerPool, Writes};
use crypt_core::request::Flags;
use crypt_core::units::{SectorIndex, SectorSize};
use exec_support::{AddressCipher, encrypt, pattern, pool, wait_for};

const SECTOR: u32 = 512;
const SECTORS: u32 = 16;
const LEN: u32 = SECTOR * SECTORS;
const OFFSET: u64 = 3 * 512;
const DEVICE: u64 = 1 << 20;

fn cipher() -> Arc<dyn SectorCipher> {
    Arc::new(AddressCipher(SectorSize::B512))
}

fn memory() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(DEVICE).unwrap())
}

/// Encrypts and writes a pattern in `parts` parts; the end, and the ciphertext.
fn write(
    pool: &Arc<WorkerPool>,
    cipher: Arc<dyn SectorCipher>,
    device: Arc<dyn ImmediateDevice>,
    parts: u8,
) -> (Done, Vec<u8>) {
    let mut lane = Lane::open(pool, cipher, 1, Writes::Worker(device)).unwrap();
    let mut buffer = SlotBuffer::allocate(1, LEN as usize).unwrap().remove(0);
    buffer.area_mut(Area::Data)[..LEN as usize].copy_from_slice(&pattern(LEN as usize, parts));
    let work = Work {
        first: SectorIndex::new(40),
        target: Area::Bounce,
        parts: NonZeroU8::new(parts).unwrap(),
        route: Route::Worker {
            offset_bytes: OFFSET,
            flags: Flags::FUA,
        },
        ..encrypt(7, LEN, buffer)
    };
    lane.hand_off(work).unwrap();
    let done = wait_for(&mut lane, 1).remove(0);
    let buffer = done.buffer.as_ref().unwrap();
    let ciphertext = buffer.area(Area::Bounce)[..LEN as usize].to_vec();
    (done, ciphertext)
}

/// What the device holds where the work was to be written.
fn stored(device: Arc<dyn Device>) -> Vec<u8> {
    let volume = Volume::builder(device).build().unwrap();
    let mut bytes = vec![0; LEN as usize];
    volume.io().unwrap().read_at(&mut bytes, OFFSET).unwrap();
    bytes
}

/// A plan of which one fault hits every write.
fn always(set: impl FnOnce(&mut FaultPlan)) -> FaultPlan {
    let mut plan = FaultPlan::default();
    set(&mut plan);
    plan
}

#[test]
fn every_part_writes_its_own_range() {
    let pool = pool(3);
    for parts in [1, 2, 7, 16, 255] {
        let device = memory();
        let (done, ciphertext) = write(&pool, cipher(), device.immediate().unwrap(), parts);
        assert_eq!(done.result, DoneKind::Device(Ok(LEN.into())));
        assert!(done.device_ns > 0, "{done:?}");
        assert_ne!(ciphertext, pattern(LEN as usize, parts));
        assert_eq!(stored(device), ciphertext, "{parts}");
    }
}

#[test]
fn a_short_part_ends_what_counts_as_written() {
    let pool = pool(2);
    for parts in [1, 2, 4] {
        let device = memory();
        let faults = FaultyDevice::new(Arc::clone(&device), always(|plan| plan.short_rate = 1.0));
        let (done, ciphertext) = write(&pool, cipher(), faults.immediate().unwrap(), parts);
        let DoneKind::Device(Ok(written)) = done.result else {
            panic!("{:?}", done.result);
        };
        assert!(
            written > 0 && written < u64::from(LEN / u32::from(parts)),
            "{written}"
        );
        let written = written as usize;
        assert_eq!(stored(device)[..written], ciphertext[..written]);
        assert_eq!(faults.counts().short, u64::from(parts));
    }
}

#[test]
fn errors_of_the_device_are_the_result() {
    let pool = pool(2);
    let first_sector = OFFSET / 512;
    let plans = [
        (always(|plan| plan.error_rate = 1.0), Err(Errno::EIO)),
        (always(|plan| plan.eagain_rate = 1.0), Err(Errno::EAGAIN)),
        (always(|plan| plan.zero_rate = 1.0), Ok(0)),
        (always(|plan| plan.torn_rate = 1.0), Err(Errno::EIO)),
        (
            always(|plan| plan.bad_sectors.push(first_sector + 9..first_sector + 10)),
            Err(Errno::EIO),
        ),
    ];
    for (plan, expected) in plans {
        for parts in [1, 4] {
            let faults = FaultyDevice::new(memory(), plan.clone());
            let (done, _) = write(&pool, cipher(), faults.immediate().unwrap(), parts);
            assert_eq!(done.result, DoneKind::Device(expected), "{plan:?}");
        }
    }
}

#[test]
fn a_panic_of_the_device_is_an_error_and_the_workers_live_on() {
    #[derive(Debug)]
    struct Panics;
    impl ImmediateDevice for Panics {
        fn write(&self, _: u64, _: &[u8], _: Flags) -> Result<u64, Errno> {
            panic!("on purpose")
        }
    }
    let pool = pool(1);
    for _ in 0..3 {
        let (done, _) = write(&pool, cipher(), Arc::new(Panics), 2);
        assert_eq!(done.result, DoneKind::Device(Err(Errno::EIO)));
    }
    let device = memory();
    let (done, _) = write(&pool, cipher(), device.immediate().unwrap(), 2);
    assert_eq!(done.result, DoneKind::Device(Ok(LEN.into())));
}

#[test]
fn what_was_not_encrypted_is_not_written() {
    #[derive(Debug)]
    struct Fails;
    impl SectorCipher for Fails {
        fn encrypt_sectors(&self, _: SectorIndex, _: &[u8], _: &mut [u8]) {
            panic!("on purpose")
        }
        fn decrypt_sectors(&self, _: SectorIndex, _: &[u8], _: &mut [u8]) {}
        fn encrypt_in_place(&self, _: SectorIndex, _: &mut [u8]) {}
        fn decrypt_in_place(&self, _: SectorIndex, _: &mut [u8]) {}
        fn sector_size(&self) -> SectorSize {
            SectorSize::B512
        }
        fn backend(&self) -> &'static str {
            "fails"
        }
    }
    let device = memory();
    let (done, _) = write(&pool(2), Arc::new(Fails), device.immediate().unwrap(), 4);
    assert_eq!(done.result, DoneKind::Crypt(Err(Errno::EIO)));
    assert_eq!(stored(device), vec![0; LEN as usize]);
}

#[test]
fn a_lane_takes_the_routes_that_it_serves() {
    let pool = pool(1);
    let buffer = SlotBuffer::allocate(1, LEN as usize).unwrap().remove(0);
    let (offset_bytes, flags) = (0, Flags::empty());
    let work = |route, buffer| Work {
        route,
        ..encrypt(1, LEN, buffer)
    };
    let mut lane = Lane::open(&pool, cipher(), 1, Writes::Return).unwrap();
    let by_worker = Route::Worker {
        offset_bytes,
        flags,
    };
    let buffer = lane.hand_off(work(by_worker, buffer)).unwrap_err().buffer;
    let device = memory().immediate().unwrap();
    let mut lane = Lane::open(&pool, cipher(), 1, Writes::Worker(device)).unwrap();
    let by_thread = Route::WriteThread {
        offset_bytes,
        flags,
    };
    let buffer = lane.hand_off(work(by_thread, buffer)).unwrap_err().buffer;
    // What may come back still may.
    lane.hand_off(work(Route::Return, buffer)).unwrap();
    let done = wait_for(&mut lane, 1).remove(0);
    assert_eq!(done.result, DoneKind::Crypt(Ok(())));
}
