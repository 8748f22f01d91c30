//! Distributions: from a histogram to figures, and merging without loss.
//!
//! Percentiles use integer ranks: the value at quantile q over n samples is the ceil(q n)-th, with
//! q an exact fraction, so an outlier in a thousand is what p99.9 shows. Figures are clamped to the
//! exact minimum and maximum, which are kept beside the histogram. Pure.

#![forbid(unsafe_code)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::result::Distribution;

/// Largest latency that a histogram resolves: one minute.
pub const HIGHEST_NS: u64 = 60_000_000_000;

/// Significant decimal digits of a histogram.
const DIGITS: u8 = 3;

/// Exact moments kept beside a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// Number of samples.
    pub samples: u64,
    /// Samples beyond the histogram's range.
    pub over_range_samples: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Sum of squared distances from the mean.
    pub squares_ns2: f64,
}

/// An empty histogram of the range and precision used everywhere.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"))
}

/// The figures of a histogram; `None` where it has no samples.
#[must_use]
pub fn distribution(histogram: &Histogram<u64>, moments: &Moments) -> Option<Distribution> {
    if moments.samples == 0 {
        return None;
    }
    let [p50, p90, p99, p99_9, p99_99] = [5_000, 9_000, 9_900, 9_990, 9_999]
        .map(|per_10_000| value_at_rank(histogram, rank(moments.samples, per_10_000)))
        .map(|value_ns| Some(value_ns.clamp(moments.min_ns, moments.max_ns)));
    Some(Distribution {
        samples: moments.samples,
        over_range_samples: moments.over_range_samples,
        min_ns: moments.min_ns,
        max_ns: moments.max_ns,
        mean_ns: moments.mean_ns,
        stddev_ns: (moments.squares_ns2 / moments.samples as f64).sqrt(),
        p50_ns: p50,
        p90_ns: p90,
        p99_ns: p99,
        p99_9_ns: p99_9,
        p99_99_ns: p99_99,
        hdr_v2_deflate_base64: Some(encode(histogram)),
    })
}

/// The value at quantile `numerator / denominator` of a stored distribution.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn quantile_ns(stored: &Distribution, numerator: u64, denominator: u64) -> Result<u64, String> {
    let histogram = histogram_of(stored)?;
    let rank = (u128::from(stored.samples) * u128::from(numerator))
        .div_ceil(u128::from(denominator.max(1))) as u64;
    Ok(value_at_rank(&histogram, rank).clamp(stored.min_ns, stored.max_ns))
}

/// The histogram of a stored distribution; samples beyond its range are not in it.
///
/// # Errors
/// Where there is none, or it can't be decoded; in words.
pub fn histogram_of(stored: &Distribution) -> Result<Histogram<u64>, String> {
    match &stored.hdr_v2_deflate_base64 {
        Some(text) => decode(text),
        None => Err("only percentiles are known of a latency, no histogram".to_owned()),
    }
}

/// One distribution over the samples of all; `None` where there are none. Where a part has no histogram, the
/// whole has none and no percentiles.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn merge<'a>(
    parts: impl IntoIterator<Item = &'a Distribution>,
) -> Result<Option<Distribution>, String> {
    let mut total = histogram();
    let mut whole = true;
    let mut moments: Option<Moments> = None;
    for part in parts.into_iter().filter(|part| part.samples > 0) {
        if part.hdr_v2_deflate_base64.is_some() {
            total
                .add(&histogram_of(part)?)
                .map_err(|error| format!("histograms don't merge: {error}"))?;
        } else {
            whole = false;
        }
        let other = moments_of(part);
        moments = Some(moments.map_or(other, |sum| sum.merged(&other)));
    }
    Ok(moments.and_then(|moments| {
        let merged = distribution(&total, &moments)?;
        Some(if whole {
            merged
        } else {
            without_histogram(&merged)
        })
    }))
}

/// What is known without the histogram: neither it nor percentiles.
#[must_use]
pub fn without_histogram(known: &Distribution) -> Distribution {
    Distribution {
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        p99_9_ns: None,
        p99_99_ns: None,
        hdr_v2_deflate_base64: None,
        ..known.clone()
    }
}

impl Moments {
    /// The moments of both sets of samples together (Chan, Golub and LeVeque 1979).
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let (n, m) = (self.samples as f64, other.samples as f64);
        if other.samples == 0 {
            return *self;
        }
        let delta = other.mean_ns - self.mean_ns;
        Self {
            samples: self.samples.saturating_add(other.samples),
            over_range_samples: self
                .over_range_samples
                .saturating_add(other.over_range_samples),
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
            mean_ns: self.mean_ns + delta * m / (n + m),
            squares_ns2: self.squares_ns2 + other.squares_ns2 + delta * delta * n * m / (n + m),
        }
    }
}

