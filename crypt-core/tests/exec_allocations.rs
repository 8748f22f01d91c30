//! Hand-offs allocate nothing once the lane is open: not on the queue's thread, not on the workers,
//! not on the write thread. A binary of its own, because it counts every allocation of the process.

mod exec_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU8;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crypt_core::buffer::SlotBuffer;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::exec::{Done, Lane, Route, Work, WriteThread, WriteThreadConfig, Writes};
use crypt_core::request::Flags;
use crypt_core::units::SectorSize;
use exec_support::{AddressCipher, encrypt, pool};
use rustix::event::{PollFd, PollFlags, poll};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DEPTH: usize = 8;

/// Hands off everything in `buffers` and waits for it, assisting and sleeping in turns.
fn round(lane: &mut Lane, buffers: &mut Vec<SlotBuffer>, done: &mut Vec<Done>, number: u64) {
    for n in 0..DEPTH as u64 {
        let Some(buffer) = buffers.pop() else { return };
        let route = if number.is_multiple_of(2) {
            Route::Return
        } else {
            Route::WriteThread {
                offset_bytes: (n * 5 + number) % 16 * 8192,
                flags: Flags::empty(),
            }
        };
        let work = Work {
            parts: NonZeroU8::MIN.saturating_add((number % 4) as u8),
            route,
            ..encrypt(n, 8192, buffer)
        };
        if let Err(work) = lane.hand_off(work) {
            buffers.push(work.buffer);
        }
    }
    while lane.outstanding() > 0 {
        if number.is_multiple_of(3) && lane.assist() {
            continue;
        }
        if lane.prepare_sleep() {
            let wake = lane.wake_fd();
            let _ = poll(
                &mut [PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)],
                None,
            );
            lane.end_sleep();
        }
        lane.collect(done);
        buffers.extend(done.drain(..).filter_map(|done| done.buffer));
    }
}

#[test]
fn hand_offs_allocate_nothing() {
    let pool = pool(2);
    let device = Arc::new(MemoryDevice::new(1 << 20).unwrap());
    let writes = WriteThread::start(&pool, device, WriteThreadConfig::default()).unwrap();
    let cipher = Arc::new(AddressCipher(SectorSize::B4096));
    let mut lane = Lane::open(
        &pool,
        cipher,
        DEPTH as u32,
        Writes::WriteThread(writes.clone()),
    )
    .unwrap();
    let mut buffers = SlotBuffer::allocate(DEPTH as u32, 8192).unwrap();
    let mut done = Vec::with_capacity(DEPTH);
    // Threads allocate while they start, which may be after the first hand-offs.
    for number in 0..500 {
        round(&mut lane, &mut buffers, &mut done, number);
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(before > 0, "the counter counts");
    for number in 0..2_000 {
        round(&mut lane, &mut buffers, &mut done, number);
        assert_eq!(buffers.len(), DEPTH);
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}
