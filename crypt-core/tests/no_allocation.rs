//! The data path does not allocate: counted by the global allocator while requests run, on every
//! thread, under every policy.
//!
//! The counting allocator is the one unsafe thing here; it forwards to the system's.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crypt_core::device::Device;
use crypt_core::device::file::{FileDevice, FileOptions};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::policy::PolicySpec;
use crypt_core::request::{Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Completion, Queue, QueueOptions, Volume};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is forwarded to the system allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZE: u64 = 4 << 20;
const DEPTH: u32 = 8;

/// Keeps `DEPTH` requests of mixed lengths and directions in flight.
fn traffic(queue: &mut Queue, done: &mut Vec<Completion>, rounds: u64) {
    for n in 0..rounds {
        while let Some(ticket) = queue.claim() {
            let len = [512, 4096, 65536][n as usize % 3];
            let op = [Op::Write, Op::Read][n as usize / 3 % 2];
            let sector = SectorIndex::new(n * 128 % (SIZE / 512 - 128));
            queue.submit(ticket, Request::new(op, sector, ByteLength::new(len)));
        }
        queue.wait(done, None).unwrap();
        for completion in done.drain(..) {
            assert!(completion.result.is_ok(), "{:?}", completion.result);
            queue.release(completion.ticket);
        }
    }
    queue.drain(done).unwrap();
    for completion in done.drain(..) {
        queue.release(completion.ticket);
    }
}

fn allocations(device: Arc<dyn Device>, policy: PolicySpec, workers: &Arc<WorkerPool>) -> u64 {
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    let cipher = "aes-xts-plain64"
        .parse::<CipherSpec>()
        .unwrap()
        .build(&key, None)
        .unwrap();
    let volume = Volume::builder(device)
        .cipher(cipher)
        .policy(policy)
        .workers(Arc::clone(workers))
        .build()
        .unwrap();
    let options = QueueOptions {
        depth: DEPTH,
        max_request_bytes: 64 << 10,
        polled: false,
    };
    let mut queue = volume.queue(&options).unwrap();
    let mut done = Vec::with_capacity(DEPTH as usize);
    // The write thread and the like start with the first requests.
    traffic(&mut queue, &mut done, 64);
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    traffic(&mut queue, &mut done, 500);
    ALLOCATIONS.load(Ordering::SeqCst) - before
}

// One test in this binary: another one's allocations would be counted too.
#[test]
fn the_data_path_does_not_allocate() {
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    drop(std::hint::black_box(Box::new(1)));
    assert!(
        ALLOCATIONS.load(Ordering::SeqCst) >= before + 2,
        "the counter counts"
    );

    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(SIZE).unwrap();
    let buffered = FileOptions {
        direct: false,
        ..FileOptions::default()
    };
    let devices: [(&str, Arc<dyn Device>); 3] = [
        ("null", Arc::new(NullDevice::new(SIZE))),
        ("memory", Arc::new(MemoryDevice::new(SIZE).unwrap())),
        (
            "file",
            Arc::new(FileDevice::open(file.path(), buffered).unwrap()),
        ),
    ];
    let workers = WorkerPool::start(&WorkerConfig::default()).unwrap();
    for (name, device) in devices {
        for policy in [
            "inline",
            "workqueue",
            "workqueue:submit_from_crypt_cpus",
            "adaptive",
            "adaptive:latency",
            "adaptive:throughput",
            "adaptive:efficiency",
            "adaptive:latency,max_workers=1,max_cpu=30",
        ] {
            let count = allocations(Arc::clone(&device), policy.parse().unwrap(), &workers);
            assert_eq!(count, 0, "{name}, {policy}");
        }
    }
}
