//! AES-256-XTS by the length of a data unit: whole blocks at an aligned address, and one byte more, which
//! steals ciphertext, at an odd one. In place, on one thread.

#![forbid(unsafe_code)]

use std::time::Duration;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::Backend;
use crypt_core::cipher::xts::Xts;
use crypt_core::clock::Clock;
use crypt_core::error::Result;
use crypt_core::key::Key;

use super::Direction;
use crate::report::curve::{Curves, Line, Scale};
use crate::report::format::Unit;

const SHORTEST: usize = 512;
const LONGEST: usize = 64 << 10;

/// Least bytes between two looks at the clock.
const WINDOW_BYTES: usize = 32 << 10;

/// One curve: what runs, and the best figure of each length so far.
struct Subject {
    xts: Xts,
    direction: Direction,
    /// Bytes behind the last whole block, and of the address behind an aligned one.
    extra: usize,
    /// In bytes per nanosecond.
    best: Vec<f64>,
}

/// Measures a curve for each backend, direction and alignment, in turns, for `time` each.
///
/// # Errors
/// As [`Xts::new`], and where there is no memory for the buffer.
pub(super) fn curves(
    backends: &[Backend],
    directions: &[Direction],
    time: Duration,
) -> Result<Curves> {
    let mut subjects = subjects(backends, directions)?;
    let mut buffer = SlotBuffer::allocate(1, 2 * LONGEST)?.remove(0);
    let clock = Clock::monotonic();
    let all_ns = time.as_nanos() * subjects.len() as u128;
    let start_ns = clock.now_ns();
    while u128::from(clock.now_ns() - start_ns) < all_ns {
        for subject in &mut subjects {
            subject.turn(&clock, buffer.area_mut(Area::Data))?;
        }
    }
    Ok(Curves {
        title: "AES-256-XTS by the length of a data unit".to_owned(),
        subtitle: "in place, one thread; best of interleaved slices".to_owned(),
        x_name: "length of the data unit".to_owned(),
        unit: Unit::BytesPerSecond,
        scale: Scale::Linear,
        lines: subjects.into_iter().map(Subject::line).collect(),
    })
}

fn subjects(backends: &[Backend], directions: &[Direction]) -> Result<Vec<Subject>> {
    let key = Key::from_bytes(&std::array::from_fn::<u8, 64, _>(|i| i as u8))?;
    let mut subjects = Vec::new();
    for &backend in backends {
        for &direction in directions {
            for extra in [0, 1] {
                subjects.push(Subject {
                    xts: Xts::new(&key, Some(backend))?,
                    direction,
                    extra,
                    best: vec![0.0; lengths().count()],
                });
            }
        }
    }
    Ok(subjects)
}

/// Eight lengths to each doubling.
fn lengths() -> impl Iterator<Item = usize> {
    let next = |length: &usize| Some(length + (1 << length.ilog2()) / 8);
    std::iter::successors(Some(SHORTEST), next).take_while(|length| *length <= LONGEST)
}

impl Subject {
    /// One window of every length.
    fn turn(&mut self, clock: &Clock, buffer: &mut [u8]) -> Result<()> {
        for (length, best) in lengths().zip(&mut self.best) {
            let unit = &mut buffer[self.extra..length + 2 * self.extra];
            let count = WINDOW_BYTES.div_ceil(length);
            let start_ns = clock.now_ns();
            for number in 0..count {
                let iv = (number as u128).to_le_bytes();
                match self.direction {
                    Direction::Decrypt => self.xts.decrypt_unit_in_place(&iv, unit)?,
                    _ => self.xts.encrypt_unit_in_place(&iv, unit)?,
                }
            }
            let elapsed_ns = (clock.now_ns() - start_ns).max(1);
            *best = best.max((count * unit.len()) as f64 / elapsed_ns as f64);
        }
        Ok(())
    }

    fn line(self) -> Line {
        let kind = match self.extra {
            0 => "whole blocks, aligned",
            _ => "one byte more, odd address",
        };
        let (backend, direction) = (self.xts.backend(), super::show::name(self.direction));
        let lengths = lengths().map(|length| (length + self.extra) as u64);
        Line {
            name: format!("{backend} {direction}, {kind}"),
            points: lengths
                .zip(self.best.iter().map(|best| best * 1e9))
                .collect(),
        }
    }
}
