//! Throughput of one XTS data unit by its length in bytes, aligned and not: a curve without holes.
//! Prints the curve, and the worst length beside its neighbours, which are one byte away; the bar is 1.5
//! times their cost per byte.
//!
//! `cargo bench -p crypt-core --bench lengths [-- BACKEND]`
//!
//! Every figure is the best of many short windows, taken in turns.
#![forbid(unsafe_code)]

use crypt_core::Result;
use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::Backend;
use crypt_core::cipher::xts::Xts;
use crypt_core::clock::Clock;
use crypt_core::key::Key;

const SHORTEST: usize = 512;
const LONGEST: usize = 64 << 10;
/// Up to here every length is measured; behind, those around whole blocks.
const EVERY_BYTE_UP_TO: usize = 1152;
const WINDOW_BYTES: usize = 64 << 10;
const TURNS: usize = 30;

fn main() -> Result<()> {
    let named = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let backend = named.map(|name| name.parse::<Backend>()).transpose()?;
    // `cargo test` runs benches with `--test`: one turn shows that it still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let turns = if is_bench { TURNS } else { 1 };
    let xts = Xts::new(&Key::from_bytes(&[5; 64])?, backend)?;
    for encrypts in [true, false] {
        for skew in [0, 1] {
            curve(&xts, encrypts, skew, turns)?;
        }
    }
    Ok(())
}

/// In ascending order.
fn lengths() -> Vec<usize> {
    let mut lengths: Vec<usize> = (SHORTEST..EVERY_BYTE_UP_TO).collect();
    let mut blocks_len = EVERY_BYTE_UP_TO;
    while blocks_len <= LONGEST {
        lengths.extend([blocks_len - 1, blocks_len, blocks_len + 1]);
        let step = if blocks_len < 4096 {
            16
        } else {
            blocks_len / 64
        };
        blocks_len += step.next_multiple_of(16);
    }
    lengths.dedup();
    lengths
}

fn curve(xts: &Xts, encrypts: bool, skew: usize, turns: usize) -> Result<()> {
    let lengths = lengths();
    let mut buffer = SlotBuffer::allocate(1, 2 * LONGEST)?.remove(0);
    let buf = &mut buffer.area_mut(Area::Data)[skew..];
    let clock = Clock::monotonic();
    let mut best = vec![f64::INFINITY; lengths.len()];
    for _ in 0..turns {
        for (length, best) in lengths.iter().zip(&mut best) {
            *best = best.min(ns_per_byte(xts, encrypts, &clock, &mut buf[..*length])?);
        }
    }
    let direction = if encrypts { "encrypt" } else { "decrypt" };
    println!("\n{} {direction}, buffer + {skew} bytes", xts.backend());
    for (length, ns) in lengths.iter().zip(&best) {
        let near = length.next_multiple_of(512);
        let is_shown = *length == near || *length == near - 511;
        if is_shown && (near <= 2560 || near.is_power_of_two() || (near - 512).is_power_of_two()) {
            println!("{length:>8} bytes {:>7.2} GB/s", 1.0 / ns);
        }
    }
    let (ratio, length) = worst(&lengths, &best);
    println!("worst beside its neighbours: {length} bytes, {ratio:.2} times their cost per byte");
    Ok(())
}

/// The largest quotient of a length's cost per byte and that of the cheaper neighbour.
fn worst(lengths: &[usize], ns_per_byte: &[f64]) -> (f64, usize) {
    let ratio = |at: usize| {
        let before = ns_per_byte[at.saturating_sub(1)];
        let behind = ns_per_byte[(at + 1).min(lengths.len() - 1)];
        ns_per_byte[at] / before.min(behind)
    };
    let ratios = (0..lengths.len()).map(|at| (ratio(at), lengths[at]));
    ratios.fold(
        (0.0, 0),
        |worst, this| if this.0 > worst.0 { this } else { worst },
    )
}

fn ns_per_byte(xts: &Xts, encrypts: bool, clock: &Clock, buf: &mut [u8]) -> Result<f64> {
    let requests = WINDOW_BYTES.div_ceil(buf.len());
    let start_ns = clock.now_ns();
    for number in 0..requests {
        let iv = (number as u128).to_le_bytes();
        if encrypts {
            xts.encrypt_unit_in_place(&iv, buf)?;
        } else {
            xts.decrypt_unit_in_place(&iv, buf)?;
        }
    }
    let elapsed_ns = clock.now_ns() - start_ns;
    Ok(elapsed_ns as f64 / (requests * buf.len()) as f64)
}
