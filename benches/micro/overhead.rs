//! What the pipeline costs per request on top of the cipher and one copy: inline, memory device,
//! 4 KiB, depth 1. Prints nanoseconds and the difference; the bar is 80 ns. The copy is the memory
//! device's own, so its locks count as the device's.
//!
//! `cargo bench -p crypt-core --bench overhead [-- PART_OF_A_CASE_NAME]`
//!
//! The whole request and its components run in turn, many times, in one process; the figure is the
//! median of the paired differences, so a machine whose speed drifts shifts both sides alike.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::clock::Clock;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::device::{Device, DeviceOp, DeviceQueue, Pushed, QueueConfig};
use crypt_core::key::Key;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Queue, QueueOptions, Result, Volume};

const BLOCK: usize = 4096;
/// Few enough that the device's memory stays in the first-level cache.
const BLOCKS: u64 = 4;
const ROUNDS: usize = 301;
const REQUESTS: u64 = 2000;

fn main() -> Result<()> {
    // `cargo test` runs benches with `--test`: one short round shows that it still works.
    let rounds = if std::env::args().any(|arg| arg == "--bench") {
        ROUNDS
    } else {
        3
    };
    println!("pipeline overhead, 4 KiB, depth 1, inline; median of {rounds} paired rounds");
    println!(
        "{:<34}{:>9}{:>12}{:>12}",
        "case", "request", "components", "overhead"
    );
    for spec in ["aes-xts-plain64", "cipher_null-ecb"] {
        let cipher = cipher(spec)?;
        for op in [Op::Write, Op::Read] {
            let device = Arc::new(MemoryDevice::new(BLOCKS * BLOCK as u64)?);
            let name = format!("{spec} memory {op:?}");
            let parts = Parts::new(&*device, Some(&cipher), op)?;
            compare(&name, rounds, queue(device, Some(&cipher), 1)?, op, parts);
        }
    }
    let device = Arc::new(NullDevice::new(BLOCKS * BLOCK as u64));
    let parts = Parts::new(&*device, None, Op::Read)?;
    compare(
        "none null Read",
        rounds,
        queue(device, None, 1)?,
        Op::Read,
        parts,
    );
    deep(rounds)
}

/// Per-request cost with 32 requests in flight on the null device, nothing but the pipeline.
fn deep(rounds: usize) -> Result<()> {
    if !wanted("none null Read depth 32") {
        return Ok(());
    }
    let device = Arc::new(NullDevice::new(BLOCKS * BLOCK as u64));
    let mut queue = queue(device, None, 32)?;
    let clock = Clock::monotonic();
    let mut done = Vec::with_capacity(32);
    let mut samples = Vec::with_capacity(rounds);
    let mut tickets = Vec::with_capacity(32);
    while let Some(ticket) = queue.claim() {
        tickets.push(ticket);
    }
    for _ in 0..rounds {
        let start_ns = clock.now_ns();
        for _ in 0..REQUESTS / 32 {
            for ticket in tickets.drain(..) {
                queue.submit(ticket, request(Op::Read, 0));
            }
            queue.poll(&mut done);
            tickets.extend(done.drain(..).map(|completion| completion.ticket));
        }
        samples.push((clock.now_ns() - start_ns) as f64 / (REQUESTS / 32 * 32) as f64);
    }
    println!(
        "{:<34}{:>6.1} ns",
        "none null Read depth 32",
        median(&mut samples)
    );
    Ok(())
}

fn cipher(spec: &str) -> Result<Arc<dyn SectorCipher>> {
    let spec: CipherSpec = spec.parse()?;
    let key = match spec.to_string().starts_with("aes") {
        true => Key::from_bytes(&(0..64).collect::<Vec<u8>>())?,
        false => Key::empty()?,
    };
    spec.build(&key, None)
}

fn queue(
    device: Arc<dyn Device>,
    cipher: Option<&Arc<dyn SectorCipher>>,
    depth: u32,
) -> Result<Queue> {
    let mut volume = Volume::builder(device);
    if let Some(cipher) = cipher {
        volume = volume.cipher(Arc::clone(cipher));
    }
    let options = QueueOptions {
        depth,
        max_request_bytes: BLOCK as u32,
        polled: false,
    };
    volume.build()?.queue(&options)
}

