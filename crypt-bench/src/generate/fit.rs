//! Goodness of fit, for tests: Pearson's chi-square against known shares.
//!
//! Level of significance: one in ten thousand per comparison. Seeds are fixed, so a test that passed
//! passes; a wrong distribution of the sizes used here misses by far more than the level.

#![forbid(unsafe_code)]

/// The quantile of the standard normal distribution at 1 - 1/10,000.
const Z: f64 = 3.719;
/// Ranks are put together until this many are expected.
const LEAST_EXPECTED: f64 = 20.0;

/// Panics where counts don't fit shares, which add up to 1.
pub(super) fn fits(counts: &[u64], shares: &[f64]) {
    assert_eq!(counts.len(), shares.len());
    let total = counts.iter().sum::<u64>() as f64;
    let (mut statistic, mut cells) = (0.0, 0_u32);
    let (mut observed, mut expected) = (0.0, 0.0);
    for (index, (count, share)) in counts.iter().zip(shares).enumerate() {
        assert!(
            *share > 0.0 || *count == 0,
            "{count} at {index}, which has no share"
        );
        observed += *count as f64;
        expected += share * total;
        if expected >= LEAST_EXPECTED {
            statistic += (observed - expected).powi(2) / expected;
            (observed, expected, cells) = (0.0, 0.0, cells + 1);
        }
    }
    if expected > 0.5 {
        statistic += (observed - expected).powi(2) / expected;
        cells += 1;
    }
    let limit = quantile(f64::from(cells - 1));
    assert!(
        statistic < limit,
        "chi-square {statistic:.1}, limit {limit:.1}, {cells} cells"
    );
}

/// Weights divided by their sum.
pub(super) fn normalized(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// The chi-square quantile by Wilson and Hilferty's approximation.
fn quantile(degrees: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    degrees * (1.0 - part + Z * part.sqrt()).powi(3)
}

/// Probability that the mean of so many even numbers between 0 and 1 is below x (Irwin and Hall).
pub(super) fn mean_of_evens_below(numbers: u32, x: f64) -> f64 {
    let n = numbers;
    // The sum cancels badly in its upper half, and the distribution is symmetric.
    if x > 0.5 {
        return 1.0 - mean_of_evens_below(n, 1.0 - x);
    }
    let sum = x * f64::from(n);
    let (mut total, mut choose, mut factorial) = (0.0, 1.0, 1.0);
    for k in 0..=n {
        if f64::from(k) <= sum {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            total += sign * choose * (sum - f64::from(k)).powi(n as i32);
        }
        choose *= f64::from(n - k) / f64::from(k + 1);
        factorial *= f64::from(k.max(1));
    }
    total / factorial
}

#[test]
#[should_panic(expected = "chi-square")]
fn a_die_that_is_loaded_does_not_fit() {
    fits(&[1200, 960, 960, 960, 960, 960], &[1.0 / 6.0; 6]);
}

#[test]
fn quantiles_and_irwin_hall_are_those_of_tables() {
    // Chi-square with 10 degrees of freedom, upper tail 0.0001: 35.56.
    assert!((quantile(10.0) / 35.56 - 1.0).abs() < 0.02);
    assert!((mean_of_evens_below(1, 0.3) - 0.3).abs() < 1e-12);
    assert!((mean_of_evens_below(2, 0.25) - 0.125).abs() < 1e-12);
    assert!((mean_of_evens_below(12, 0.5) - 0.5).abs() < 1e-9);
}
