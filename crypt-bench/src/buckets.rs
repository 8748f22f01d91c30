//! A histogram for the data path: the buckets of an HdrHistogram with three digits from 1 ns, as a
//! flat array, so that recording a value is one shift and one increment.
//!
//! Every bucket is exactly one of `summary::histogram`'s, so nothing is lost when the counts are
//! moved there. Allocates once; never panics on any value.

#![forbid(unsafe_code)]

use hdrhistogram::Histogram;

use crate::summary::{self, HIGHEST_NS};

/// log2 of the values that one bucket size covers at three digits: half of 2048.
const HALF_SHIFT: u32 = 10;
/// Values up to this one have buckets of their own.
const UNIT_MASK: u64 = (2 << HALF_SHIFT) - 1;

/// Counts of values from 0 to [`HIGHEST_NS`], and of those beyond.
#[derive(Clone, Debug)]
pub struct Buckets {
    counts: Box<[u64]>,
    over_range: u64,
}

impl Buckets {
    /// Empty buckets.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: vec![0; index_of(HIGHEST_NS) + 1].into_boxed_slice(),
            over_range: 0,
        }
    }

    /// Counts a value. Whether it has a bucket of its own, so that [`Buckets::exact`] tells it again.
    #[inline]
    pub fn record(&mut self, value_ns: u64) -> bool {
        if let Some(count) = self.counts.get_mut(value_ns as usize)
            && value_ns <= UNIT_MASK
        {
            *count += 1;
            return true;
        }
        self.record_long(value_ns);
        false
    }

    fn record_long(&mut self, value_ns: u64) {
        match self.counts.get_mut(index_of(value_ns)) {
            Some(count) => *count += 1,
            None => self.over_range += 1,
        }
    }

    /// Adds the counts of another one.
    pub fn absorb(&mut self, other: &Self) {
        // Empty buckets are left alone: most of the array is memory that was never touched.
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            if *more > 0 {
                *count += more;
            }
        }
        self.over_range += other.over_range;
    }

    /// The values that have buckets of their own, in order, and how often they were counted.
    pub fn exact(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let counts = self.counts.iter().take(UNIT_MASK as usize + 1);
        let values = counts
            .enumerate()
            .map(|(value, &count)| (value as u64, count));
        values.filter(|(_, count)| *count > 0)
    }

    /// Values beyond the range.
    #[must_use]
    pub fn over_range(&self) -> u64 {
        self.over_range
    }

    /// The same counts as a histogram that can be stored and merged.
    #[must_use]
    pub fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = summary::histogram();
        for (index, &count) in self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            histogram
                .record_n(value_of(index), count)
                .unwrap_or_else(|error| unreachable!("same range: {error}"));
        }
        histogram
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self::new()
    }
}

/// Values double from one bucket size to the next; each size has half as many buckets as the first.
#[inline]
fn index_of(value_ns: u64) -> usize {
    let size = (u64::BITS - 1 - HALF_SHIFT) - (value_ns | UNIT_MASK).leading_zeros();
    ((size as usize) << HALF_SHIFT) + (value_ns >> size) as usize
}

/// The smallest value of a bucket.
fn value_of(index: usize) -> u64 {
    let size = (index >> HALF_SHIFT).saturating_sub(1);
    ((index - (size << HALF_SHIFT)) as u64) << size
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_are_those_of_the_histogram(
            small in proptest::collection::vec(0_u64..5000, 0..50),
            large in proptest::collection::vec(0..=HIGHEST_NS, 0..50),
        ) {
            let (mut buckets, mut histogram) = (Buckets::new(), summary::histogram());
            for value_ns in small.into_iter().chain(large) {
                buckets.record(value_ns);
                histogram.record(value_ns).unwrap();
            }
            prop_assert_eq!(buckets.to_histogram(), histogram);
            prop_assert_eq!(buckets.over_range(), 0);
        }

        #[test]
        fn every_bucket_starts_at_its_value(value_ns in 0..=HIGHEST_NS) {
            let index = index_of(value_ns);
            prop_assert!(value_of(index) <= value_ns && value_ns < value_of(index + 1));
            prop_assert_eq!(index_of(value_of(index)), index);
        }
    }

    #[test]
    fn what_is_beyond_is_counted() {
        let mut buckets = Buckets::new();
        for value_ns in [u64::MAX, 2 * HIGHEST_NS, HIGHEST_NS] {
            buckets.record(value_ns);
        }
        assert_eq!(buckets.over_range(), 2);
    }
}