/// Rank of the value at a quantile given in ten-thousandths.
fn rank(samples: u64, per_10_000: u64) -> u64 {
    (u128::from(samples) * u128::from(per_10_000)).div_ceil(10_000) as u64
}

/// The `rank`-th smallest value, to the histogram's precision; ranks beyond it (samples out of
/// range) give its end, which clamping turns into the maximum.
fn value_at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0_u64;
    for step in histogram.iter_recorded() {
        seen = seen.saturating_add(step.count_at_value());
        if seen >= rank {
            return step.value_iterated_to();
        }
    }
    u64::MAX
}

fn moments_of(stored: &Distribution) -> Moments {
    Moments {
        samples: stored.samples,
        over_range_samples: stored.over_range_samples,
        min_ns: stored.min_ns,
        max_ns: stored.max_ns,
        mean_ns: stored.mean_ns,
        squares_ns2: stored.stddev_ns * stored.stddev_ns * stored.samples as f64,
    }
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .unwrap_or_else(|error| unreachable!("writing to memory can't fail: {error}"));
    BASE64.encode(bytes)
}

fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = BASE64
        .decode(text)
        .map_err(|error| format!("histogram is not base64: {error}"))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("histogram can't be decoded: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::distribution_of;
    use proptest::prelude::*;

    #[test]
    fn one_outlier_in_a_thousand_is_what_p99_9_shows() {
        let samples: Vec<u64> = (0..999).map(|_| 100).chain([1_000_000]).collect();
        let thousand = distribution_of(&samples);
        assert_eq!(thousand.p99_9_ns, Some(100), "the 999th of 1000");
        let samples: Vec<u64> = (0..998).map(|_| 100).chain([1_000_000; 2]).collect();
        assert_eq!(distribution_of(&samples).p99_9_ns, Some(1_000_000));
    }

    proptest! {
        #[test]
        fn percentiles_are_monotone_bounded_and_of_integer_rank(
            samples in proptest::collection::vec(0_u64..100_000_000_000, 1..300)
        ) {
            let stored = distribution_of(&samples);
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let figures = [
                (stored.p50_ns, 5_000), (stored.p90_ns, 9_000), (stored.p99_ns, 9_900),
                (stored.p99_9_ns, 9_990), (stored.p99_99_ns, 9_999),
            ];
            let mut last = stored.min_ns;
            for (value_ns, per_10_000) in figures {
                let value_ns = value_ns.unwrap();
                prop_assert!(value_ns >= last && value_ns <= stored.max_ns);
                last = value_ns;
                let exact = sorted[(samples.len() * per_10_000).div_ceil(10_000) - 1];
                if exact <= HIGHEST_NS {
                    prop_assert!(value_ns.abs_diff(exact) <= exact / 1000 + 1, "{value_ns} {exact}");
                }
            }
        }

        #[test]
        fn merging_parts_equals_measuring_the_whole(
            left in proptest::collection::vec(1_u64..10_000_000, 1..100),
            right in proptest::collection::vec(1_u64..10_000_000, 1..100),
        ) {
            let merged = merge([&distribution_of(&left), &distribution_of(&right)]).unwrap().unwrap();
            let whole = distribution_of(&[left, right].concat());
            prop_assert_eq!(&merged.hdr_v2_deflate_base64, &whole.hdr_v2_deflate_base64);
            prop_assert_eq!(merged.p99_9_ns, whole.p99_9_ns);
            prop_assert!((merged.mean_ns - whole.mean_ns).abs() <= whole.mean_ns * 1e-9);
            prop_assert!((merged.stddev_ns - whole.stddev_ns).abs() <= whole.mean_ns * 1e-6);
        }
    }

    #[test]
    fn what_has_no_histogram_keeps_its_moments_when_merged() {
        let whole = distribution_of(&[1, 2, 3]);
        let bare = without_histogram(&distribution_of(&[4, 5]));
        assert!(histogram_of(&bare).unwrap_err().contains("no histogram"));
        let merged = merge([&whole, &bare]).unwrap().unwrap();
        assert_eq!((merged.samples, merged.max_ns, merged.mean_ns), (5, 5, 3.0));
        assert_eq!((merged.p50_ns, merged.hdr_v2_deflate_base64), (None, None));
    }

    #[test]
    fn no_samples_have_no_distribution() {
        assert_eq!(merge([]).unwrap(), None);
    }
}
