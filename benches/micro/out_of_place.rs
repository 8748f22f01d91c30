//! What encrypting from one buffer to another costs beside doing it in place, in turns, on one thread.
//! The bar is 5 % more for AES-256-XTS, which is what runs unless a cipher is named.
//!
//! `cargo bench -p crypt-core --bench out_of_place [-- BACKEND [CIPHER]]`
//!
//! Every figure is the median over many turns, the difference that of the quotients of neighbouring
//! windows. Where both buffers outgrow a cache, a plain copy between them is what out of place can reach.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crypt_core::Result;
use crypt_core::buffer::SlotBuffer;
use crypt_core::cipher::{Backend, SectorCipher};
use crypt_core::clock::Clock;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorIndex, SectorSize};

const REQUESTS: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Long beside a look at the clock, short beside a time slice of the scheduler.
const WINDOW_BYTES: usize = 4 << 20;
const TURNS: usize = 101;

fn main() -> Result<()> {
    let mut named = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let backend = named
        .next()
        .map(|name| name.parse::<Backend>())
        .transpose()?;
    let notation = named.next();
    let spec: CipherSpec = notation.as_deref().unwrap_or("aes-xts-plain64").parse()?;
    // `cargo test` runs benches with `--test`: one turn shows that it still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let turns = if is_bench { TURNS } else { 1 };
    let key_len = *spec.key_lens_bytes().iter().max().unwrap_or(&0);
    let key = Key::from_bytes(&(0..key_len).map(|i| i as u8).collect::<Vec<u8>>())?;
    println!("sector  request           in place  out of place             a copy");
    for sector_size in [SectorSize::B4096, SectorSize::B512] {
        let cipher = spec.with_sector_size(sector_size).build(&key, backend)?;
        for request in REQUESTS {
            let buffer = SlotBuffer::allocate(1, request)?.remove(0);
            let mut pair = Pair {
                cipher: Arc::clone(&cipher),
                buffer,
                request,
                clock: Clock::monotonic(),
            };
            for encrypts in [true, false] {
                pair.compare(encrypts, turns);
            }
        }
    }
    Ok(())
}

/// A cipher, and a request's two buffers.
struct Pair {
    cipher: Arc<dyn SectorCipher>,
    buffer: SlotBuffer,
    request: usize,
    clock: Clock,
}

impl Pair {
    fn compare(&mut self, encrypts: bool, turns: usize) {
        let work = |place| Work { encrypts, place };
        let all = [Place::Same, Place::Other, Place::Copy].map(work);
        for work in all {
            self.window(work);
        }
        let windows: Vec<[f64; 3]> = (0..turns)
            .map(|_| all.map(|work| self.window(work)))
            .collect();
        let gb_per_s = |index: usize| 1.0 / median(windows.iter().map(|turn| turn[index]));
        println!(
            "{:>6} {:>8} {}  {:>5.2} GB/s  {:>7.2} GB/s  {:+5.1} %  {:>6.1} GB/s  ({})",
            self.cipher.sector_size().bytes(),
            self.request,
            if encrypts { "encrypt" } else { "decrypt" },
            gb_per_s(0),
            gb_per_s(1),
            100.0 * (median(windows.iter().map(|turn| turn[1] / turn[0])) - 1.0),
            gb_per_s(2),
            self.cipher.backend(),
        );
    }

    /// Nanoseconds per byte of one window.
    fn window(&mut self, work: Work) -> f64 {
        let requests = WINDOW_BYTES / self.request;
        let start_ns = self.clock.now_ns();
        for _ in 0..requests {
            self.run(work);
        }
        let elapsed_ns = self.clock.now_ns() - start_ns;
        elapsed_ns as f64 / (requests * self.request) as f64
    }

    fn run(&mut self, work: Work) {
        let (cipher, first) = (&self.cipher, SectorIndex::new(64));
        let (data, bounce) = self.buffer.split_mut();
        let (data, bounce) = (&mut data[..self.request], &mut bounce[..self.request]);
        match (work.place, work.encrypts) {
            (Place::Same, true) => cipher.encrypt_in_place(first, data),
            (Place::Same, false) => cipher.decrypt_in_place(first, data),
            (Place::Other, true) => cipher.encrypt_sectors(first, data, bounce),
            (Place::Other, false) => cipher.decrypt_sectors(first, data, bounce),
            (Place::Copy, _) => {
                bounce.copy_from_slice(std::hint::black_box(data));
                std::hint::black_box(bounce);
            }
        }
    }
}

/// What a window does.
#[derive(Clone, Copy)]
struct Work {
    encrypts: bool,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Same,
    Other,
    /// The other buffer, without a cipher.
    Copy,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
