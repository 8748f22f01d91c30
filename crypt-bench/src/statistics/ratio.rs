//! The ratio of two policies over repeats that ran next to each other, with bounds on it.
//!
//! Repeat i of both policies is a pair: they ran one after the other, so what slows the machine down for a
//! while slows both. The logarithms of the pairs' ratios are taken as a sample of a normal distribution,
//! and the bounds are those of Student's t: each holds by itself with 95 % confidence, both together with 90 %.
//! Pure.

#![forbid(unsafe_code)]

/// Fewest pairs that say something.
pub const LEAST_PAIRS: usize = 3;

/// Student's t for 95 %, one-sided, with 1 to 10 degrees of freedom.
const T_95: [f64; 10] = [
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125,
];

/// The quantile of the normal distribution for 95 %.
const Z_95: f64 = 1.644_854;

/// A ratio with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean over the pairs.
    pub mean: f64,
    /// The true ratio lies above this with 95 % confidence.
    pub low: f64,
    /// The true ratio lies below this with 95 % confidence.
    pub high: f64,
}

/// What is known of the logarithm of a ratio.
#[derive(Clone, Copy, Debug)]
struct Sample {
    pairs: usize,
    mean: f64,
    /// Variance of the mean.
    variance: f64,
}

impl Ratio {
    /// The ratio over these pairs of (own, other); `None` with fewer than [`LEAST_PAIRS`], or where a value
    /// is not positive.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let sample = Sample::of(pairs)?;
        (pairs.len() >= LEAST_PAIRS).then(|| Self::around(sample, pairs.len() - 1))
    }

    /// The geometric mean of the ratios of many cells, each with its own pairs. Cells count alike, and
    /// their noise is taken as independent. `None` where nothing has [`LEAST_PAIRS`] pairs.
    #[must_use]
    pub fn over<'a>(cells: impl IntoIterator<Item = &'a [(f64, f64)]>) -> Option<Self> {
        let (mut mean, mut variance, mut count, mut freedom) = (0.0, 0.0, 0.0, 0);
        for pairs in cells {
            let Some(sample) = Sample::of(pairs).filter(|sample| sample.pairs >= LEAST_PAIRS)
            else {
                continue;
            };
            mean += sample.mean;
            variance += sample.variance;
            count += 1.0;
            freedom += sample.pairs - 1;
        }
        let sample = Sample {
            pairs: 0,
            mean: mean / count,
            variance: variance / (count * count),
        };
        (count > 0.0).then(|| Self::around(sample, freedom))
    }

    /// Half the distance of the bounds, as a factor above 1.
    #[must_use]
    pub fn noise(&self) -> f64 {
        (self.high / self.low).sqrt()
    }

    fn around(sample: Sample, freedom: usize) -> Self {
        let reach = t_95(freedom) * sample.variance.sqrt();
        Self {
            mean: sample.mean.exp(),
            low: (sample.mean - reach).exp(),
            high: (sample.mean + reach).exp(),
        }
    }
}

impl Sample {
    fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if pairs.len() < 2
            || !pairs
                .iter()
                .all(|pair| positive(pair.0) && positive(pair.1))
        {
            return None;
        }
        let logs = || pairs.iter().map(|(own, other)| (own / other).ln());
        let count = pairs.len() as f64;
        let mean = logs().sum::<f64>() / count;
        let squares: f64 = logs().map(|log| (log - mean).powi(2)).sum();
        Some(Self {
            pairs: pairs.len(),
            mean,
            variance: squares / (count - 1.0) / count,
        })
    }
}

/// Student's t for 95 %, one-sided: from the table, beyond it by the expansion of Cornish and Fisher, which is
/// good to four digits there (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5).
fn t_95(freedom: usize) -> f64 {
    if let Some(t) = T_95.get(freedom.saturating_sub(1)) {
        return *t;
    }
    let (z, v) = (Z_95, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;
    use crate::testing::normal;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in [
            (1, 6.314),
            (4, 2.132),
            (10, 1.812),
            (11, 1.796),
            (30, 1.697),
        ] {
            assert!(
                (t_95(freedom) - t).abs() < 6e-4,
                "{freedom}: {}",
                t_95(freedom)
            );
        }
        assert!((t_95(100_000) - Z_95).abs() < 1e-4);
    }

    #[test]
    fn the_bounds_hold_as_often_as_they_say() {
        let mut random = Random::new(7);
        let (trials, truth) = (4000, 0.9);
        let (mut above, mut below) = (0, 0);
        for _ in 0..trials {
            let pair = |random: &mut Random| (truth * (0.02 * normal(random)).exp(), 1.0);
            let pairs: Vec<_> = (0..5).map(|_| pair(&mut random)).collect();
            let ratio = Ratio::of(&pairs).unwrap();
            above += u32::from(ratio.low > truth);
            below += u32::from(ratio.high < truth);
        }
        // 5 % of 4000 is 200, with a standard deviation of 14.
        assert!(
            (130..270).contains(&above) && (130..270).contains(&below),
            "{above} {below}"
        );
    }

    #[test]
    fn pairs_cancel_what_slows_both() {
        let pairs = [(1.0, 2.0), (10.0, 20.0), (0.1, 0.2)];
        let ratio = Ratio::of(&pairs).unwrap();
        assert!((ratio.mean - 0.5).abs() < 1e-12 && (ratio.noise() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn too_little_and_what_is_not_positive_says_nothing() {
        assert_eq!(Ratio::of(&[(1.0, 1.0); 2]), None);
        for broken in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::of(&[(1.0, 1.0), (1.0, 1.0), (broken, 1.0)]), None);
        }
        assert_eq!(Ratio::over([[(1.0, 1.0); 2].as_slice()]), None);
        assert_eq!(Ratio::over([]), None);
    }

    #[test]
    fn many_cells_know_their_mean_better_than_one() {
        let noisy = [(1.0, 1.0), (1.1, 1.0), (1.0, 1.1)];
        let one = Ratio::of(&noisy).unwrap();
        let many = Ratio::over(vec![noisy.as_slice(); 50]).unwrap();
        assert!((one.mean - many.mean).abs() < 1e-12);
        assert!(many.noise() - 1.0 < (one.noise() - 1.0) / 7.0);
    }
}
