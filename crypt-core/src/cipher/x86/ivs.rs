//! IVs as vectors. Nothing here waits for memory that was written a moment before, so that the CPU
//! can start on a request while it is still busy with the one before.

#![forbid(unsafe_code)]

use super::vector::Vector;
use crate::iv::{Iv, IvNumbers, Ivs};

/// `N` vectors of IVs from IV `from` on; behind the last IV it is repeated.
///
/// # Panics
/// Where there is no IV.
#[inline(always)]
pub(super) fn vectors<V: Vector, const N: usize>(
    isa: V::Isa,
    ivs: &Ivs<'_>,
    from: usize,
) -> [V; N] {
    match ivs {
        Ivs::Numbers { numbers, count } => numbered(isa, numbers, from, *count),
        Ivs::Listed(list) => listed(isa, list, from),
    }
}

/// The numbers are scalars on purpose: loading two neighbouring fields into a vector stalls like any
/// other load of what was just stored in pieces, and multiplying 512-bit vectors, which a compiler
/// does for a progression, lowers the clock of some CPUs.
#[inline(always)]
fn numbered<V: Vector, const N: usize>(
    isa: V::Isa,
    numbers: &IvNumbers,
    from: usize,
    count: usize,
) -> [V; N] {
    each_lane(isa, |lane| {
        let place = (from + lane).min(count - 1);
        [numbers.number(place), 0]
    })
}

#[inline(always)]
fn listed<V: Vector, const N: usize>(isa: V::Isa, list: &[Iv], from: usize) -> [V; N] {
    each_lane(isa, |lane| {
        let place = (from + lane).min(list.len() - 1);
        let (halves, _) = list[place].as_chunks::<8>();
        [u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]
    })
}

/// Vectors with the halves that `halves` gives for lane 0, 1, ... of them all.
#[inline(always)]
fn each_lane<V: Vector, const N: usize>(isa: V::Isa, halves: impl Fn(usize) -> [u64; 2]) -> [V; N] {
    let mut vectors = [V::splat(isa, &[0; 16]); N];
    for (index, vector) in vectors.iter_mut().enumerate() {
        *vector = V::from_halves(isa, |lane| halves(V::BLOCKS * index + lane));
    }
    vectors
}
