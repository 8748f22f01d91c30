//! fio's buckets of latencies (its `stat.h`): values up to 127 ns each on their own, then 64 to every power of
//! two, up to about 17 s, where the last one takes all that is longer.
//!
//! Every bucket of our histograms lies in exactly one of fio's, so counts move there exactly as if
//! fio had recorded them. Pure.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::result::Distribution;
use crate::summary;

/// log2 of the buckets to a power of two.
const BITS: u32 = 6;
/// Number of buckets.
const BUCKETS: usize = 29 << BITS;

/// The bucket of a value.
#[must_use]
pub fn index_of(value_ns: u64) -> usize {
    let dropped_bits = (u64::BITS - 1 - BITS).saturating_sub((value_ns | 1).leading_zeros());
    let index = ((dropped_bits as usize) << BITS) + (value_ns >> dropped_bits) as usize;
    index.min(BUCKETS - 1)
}

/// What fio calls a bucket: the middle of its values, in nanoseconds.
#[must_use]
pub fn value_of(index: usize) -> u64 {
    let (first_ns, width_ns) = bounds(index);
    first_ns + width_ns / 2
}

/// The first value of a bucket and how many values it has, in nanoseconds.
#[must_use]
pub fn bounds(index: usize) -> (u64, u64) {
    let dropped_bits = (index >> BITS).saturating_sub(1);
    let first_ns = ((index - (dropped_bits << BITS)) as u64) << dropped_bits;
    (first_ns, 1 << dropped_bits)
}

/// The counts of a stored distribution by the names of fio's buckets, empty ones left out.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn bins(stored: &Distribution) -> Result<BTreeMap<u64, u64>, String> {
    let mut bins = BTreeMap::new();
    let histogram = summary::histogram_of(stored)?;
    for step in histogram.iter_recorded() {
        let bucket_ns = value_of(index_of(step.value_iterated_to()));
        *bins.entry(bucket_ns).or_insert(0) += step.count_at_value();
    }
    if stored.over_range_samples > 0 {
        *bins.entry(value_of(BUCKETS - 1)).or_insert(0) += stored.over_range_samples;
    }
    Ok(bins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::distribution_of;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_that_of_fio() {
        // Pairs of a value and the key that fio 3.33 gave it in json+.
        for (value_ns, bucket_ns) in [
            (0, 0),
            (127, 127),
            (128, 129),
            (910, 908),
            (143_370, 144_384),
            (4_073_145, 4_079_616),
        ] {
            assert_eq!(value_of(index_of(value_ns)), bucket_ns, "{value_ns}");
        }
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_values_recorded_one_by_one(
            small in proptest::collection::vec(0_u64..5_000, 0..50),
            large in proptest::collection::vec(0_u64..100_000_000_000, 1..50),
        ) {
            let values: Vec<u64> = small.into_iter().chain(large).collect();
            let mut expected = BTreeMap::new();
            for &value_ns in &values {
                *expected.entry(value_of(index_of(value_ns))).or_insert(0) += 1;
            }
            prop_assert_eq!(bins(&distribution_of(&values)).unwrap(), expected);
        }

        #[test]
        fn a_value_lies_in_its_bucket(value_ns in 0_u64..17_000_000_000) {
            let (first_ns, width_ns) = bounds(index_of(value_ns));
            prop_assert!((first_ns..first_ns + width_ns).contains(&value_ns));
            prop_assert_eq!(index_of(value_of(index_of(value_ns))), index_of(value_ns));
        }
    }
}
