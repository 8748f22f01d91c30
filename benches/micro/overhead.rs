#![forbid(unsafe_code)]
//! What the pipeline costs per request on top of the cipher and one copy: inline, memory device,
//! 4 KiB, depth 1. Prints nanoseconds and the difference; the bar is 80 ns.
//!
//! `cargo bench -p crypt-core --bench overhead [-- PART_OF_A_CASE_NAME]`
//!
//! The whole request and its components run in turn, many times, in one process; the figure is the
//! median of the paired differences, so a machine whose speed drifts shifts both sides alike.

use std::hint::black_box;
use std::sync::Arc;

use crypt_core::cipher::SectorCipher;
use crypt_core::clock::Clock;
use crypt_core::device::Device;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::key::Key;
use crypt_core::request::{Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Queue, QueueOptions, Result, Volume};

const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;
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
            compare(
                &name,
                rounds,
                queue(device, Some(&cipher), 1)?,
                op,
                Parts::with_copy(&cipher, op),
            );
        }
    }
    let device = Arc::new(NullDevice::new(BLOCKS * BLOCK as u64));
    compare(
        "none null Read",
        rounds,
        queue(device, None, 1)?,
        Op::Read,
        Parts::nothing(),
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

/// The work that any implementation of the request has to do.
struct Parts {
    cipher: Option<Arc<dyn SectorCipher>>,
    op: Op,
    plain: Vec<u8>,
    bounce: Vec<u8>,
    device: Vec<u8>,
}

impl Parts {
    fn with_copy(cipher: &Arc<dyn SectorCipher>, op: Op) -> Self {
        let device = vec![0; BLOCK * BLOCKS as usize];
        let cipher = Some(Arc::clone(cipher));
        Self {
            cipher,
            op,
            plain: vec![1; BLOCK],
            bounce: vec![1; BLOCK],
            device,
        }
    }

    fn nothing() -> Self {
        Self {
            cipher: None,
            op: Op::Read,
            plain: vec![],
            bounce: vec![],
            device: vec![],
        }
    }

    fn run(&mut self, n: u64) {
        let Some(cipher) = &self.cipher else { return };
        let block = n % BLOCKS;
        let first = SectorIndex::new(block * (BLOCK as u64 / 512));
        let device = &mut self.device[block as usize * BLOCK..][..BLOCK];
        if self.op == Op::Write {
            cipher.encrypt_sectors(first, black_box(&self.plain), &mut self.bounce);
            device.copy_from_slice(black_box(&self.bounce));
        } else {
            self.plain.copy_from_slice(black_box(device));
            cipher.decrypt_in_place(first, black_box(&mut self.plain));
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
