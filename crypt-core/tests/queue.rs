//! The real driver over memory and faulty devices: what is written reads back, what goes wrong comes
//! back as an ordinary completion, and the caller's plaintext is left alone.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::Arc;

use crypt_core::cipher::SectorCipher;
use crypt_core::device::faulty::{FaultPlan, FaultyDevice};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::{Device, QueueConfig};
use crypt_core::key::Key;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex, SectorSize};
use crypt_core::{Completion, Errno, Queue, QueueOptions, Volume};

const SIZE: u64 = 1 << 20;

fn cipher() -> Arc<dyn SectorCipher> {
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    "aes-xts-plain64"
        .parse::<CipherSpec>()
        .unwrap()
        .build(&key, None)
        .unwrap()
}

fn memory() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(SIZE).unwrap())
}

fn queue(device: Arc<dyn Device>, depth: u32) -> Queue {
    let volume = Volume::builder(device)
        .cipher(cipher())
        .allow_discards(true)
        .build()
        .unwrap();
    volume
        .queue(&QueueOptions {
            depth,
            max_request_bytes: 64 << 10,
            polled: false,
        })
        .unwrap()
}

fn request(op: Op, sector: u64, len: u64) -> Request {
    Request::new(op, SectorIndex::new(sector), ByteLength::new(len))
}

/// Runs one request to its end.
fn one(queue: &mut Queue, request: Request, fill: Option<u8>) -> Completion {
    let ticket = queue.claim().unwrap();
    if let Some(byte) = fill {
        queue.data_mut(&ticket).fill(byte);
    }
    queue.submit(ticket, request);
    let mut done = Vec::new();
    queue.drain(&mut done).unwrap();
    assert_eq!(done.len(), 1);
    done.pop().unwrap()
}

fn raw(device: &Arc<MemoryDevice>, offset: u64, len: usize) -> Vec<u8> {
    let volume = Volume::builder(Arc::clone(device) as Arc<dyn Device>)
        .build()
        .unwrap();
    let mut bytes = vec![0; len];
    volume.io().unwrap().read_at(&mut bytes, offset).unwrap();
    bytes
}

#[test]
fn a_write_is_ciphertext_on_the_device_and_leaves_its_plaintext_alone() {
    let device = memory();
    let mut queue = queue(Arc::clone(&device) as Arc<dyn Device>, 4);
    let write = one(&mut queue, request(Op::Write, 8, 8192), Some(7));
    assert_eq!(write.result, Ok(8192));
    assert!(
        queue.data(&write.ticket)[..8192]
            .iter()
            .all(|&byte| byte == 7)
    );
    queue.release(write.ticket);

    let mut expected = vec![7; 8192];
    cipher().encrypt_in_place(SectorIndex::new(8), &mut expected);
    assert_eq!(raw(&device, 8 * 512, 8192), expected);

    let read = one(&mut queue, request(Op::Read, 8, 8192), Some(0));
    assert_eq!(read.result, Ok(8192));
    assert!(
        queue.data(&read.ticket)[..8192]
            .iter()
            .all(|&byte| byte == 7)
    );
    queue.release(read.ticket);
}

#[test]
fn a_write_in_place_gives_the_same_ciphertext() {
    let device = memory();
    let mut queue = queue(Arc::clone(&device) as Arc<dyn Device>, 1);
    let ticket = queue.claim().unwrap();
    queue.data_mut(&ticket).fill(9);
    queue.submit_in_place(ticket, request(Op::Write, 0, 4096));
    let mut done = Vec::new();
    queue.drain(&mut done).unwrap();
    let mut expected = vec![9; 4096];
    cipher().encrypt_in_place(SectorIndex::new(0), &mut expected);
    assert_eq!(raw(&device, 0, 4096), expected);
    assert_eq!(&queue.data(&done[0].ticket)[..4096], expected);
}

#[test]
fn write_zeroes_reads_back_as_zero_plaintext_over_more_than_a_slot() {
    let device = memory();
    let mut queue = queue(Arc::clone(&device) as Arc<dyn Device>, 2);
    let len = 200 << 10;
    assert_eq!(
        one(&mut queue, request(Op::WriteZeroes, 16, len), Some(3)).result,
        Ok(len)
    );
    let stored = raw(&device, 16 * 512, len as usize);
    assert!(
        stored
            .chunks(512)
            .all(|sector| sector.iter().any(|&byte| byte != 0))
    );
    let mut plain = stored;
    cipher().decrypt_in_place(SectorIndex::new(16), &mut plain);
    assert!(plain.iter().all(|&byte| byte == 0));
}

#[test]
fn every_operation_completes_and_wrong_ones_say_why() {
    let mut queue = queue(memory(), 4);
    for op in Op::ALL {
        let completion = one(&mut queue, request(op, 0, 4096), None);
        assert!(completion.result.is_ok(), "{op:?}: {:?}", completion.result);
        queue.release(completion.ticket);
    }
    for (op, sector, len) in [
        (Op::Read, 0, 100),
        (Op::Write, SIZE / 512, 512),
        (Op::Read, 1, 0),
    ] {
        let completion = one(&mut queue, request(op, sector, len), None);
        assert_eq!(
            completion.result,
            Err(Errno::EINVAL),
            "{op:?} {sector} {len}"
        );
        queue.release(completion.ticket);
    }
}

