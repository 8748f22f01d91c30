//! The sorting write thread from outside: order, results, failing and panicking devices.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

mod exec_support;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crypt_core::buffer::SlotBuffer;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, Pushed, QueueConfig, QueueFacts,
};
use crypt_core::error::{Errno, ErrorKind, Result};
use crypt_core::exec::{DoneKind, Lane, Route, Work, WriteThread, WriteThreadConfig, Writes};
use crypt_core::request::Flags;
use crypt_core::units::SectorSize;
use exec_support::{AddressCipher, encrypt, pool, wait_for};

const BLOCK: u64 = 4096;

fn config(capacity: u32) -> WriteThreadConfig {
    WriteThreadConfig {
        capacity,
        device_depth: 4,
    }
}

fn cipher() -> Arc<AddressCipher> {
    Arc::new(AddressCipher(SectorSize::B4096))
}

fn write(offset_bytes: u64, buffer: SlotBuffer) -> Work {
    Work {
        route: Route::WriteThread {
            offset_bytes,
            flags: Flags::empty(),
        },
        ..encrypt(offset_bytes, BLOCK as u32, buffer)
    }
}

#[test]
fn writes_reach_the_device_and_their_results_the_lane_that_sent_them() {
    let pool = pool(2);
    let device = Arc::new(MemoryDevice::new(64 * BLOCK).unwrap());
    let writes = WriteThread::start(&pool, device, config(64)).unwrap();
    let threads: Vec<_> = (0..2_u64)
        .map(|thread| {
            let (pool, writes) = (Arc::clone(&pool), Arc::clone(&writes));
            std::thread::spawn(move || {
                let mut lane =
                    Lane::open(&pool, cipher(), 8, Writes::WriteThread(writes.clone())).unwrap();
                let mut buffers = SlotBuffer::allocate(8, BLOCK as usize).unwrap();
                for round in 0..500 {
                    for n in 0..8 {
                        let offset = ((n * 7 + round) % 32 * 2 + thread) * BLOCK;
                        lane.hand_off(write(offset, buffers.pop().unwrap()))
                            .unwrap();
                    }
                    for done in wait_for(&mut lane, 8) {
                        assert_eq!(done.result, DoneKind::Device(Ok(BLOCK)));
                        assert_eq!(done.token / BLOCK % 2, thread, "the other lane's result");
                        buffers.push(done.buffer.unwrap());
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_failed_write_and_a_failed_cipher_are_ordinary_results() {
    let pool = pool(1);
    let device = Arc::new(NullDevice::new(4 * BLOCK));
    let writes = WriteThread::start(&pool, device, config(8)).unwrap();
    let mut lane = Lane::open(&pool, cipher(), 2, Writes::WriteThread(writes.clone())).unwrap();
    let mut buffers = SlotBuffer::allocate(2, BLOCK as usize).unwrap();
    // Past the end of the device.
    lane.hand_off(write(4 * BLOCK, buffers.pop().unwrap()))
        .unwrap();
    let done = wait_for(&mut lane, 1).remove(0);
    assert_eq!(done.result, DoneKind::Device(Err(Errno::EINVAL)));
    assert!(done.buffer.is_some());

    let broken = Arc::new(exec_support::GateCipher::with_bad_sector(0));
    broken.open();
    let mut lane = Lane::open(&pool, broken, 2, Writes::WriteThread(writes.clone())).unwrap();
    lane.hand_off(write(0, buffers.pop().unwrap())).unwrap();
    let done = wait_for(&mut lane, 1).remove(0);
    assert_eq!(
        done.result,
        DoneKind::Crypt(Err(Errno::EIO)),
        "nothing is written"
    );
}

#[test]
fn writes_that_pile_up_are_issued_in_sector_order() {
    let (pool, device) = (pool(2), Arc::new(TestDevice::default()));
    let writes = WriteThread::start(&pool, device.clone(), config(64)).unwrap();
    let mut lane = Lane::open(&pool, cipher(), 33, Writes::WriteThread(writes.clone())).unwrap();
    let mut buffers = SlotBuffer::allocate(33, BLOCK as usize).unwrap();
    // The thread is held up at the device with the first write while the others arrive.
    lane.hand_off(write(0, buffers.pop().unwrap())).unwrap();
    device.wait_for_pushes(1);
    let scattered: Vec<_> = (1..=32).map(|n| n * 13 % 37 * BLOCK).collect();
    for offset in &scattered {
        lane.hand_off(write(*offset, buffers.pop().unwrap()))
            .unwrap();
    }
    while pool.stats().parts_run < 33 {
        std::thread::yield_now();
    }
    // A part is counted before it runs; two workers may be about to post their last ones.
    std::thread::sleep(Duration::from_millis(50));
    device.open();
    assert_eq!(wait_for(&mut lane, 33).len(), 33);
    let issued = device.pushed();
    let mut sorted = scattered;
    sorted.sort_unstable();
    assert_eq!(issued[0], 0);
    assert_eq!(issued[1..], sorted);
}

#[test]
fn a_device_queue_that_panics_fails_its_writes_and_all_later_ones() {
    let device = Arc::new(TestDevice {
        panics: true,
        ..TestDevice::default()
    });
    let pool = pool(1);
    let writes = WriteThread::start(&pool, device, config(8)).unwrap();
    let mut lane = Lane::open(&pool, cipher(), 4, Writes::WriteThread(writes.clone())).unwrap();
    for _ in 0..3 {
        for buffer in SlotBuffer::allocate(4, BLOCK as usize).unwrap() {
            lane.hand_off(write(0, buffer)).unwrap();
        }
        for done in wait_for(&mut lane, 4) {
            assert_eq!(done.result, DoneKind::Device(Err(Errno::EIO)));
        }
    }
}

#[test]
fn lanes_are_admitted_only_as_long_as_there_is_room() {
    let pool = pool(1);
    let writes = WriteThread::start(&pool, Arc::new(NullDevice::new(BLOCK)), config(8)).unwrap();
    let first = Lane::open(&pool, cipher(), 6, Writes::WriteThread(writes.clone())).unwrap();
    let error = Lane::open(&pool, cipher(), 3, Writes::WriteThread(writes.clone())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(
        error.to_string().contains("8 writes in flight, 6 of them"),
        "{error}"
    );
    drop(first);
    Lane::open(&pool, cipher(), 8, Writes::WriteThread(writes.clone())).unwrap();
}

#[test]
fn a_device_that_refuses_a_queue_is_an_error_at_start() {
    let device = Arc::new(TestDevice {
        refuses: true,
        ..TestDevice::default()
    });
    let error = WriteThread::start(&pool(1), device, config(8)).unwrap_err();
    assert!(error.to_string().contains("no queue today"), "{error}");
}

/// Records what is pushed. The first push waits until the device is opened.
#[derive(Debug, Default)]
struct TestDevice {
    state: Arc<State>,
    panics: bool,
    refuses: bool,
}

#[derive(Debug, Default)]
struct State {
    pushed: Mutex<Vec<u64>>,
    open: Mutex<bool>,
    changed: Condvar,
}

impl TestDevice {
    fn wait_for_pushes(&self, count: usize) {
        let pushed = self.state.pushed.lock().unwrap();
        drop(
            self.state
                .changed
                .wait_while(pushed, |pushed| pushed.len() < count),
        );
    }

    fn open(&self) {
        *self.state.open.lock().unwrap() = true;
        self.state.changed.notify_all();
    }

    fn pushed(&self) -> Vec<u64> {
        self.state.pushed.lock().unwrap().clone()
    }
}

impl Device for TestDevice {
    fn info(&self) -> DeviceInfo {
        NullDevice::new(1 << 20).info()
    }

    fn open_queue(&self, _: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        if self.refuses {
            let context = "no queue today";
            return Err(crypt_core::Error::new(ErrorKind::Unsupported, context));
        }
        Ok(Box::new(TestQueue {
            state: Arc::clone(&self.state),
            panics: self.panics,
            ready: Vec::new(),
        }))
    }
}

struct TestQueue {
    state: Arc<State>,
    panics: bool,
    ready: Vec<DeviceCompletion>,
}

impl DeviceQueue for TestQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        if self.panics {
            // As `panic!`, but without the message on standard error.
            std::panic::resume_unwind(Box::new("broken queue"));
        }
        self.state.pushed.lock().unwrap().push(op.offset_bytes);
        self.state.changed.notify_all();
        let open = self.state.open.lock().unwrap();
        drop(self.state.changed.wait_while(open, |open| !*open));
        self.ready.push(DeviceCompletion {
            token: op.token,
            result: Ok(op.len_bytes),
            buffer: op.buffer,
        });
        Ok(Pushed::Queued)
    }

    fn submit(&mut self) {}

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        done.append(&mut self.ready);
    }

    fn wait(&mut self, _: BorrowedFd<'_>, _: Option<Duration>) -> Result<(), Errno> {
        Ok(())
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts::default()
    }
}
