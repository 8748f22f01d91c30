//! What encrypting from one buffer to another costs beside doing it in place, in turns, on one thread.
//! The bar is 5 % more for AES-256-XTS, which is what runs unless a cipher is named.
//!
//! `cargo bench -p crypt-core --bench out_of_place [-- BACKEND [CIPHER]]`
//!
//! Every figure is the median over many turns of the quotient of two neighbouring windows.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crypt_core::Result;
use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::{Backend, SectorCipher};
use crypt_core::clock::Clock;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorIndex, SectorSize};

const REQUESTS: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Long beside a look at the clock, short beside a time slice of the scheduler.
const WINDOW_BYTES: usize = 2 << 20;
const TURNS: usize = 201;

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
    println!("sector  request           in place  out of place");
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
        self.window(encrypts, true);
        self.window(encrypts, false);
        let (mut ratios, mut in_place, mut out_of_place) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..turns {
            let times = [self.window(encrypts, true), self.window(encrypts, false)];
            in_place.push(times[0]);
            out_of_place.push(times[1]);
            ratios.push(times[1] / times[0]);
        }
        println!(
            "{:>6} {:>8} {}  {:>5.2} GB/s  {:>7.2} GB/s  {:+.1} %  ({})",
            self.cipher.sector_size().bytes(),
            self.request,
            if encrypts { "encrypt" } else { "decrypt" },
            1.0 / median(&mut in_place),
            1.0 / median(&mut out_of_place),
            100.0 * (median(&mut ratios) - 1.0),
            self.cipher.backend(),
        );
    }

    /// Nanoseconds per byte of one window.
    fn window(&mut self, encrypts: bool, in_place: bool) -> f64 {
        let requests = WINDOW_BYTES / self.request;
        let (cipher, first) = (&self.cipher, SectorIndex::new(64));
        let start_ns = self.clock.now_ns();
        for _ in 0..requests {
            if in_place {
                let buf = &mut self.buffer.area_mut(Area::Data)[..self.request];
                match encrypts {
                    true => cipher.encrypt_in_place(first, buf),
                    false => cipher.decrypt_in_place(first, buf),
                }
            } else {
                let (src, dst) = self.buffer.split_mut();
                let (src, dst) = (&src[..self.request], &mut dst[..self.request]);
                match encrypts {
                    true => cipher.encrypt_sectors(first, src, dst),
                    false => cipher.decrypt_sectors(first, src, dst),
                }
            }
        }
        let elapsed_ns = self.clock.now_ns() - start_ns;
        elapsed_ns as f64 / (requests * self.request) as f64
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
