//! What effects a number of repeats finds, and how many repeats an effect takes.
//!
//! From the interval of a [`Shift`] alone: its width says how noisy repeats are, whatever their distribution. The
//! estimate is taken as normal, with a deviation of half the width over the quantile of [`CONFIDENCE`].
//! Effects are factors above 1 and count in both directions.

#![forbid(unsafe_code)]

use super::shift::{can_tell, least_pairs};
use super::{CONFIDENCE, FALSE_DISCOVERIES, Shift};

/// How often an effect is to be found that is called detectable.
pub const POWER: f64 = 0.95;

/// Fewest repeats of a cell that are advised, whatever their noise.
pub const LEAST_REPEATS: usize = 10;

/// Most repeats that are worth advising.
pub const MOST_REPEATS: usize = 10_000;

/// Standard deviation of the logarithm of a shift of one pair of repeats; `None` where the interval is not
/// known or has no width.
#[must_use]
pub fn noise(shift: &Shift) -> Option<f64> {
    let (low, high) = shift.interval?;
    let half = (high / low).ln() / 2.0;
    let noise = half / quantile(0.5 + CONFIDENCE / 2.0) * (shift.repeats as f64).sqrt();
    noise.is_finite().then_some(noise)
}

/// The least effect that a gate finds in [`POWER`] of the cases: with this noise, so many repeats and so many tests,
/// where changes up to `threshold` (1.05 for 5 %) are none. `None` where it can find nothing at all.
#[must_use]
pub fn detectable(noise: f64, repeats: usize, tests: usize, threshold: f64) -> Option<f64> {
    can_tell(repeats, tests).then(|| {
        let deviation = noise / (repeats as f64).sqrt();
        let found = quantile(POWER);
        let beyond = threshold.ln() + (quantile(0.5 + CONFIDENCE / 2.0) + found) * deviation;
        let alone = 1.0 - FALSE_DISCOVERIES / tests.max(1) as f64 / 2.0;
        let discovered = (quantile(alone) + found) * deviation;
        beyond.max(discovered).exp()
    })
}

/// The fewest repeats for so many tests, whatever the noise: at least [`LEAST_REPEATS`], and so many that labels can be
/// permuted within pairs, which takes out all drift.
#[must_use]
pub fn least_repeats(tests: usize) -> usize {
    least_pairs(tests).max(LEAST_REPEATS)
}

/// The fewest repeats, from [`least_repeats`] on, with which `effect` is detectable; `None` where more than
/// [`MOST_REPEATS`] would be needed, as for an effect that is not above the threshold.
#[must_use]
pub fn repeats_for(effect: f64, noise: f64, tests: usize, threshold: f64) -> Option<usize> {
    let enough = |repeats: usize| {
        detectable(noise, repeats, tests, threshold).is_some_and(|least| least <= effect)
    };
    let (mut few, mut many) = (least_repeats(tests) - 1, MOST_REPEATS);
    if !enough(many) {
        return None;
    }
    while few + 1 < many {
        let middle = (few + many) / 2;
        if enough(middle) {
            many = middle;
        } else {
            few = middle;
        }
    }
    Some(many)
}

/// The quantile of the standard normal distribution for a probability between 0 and 1, to 4.5e-4 (Abramowitz
/// and Stegun, Handbook of Mathematical Functions, 26.2.23).
fn quantile(probability: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let size = t - above / below;
    if probability < 0.5 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, z) in [
            (0.8, 0.8416),
            (0.95, 1.6449),
            (0.995, 2.5758),
            (0.025, -1.96),
        ] {
            assert!((quantile(probability) - z).abs() < 5e-4, "{probability}");
        }
    }

    #[test]
    fn more_repeats_find_less_and_more_tests_find_more() {
        let at = |repeats, tests| detectable(0.03, repeats, tests, 1.05).unwrap();
        assert!(at(10, 24) > at(20, 24) && at(20, 24) > at(80, 24) && at(80, 24) > 1.05);
        let of_tests = |tests| detectable(0.03, 10, tests, 1.0).unwrap();
        assert!(of_tests(500) > of_tests(1));
        assert_eq!(detectable(0.03, 4, 24, 1.05), None);
    }

    #[test]
    fn repeats_are_the_fewest_that_do() {
        for effect in [1.06, 1.07, 1.08] {
            let repeats = repeats_for(effect, 0.03, 24, 1.05).unwrap();
            assert!(detectable(0.03, repeats, 24, 1.05).unwrap() <= effect);
            let fewer = detectable(0.03, repeats - 1, 24, 1.05);
            assert!(
                fewer.is_none_or(|least| least > effect),
                "{effect} {repeats}"
            );
        }
        assert_eq!(repeats_for(1.5, 0.0, 24, 1.05), Some(17));
        assert_eq!(repeats_for(1.05, 0.03, 24, 1.05), None);
        assert_eq!(repeats_for(1.04, 0.0, 24, 1.05), None);
    }
}
