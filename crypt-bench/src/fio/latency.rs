//! Latencies from fio's JSON into ours.
//!
//! - With counts (json+) the result has a whole histogram. All values of a bucket stand at its middle, the name that
//!   fio gives it, or at the smallest or largest sample where the middle lies beyond it: at most half of 1/64 off. Percentiles are
//!   then taken from it by integer rank, as everywhere here.
//! - Without counts, percentiles are those that the file lists, no other, clamped to the smallest and largest sample,
//!   because fio's are middles of buckets and can lie beyond.
//! - The last bucket has no end: where the largest sample lies beyond its nominal one, its samples are out of range.
//!
//! Pure.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::bins;
use super::read::Latency;
use crate::result::Distribution;
use crate::summary::{self, Moments};

/// The distribution of a latency; `sample_stddev` says that its deviation is of the sample, as fio's is, and not
/// of the population.
///
/// # Errors
/// Figures that contradict each other, in words.
pub fn distribution(latency: &Latency, sample_stddev: bool) -> Result<Distribution, String> {
    if latency.samples == 0 {
        return Ok(unknown());
    }
    let moments = moments(latency, sample_stddev)?;
    match &latency.bins {
        Some(bins) => from_bins(bins, moments),
        None => from_percentiles(latency, &moments),
    }
}

/// What is known of a latency that was not recorded: nothing.
#[must_use]
pub fn unknown() -> Distribution {
    Distribution {
        samples: 0,
        over_range_samples: 0,
        min_ns: 0,
        max_ns: 0,
        mean_ns: 0.0,
        stddev_ns: 0.0,
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        p99_9_ns: None,
        p99_99_ns: None,
        hdr_v2_deflate_base64: None,
    }
}

fn moments(latency: &Latency, sample_stddev: bool) -> Result<Moments, String> {
    let Latency {
        min,
        max,
        mean,
        stddev,
        samples,
        ..
    } = *latency;
    let n = samples as f64;
    // The mean is written with six decimals.
    if min > max || mean < min as f64 - 1e-6 || mean > max as f64 + 1e-6 || stddev < 0.0 {
        return Err(format!(
            "min {min}, mean {mean}, max {max}, stddev {stddev} can't be of one distribution"
        ));
    }
    Ok(Moments {
        samples,
        over_range_samples: 0,
        min_ns: min,
        max_ns: max,
        mean_ns: mean,
        squares_ns2: stddev * stddev * if sample_stddev { n - 1.0 } else { n },
    })
}

fn from_bins(bins: &BTreeMap<String, u64>, mut moments: Moments) -> Result<Distribution, String> {
    let last_ns = bins::value_of(bins::index_of(u64::MAX));
    let (first_ns, width_ns) = bins::bounds(bins::index_of(u64::MAX));
    let mut histogram = summary::histogram();
    let mut counted: u64 = 0;
    for (name, &count) in bins {
        let value_ns = bucket(name)?;
        counted = counted.saturating_add(count);
        if value_ns == last_ns && moments.max_ns >= first_ns + width_ns {
            moments.over_range_samples = moments.over_range_samples.saturating_add(count);
            continue;
        }
        histogram
            .record_n(value_ns.clamp(moments.min_ns, moments.max_ns), count)
            .map_err(|error| format!("bins: {name}: {error}"))?;
    }
    if counted != moments.samples {
        return Err(format!(
            "bins hold {counted} samples, and N is {}",
            moments.samples
        ));
    }
    summary::distribution(&histogram, &moments).ok_or_else(|| "bins without samples".to_owned())
}

/// The middle of a bucket, from its name.
fn bucket(name: &str) -> Result<u64, String> {
    name.parse()
        .ok()
        .filter(|&value_ns| bins::value_of(bins::index_of(value_ns)) == value_ns)
        .ok_or_else(|| format!("bins: `{name}` is none of fio's buckets"))
}