#[test]
fn stamps_are_in_order_and_all_slots_can_be_in_flight() {
    let mut queue = queue(memory(), 32);
    let mut done = Vec::with_capacity(32);
    for n in 0..32 {
        let ticket = queue.claim().unwrap();
        queue.submit(
            ticket,
            request(Op::Write, n * 8, 4096).with_flags(Flags::FUA),
        );
    }
    assert!(queue.claim().is_none());
    assert_eq!(queue.in_flight(), 32);
    queue.drain(&mut done).unwrap();
    assert_eq!((done.len(), queue.in_flight()), (32, 0));
    for completion in &done {
        let timing = completion.timing;
        assert!(timing.submitted_ns <= timing.issued_ns, "{timing:?}");
        assert!(timing.issued_ns <= timing.completed_ns, "{timing:?}");
        assert!(timing.cipher_ns > 0, "{timing:?}");
    }
}

#[test]
fn the_stages_of_a_read_add_up_to_its_latency() {
    let mut queue = queue(memory(), 4);
    let lone = one(&mut queue, request(Op::Read, 0, 4096), None);
    let timing = lone.timing;
    let latency_ns = timing.completed_ns - timing.submitted_ns;
    assert_eq!(timing.device_ns + timing.cipher_ns, latency_ns);
    queue.release(lone.ticket);

    while let Some(ticket) = queue.claim() {
        queue.submit(ticket, request(Op::Read, 0, 4096));
    }
    let mut done = Vec::new();
    queue.drain(&mut done).unwrap();
    let first = done.iter().map(|end| end.timing.submitted_ns).min();
    let last = done.iter().map(|end| end.timing.completed_ns).max();
    // One thread runs them all, so no time counts for the ciphers of two.
    let cipher_ns: u64 = done.iter().map(|end| end.timing.cipher_ns).sum();
    assert!(cipher_ns <= last.unwrap() - first.unwrap());
    for end in &done {
        let timing = end.timing;
        let latency_ns = timing.completed_ns - timing.submitted_ns;
        assert!(timing.device_ns + timing.cipher_ns <= latency_ns);
    }
}

#[test]
fn short_transfers_and_again_are_made_good_and_errors_come_back() {
    let plan = FaultPlan {
        seed: 42,
        short_rate: 0.3,
        eagain_rate: 0.3,
        reorder: true,
        ..FaultPlan::default()
    };
    let inner = memory();
    let device = Arc::new(FaultyDevice::new(
        Arc::clone(&inner) as Arc<dyn Device>,
        plan,
    ));
    let mut queue = queue(Arc::clone(&device) as Arc<dyn Device>, 4);
    let mut done = Vec::new();
    for n in 0..16_u64 {
        let ticket = match queue.claim() {
            Some(ticket) => ticket,
            None => {
                queue.wait(&mut done, None).unwrap();
                done.pop().unwrap().ticket
            }
        };
        queue.data_mut(&ticket).fill(n as u8);
        queue.submit(ticket, request(Op::Write, n * 128, 64 << 10));
        queue.wait(&mut done, None).unwrap();
        for completion in done.drain(..) {
            assert_eq!(completion.result, Ok(64 << 10));
            queue.release(completion.ticket);
        }
    }
    let counts = device.counts();
    assert!(counts.short > 0 && counts.eagain > 0, "{counts:?}");
    for n in 0..16_u64 {
        let mut plain = raw(&inner, n * (64 << 10), 64 << 10);
        cipher().decrypt_in_place(SectorIndex::new(n * 128), &mut plain);
        assert!(plain.iter().all(|&byte| byte == n as u8), "request {n}");
    }

    let bad = FaultPlan {
        bad_sectors: vec![8..9, 40..48],
        zero_rate: 0.0,
        ..FaultPlan::default()
    };
    let device = Arc::new(FaultyDevice::new(memory(), bad));
    let mut queue = self::queue(device, 1);
    assert_eq!(
        one(&mut queue, request(Op::Read, 0, 8192), None).result,
        Err(Errno::EIO)
    );
}

#[test]
fn a_transfer_of_nothing_is_an_error_and_not_a_loop() {
    let plan = FaultPlan {
        zero_rate: 1.0,
        ..FaultPlan::default()
    };
    let mut queue = queue(Arc::new(FaultyDevice::new(memory(), plan)), 1);
    assert_eq!(
        one(&mut queue, request(Op::Read, 0, 4096), None).result,
        Err(Errno::EIO)
    );
}

#[test]
fn a_queue_can_be_dropped_with_requests_in_flight() {
    let mut queue = queue(memory(), 8);
    while let Some(ticket) = queue.claim() {
        queue.submit(ticket, request(Op::Write, 0, 4096));
    }
    drop(queue);
}

#[test]
fn geometry_that_can_not_be_right_is_refused_with_the_figures() {
    let odd: Arc<dyn Device> = Arc::new(MemoryDevice::new(SIZE + 512).unwrap());
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let spec = spec.with_sector_size(SectorSize::B4096);
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    let cipher = spec.build(&key, None).unwrap();
    let error = Volume::builder(odd)
        .cipher(Arc::clone(&cipher))
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1049088") && error.contains("4096"),
        "{error}"
    );
    let builder = Volume::builder(memory()).cipher(cipher);
    let error = builder
        .data_offset_bytes(SIZE)
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("1048576"), "{error}");
    let error = Volume::builder(memory())
        .size_bytes(SIZE * 2)
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("2097152"), "{error}");
    let volume = Volume::builder(memory()).build().unwrap();
    for (depth, max_request_bytes) in [(0, 4096), (1, 0), (1, u32::MAX), (1 << 20, 4096)] {
        let options = QueueOptions {
            depth,
            max_request_bytes,
            polled: false,
        };
        assert!(volume.queue(&options).is_err(), "{options:?}");
    }
    drop(
        memory()
            .open_queue(&QueueConfig {
                depth: 1,
                polled: false,
                slots: &[],
            })
            .unwrap(),
    );
}
