//! Runs a group: every subject in turns of short slices, on as many threads as asked for.

#![forbid(unsafe_code)]

use std::panic::resume_unwind;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::{AesLimit, SectorCipher};
use crypt_core::clock::Clock;
use crypt_core::key::Key;
use crypt_core::units::SectorIndex;

use super::plan::{Group, Subject};
use super::{Direction, LIMIT, Record, usage};
use crate::cli::{Failure, Outcome};

/// Turns of each subject.
const SLICES: u32 = 10;

/// Least bytes and time between two looks at the clock. Looking costs nothing beside that, and a
/// window is shorter than a time slice of the scheduler, so that on a busy machine some windows are
/// not interrupted.
const WINDOW_BYTES: usize = 64 << 10;
const WINDOW_NS: u64 = 100_000;

/// A subject with its keys.
enum Keyed {
    Copy,
    Limit(AesLimit),
    Cipher(Arc<dyn SectorCipher>),
}

/// Measures a group.
pub(super) fn group(group: &Group) -> Outcome<Vec<Record>> {
    let clock = Clock::monotonic();
    let slots = u32::try_from(group.threads).unwrap_or(u32::MAX);
    let mut buffers = SlotBuffer::allocate(slots, group.request_bytes).map_err(|_| {
        Failure::usage(format!(
            "no memory for two buffers of {} bytes for each of {slots} threads: give fewer --threads or a smaller --request",
            group.request_bytes
        ))
    })?;
    let keyed: Vec<Keyed> = group.subjects.iter().map(keyed).collect::<Outcome<_>>()?;
    let mut best = vec![0.0_f64; keyed.len()];
    for _ in 0..SLICES {
        for ((subject, keyed), best) in group.subjects.iter().zip(&keyed).zip(&mut best) {
            let slice = Slice {
                keyed,
                direction: direction(subject),
                len: group.request_bytes,
                time: group.time / SLICES,
                clock,
            };
            *best = best.max(slice.run(&mut buffers));
        }
    }
    let records = group.subjects.iter().zip(&keyed).zip(best);
    Ok(records
        .map(|((subject, keyed), gb_per_s)| record(group, subject, keyed, gb_per_s, &clock))
        .collect())
}

fn keyed(subject: &Subject) -> Outcome<Keyed> {
    let key = |bits: u32| {
        let bytes: Vec<u8> = (0..bits / 8).map(|i| (i * 37 + 11) as u8).collect();
        Key::from_bytes(&bytes).map_err(|error| usage(&error))
    };
    match *subject {
        Subject::Copy => Ok(Keyed::Copy),
        Subject::Limit {
            key_bits, backend, ..
        } => AesLimit::new(&key(key_bits)?, Some(backend))
            .map(Keyed::Limit)
            .map_err(|error| usage(&error)),
        Subject::Cipher {
            spec,
            key_bits,
            backend,
            ..
        } => spec
            .build(&key(key_bits)?, backend)
            .map(Keyed::Cipher)
            .map_err(|error| usage(&error)),
    }
}

fn direction(subject: &Subject) -> Direction {
    match *subject {
        Subject::Copy => Direction::Copy,
        Subject::Limit { direction, .. } | Subject::Cipher { direction, .. } => direction,
    }
}

/// Bytes per nanosecond of one thread.
struct Rates {
    best: f64,
    mean: f64,
}

/// One turn of one subject.
struct Slice<'a> {
    keyed: &'a Keyed,
    direction: Direction,
    len: usize,
    time: Duration,
    clock: Clock,
}

impl Slice<'_> {
    /// Throughput in GB/s: of the best window of one thread, or of whole slices of several threads,
    /// whose best windows need not have been at the same time.
    fn run(&self, buffers: &mut [SlotBuffer]) -> f64 {
        if let [buffer] = buffers {
            return self.thread(buffer).best;
        }
        let barrier = Barrier::new(buffers.len());
        thread::scope(|scope| {
            let workers: Vec<_> = buffers
                .iter_mut()
                .map(|buffer| {
                    scope.spawn(|| {
                        barrier.wait();
                        self.thread(buffer).mean
                    })
                })
                .collect();
            let rates = workers.into_iter().map(thread::ScopedJoinHandle::join);
            rates
                .map(|rate| rate.unwrap_or_else(|panic| resume_unwind(panic)))
                .sum()
        })
    }

    fn thread(&self, buffer: &mut SlotBuffer) -> Rates {
        let start_ns = self.clock.now_ns();
        let mut now_ns = start_ns;
        let mut total_bytes = 0_u64;
        let mut best = 0.0_f64;
        while u128::from(now_ns - start_ns) < self.time.as_nanos() {
            let window_start_ns = now_ns;
            let mut window_bytes = 0;
            while now_ns - window_start_ns < WINDOW_NS {
                for _ in 0..WINDOW_BYTES.div_ceil(self.len) {
                    let sector = (total_bytes + window_bytes) / 4096 * 8;
                    self.request(SectorIndex::new(sector), buffer);
                    window_bytes += self.len as u64;
                }
                now_ns = self.clock.now_ns();
            }
            total_bytes += window_bytes;
            best = best.max(window_bytes as f64 / (now_ns - window_start_ns) as f64);
        }
        Rates {
            best,
            mean: total_bytes as f64 / (now_ns - start_ns) as f64,
        }
    }

    /// One request, in place.
    fn request(&self, first: SectorIndex, buffer: &mut SlotBuffer) {
        let Keyed::Copy = self.keyed else {
            let buf = &mut buffer.area_mut(Area::Data)[..self.len];
            return match (self.keyed, self.direction) {
                (Keyed::Limit(limit), Direction::Decrypt) => limit.decrypt_in_place(buf),
                (Keyed::Limit(limit), _) => limit.encrypt_in_place(buf),
                (Keyed::Cipher(cipher), Direction::Decrypt) => cipher.decrypt_in_place(first, buf),
                (Keyed::Cipher(cipher), _) => cipher.encrypt_in_place(first, buf),
                (Keyed::Copy, _) => (),
            };
        };
        let (data, bounce) = buffer.split_mut();
        bounce[..self.len].copy_from_slice(std::hint::black_box(&data[..self.len]));
        std::hint::black_box(bounce);
    }
}

fn record(group: &Group, subject: &Subject, keyed: &Keyed, gb_per_s: f64, clock: &Clock) -> Record {
    let (cipher, key_bits) = match subject {
        Subject::Copy => ("memcpy".to_owned(), 0),
        Subject::Limit { key_bits, .. } => (LIMIT.to_owned(), *key_bits),
        Subject::Cipher { spec, key_bits, .. } => (spec.to_string(), *key_bits),
    };
    let backend = match keyed {
        Keyed::Copy => "memcpy",
        Keyed::Limit(limit) => limit.backend().name(),
        Keyed::Cipher(cipher) => cipher.backend(),
    };
    let ns_per_byte = group.threads as f64 / gb_per_s;
    Record {
        cipher,
        key_bits,
        sector_size: group.sector_size.bytes() as u64,
        request_bytes: group.request_bytes as u64,
        backend: backend.to_owned(),
        threads: group.threads,
        direction: direction(subject),
        gb_per_s,
        cycles_per_byte: clock.ticks_per_ns().map(|ticks| ns_per_byte * ticks),
    }
}