fn request(op: Op, n: u64) -> Request {
    let sector = SectorIndex::new(n % BLOCKS * (BLOCK as u64 / 512));
    Request::new(op, sector, ByteLength::new(BLOCK as u64))
}

/// The work that any implementation of the request has to do: the cipher, and the device's copy,
/// asked of the device itself with one operation at a time.
struct Parts {
    cipher: Option<Arc<dyn SectorCipher>>,
    op: Op,
    device: Box<dyn DeviceQueue>,
    buffer: Option<SlotBuffer>,
}

impl Parts {
    fn new(device: &dyn Device, cipher: Option<&Arc<dyn SectorCipher>>, op: Op) -> Result<Self> {
        let mut slots = SlotBuffer::allocate(1, BLOCK)?;
        let config = QueueConfig {
            depth: 1,
            polled: false,
            slots: &slots,
        };
        let device = device.open_queue(&config)?;
        let (cipher, buffer) = (cipher.cloned(), slots.pop());
        Ok(Self {
            cipher,
            op,
            device,
            buffer,
        })
    }

    fn run(&mut self, n: u64) {
        let (op, first) = (self.op, request(self.op, n).sector);
        let mut buffer = self
            .buffer
            .take()
            .expect("the device gives the buffer back");
        if let (Some(cipher), Op::Write) = (&self.cipher, op) {
            let (data, bounce) = buffer.split_mut();
            cipher.encrypt_sectors(first, data, bounce);
        }
        let area = match (op, &self.cipher) {
            (Op::Write, Some(_)) => Area::Bounce,
            _ => Area::Data,
        };
        let operation = DeviceOp {
            token: n,
            op,
            flags: Flags::empty(),
            offset_bytes: first.get() * 512,
            len_bytes: BLOCK as u64,
            buffer: Some(buffer),
            area,
            area_offset_bytes: 0,
        };
        // Both devices are done when an operation is pushed.
        if let Ok(Pushed::Done(completion)) = self.device.push(operation) {
            assert!(completion.result.is_ok(), "{:?}", completion.result);
            self.buffer = completion.buffer;
        }
        if let (Some(cipher), Op::Read, Some(buffer)) = (&self.cipher, op, &mut self.buffer) {
            cipher.decrypt_in_place(first, buffer.area_mut(Area::Data));
        }
    }
}

/// Whether the command line asks for this case: all, unless it names part of one.
fn wanted(name: &str) -> bool {
    let mut filters = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .peekable();
    filters.peek().is_none() || filters.any(|filter| name.contains(&filter))
}

fn compare(name: &str, rounds: usize, mut queue: Queue, op: Op, mut parts: Parts) {
    if !wanted(name) {
        return;
    }
    let clock = Clock::monotonic();
    let mut done = Vec::with_capacity(1);
    let (mut whole, mut bare, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start_ns = clock.now_ns();
        for n in 0..REQUESTS {
            let Some(ticket) = queue.claim() else { return };
            queue.submit(ticket, request(op, n));
            queue.poll(&mut done);
            for completion in done.drain(..) {
                assert!(completion.result.is_ok(), "{:?}", completion.result);
                queue.release(completion.ticket);
            }
        }
        let middle_ns = clock.now_ns();
        for n in 0..REQUESTS {
            parts.run(n);
        }
        let end_ns = clock.now_ns();
        let request_ns = (middle_ns - start_ns) as f64 / REQUESTS as f64;
        let parts_ns = (end_ns - middle_ns) as f64 / REQUESTS as f64;
        whole.push(request_ns);
        bare.push(parts_ns);
        over.push(request_ns - parts_ns);
    }
    let (whole, bare, over) = (median(&mut whole), median(&mut bare), median(&mut over));
    println!("{name:<34}{whole:>6.1} ns{bare:>9.1} ns{over:>9.1} ns");
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