fn from_percentiles(latency: &Latency, moments: &Moments) -> Result<Distribution, String> {
    let mut listed = Vec::new();
    for (name, &value_ns) in latency.percentile.iter().flatten() {
        let percentile: f64 = name
            .parse()
            .map_err(|_| format!("percentile: `{name}` is not a number"))?;
        listed.push((percentile, value_ns));
    }
    listed.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(pair) = listed.windows(2).find(|pair| pair[0].1 > pair[1].1) {
        return Err(format!(
            "percentile {} is above percentile {}",
            pair[0].0, pair[1].0
        ));
    }
    let at = |wanted: f64| {
        let found = listed
            .iter()
            .find(|(known, _)| (known - wanted).abs() < 5e-7);
        found.map(|&(_, value_ns)| value_ns.clamp(moments.min_ns, moments.max_ns))
    };
    let samples = moments.samples as f64;
    Ok(Distribution {
        samples: moments.samples,
        over_range_samples: 0,
        min_ns: moments.min_ns,
        max_ns: moments.max_ns,
        mean_ns: moments.mean_ns,
        stddev_ns: (moments.squares_ns2 / samples).sqrt(),
        p50_ns: at(50.0),
        p90_ns: at(90.0),
        p99_ns: at(99.0),
        p99_9_ns: at(99.9),
        p99_99_ns: at(99.99),
        hdr_v2_deflate_base64: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::write::{self, Detail};
    use crate::testing::distribution_of;
    use proptest::prelude::*;

    fn written(stored: &Distribution, bins: bool) -> Latency {
        let detail = Detail {
            percentiles: write::PERCENTILES.to_vec(),
            shown: [true; 3],
            bins,
        };
        serde_json::from_value(write::latency(stored, &detail, true).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(
            samples in proptest::collection::vec(0_u64..15_000_000_000, 1..200)
        ) {
            let stored = distribution_of(&samples);
            let plain = distribution(&written(&stored, false), false).unwrap();
            let known = Distribution { hdr_v2_deflate_base64: None, ..stored.clone() };
            prop_assert!((plain.stddev_ns - known.stddev_ns).abs() <= known.stddev_ns * 1e-9);
            prop_assert_eq!(Distribution { stddev_ns: known.stddev_ns, ..plain }, known);
            let whole = distribution(&written(&stored, true), false).unwrap();
            for (mine, theirs) in [
                (whole.p50_ns, stored.p50_ns), (whole.p90_ns, stored.p90_ns), (whole.p99_ns, stored.p99_ns),
            ] {
                let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
                prop_assert!(mine.abs_diff(theirs) <= theirs / 64 + 1, "{mine} {theirs}");
            }
            prop_assert_eq!(bins::bins(&whole).unwrap(), bins::bins(&stored).unwrap());
        }
    }

    #[test]
    fn the_last_bucket_is_out_of_range_where_the_largest_sample_is() {
        let stored = distribution_of(&[1_000, 30_000_000_000]);
        let back = distribution(&written(&stored, true), false).unwrap();
        assert_eq!(
            (back.over_range_samples, back.p99_ns),
            (1, Some(30_000_000_000))
        );
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let good = written(&distribution_of(&[100, 200, 300]), true);
        let broken = |change: fn(&mut Latency)| {
            let mut latency = good.clone();
            change(&mut latency);
            distribution(&latency, true).unwrap_err()
        };
        assert!(broken(|latency| latency.min = 400).contains("can't be of one"));
        assert!(broken(|latency| latency.mean = 301.0).contains("can't be of one"));
        assert!(broken(|latency| latency.samples = 4).contains("N is 4"));
        let name = |name: &'static str| BTreeMap::from([(name.to_owned(), 3)]);
        let mut odd = good.clone();
        odd.bins = Some(name("130"));
        assert!(
            distribution(&odd, true)
                .unwrap_err()
                .contains("`130` is none")
        );
        odd.bins = None;
        odd.percentile = Some(name("many"));
        assert!(
            distribution(&odd, true)
                .unwrap_err()
                .contains("not a number")
        );
        odd.percentile = Some(BTreeMap::from([
            ("9.0".to_owned(), 300),
            ("50.0".to_owned(), 100),
        ]));
        assert!(distribution(&odd, true).unwrap_err().contains("is above"));
    }

    #[test]
    fn no_samples_and_no_percentiles_are_unknown() {
        let mut latency = written(&distribution_of(&[100]), false);
        latency.percentile = None;
        let found = distribution(&latency, true).unwrap();
        assert_eq!(
            (found.p50_ns, found.mean_ns, found.stddev_ns),
            (None, 100.0, 0.0)
        );
        latency.samples = 0;
        assert_eq!(distribution(&latency, true), Ok(unknown()));
    }
}
