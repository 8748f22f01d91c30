//! What can be said about two samples of repeats, and about many such pairs at once.
//!
//! The unit is the *repeat*, with one figure (its throughput, its p99): requests within one are not independent.
//!
//! - [`Shift`]: one cell. How much one side is off the other (Hodges and Lehmann, 1963), an interval for it, and the
//!   p-value of a permutation test that is stratified by blocks of repeats that ran next to each other.
//! - [`adjusted`]: many cells. Of what is called a discovery at a level, that share is none in the mean (Benjamini
//!   and Hochberg, 1995).
//! - [`Limit`]: what of that is called a change.
//! - [`power`]: what effect such a test finds, and how many repeats another one takes.
//! - [`change_points`]: where a series of figures changes its level.
//! - [`Ratio`]: geometric means over a matrix, by Student's t.
//!
//! Everything is exact or closed and draws no random numbers: the same figures give the same verdict. Pure.

#![forbid(unsafe_code)]

mod discovery;
mod judge;
mod null;
pub mod power;
mod ratio;
mod shift;
mod trend;

pub use discovery::adjusted;
pub use judge::{Call, Limit};
pub use ratio::{LEAST_PAIRS, Ratio};
pub use shift::{Sample, Shift};
pub use trend::{ChangePoint, change_points};

/// Share of false ones among what is called a change, at most, in the mean over many matrices.
pub const FALSE_DISCOVERIES: f64 = 0.01;

/// Confidence of the interval of a [`Shift`].
pub const CONFIDENCE: f64 = 0.99;

/// The median; `None` without values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle(&values)
}

/// The median of sorted values.
fn middle(sorted: &[f64]) -> Option<f64> {
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let upper = *sorted.get(sorted.len() / 2)?;
    // Equal ones may be infinite.
    Some(if lower == upper {
        lower
    } else {
        (lower + upper) / 2.0
    })
}

#[cfg(test)]
mod tests;
