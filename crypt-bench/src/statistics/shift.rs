//! How much one sample of repeats is off another one, and whether that can be chance.
//!
//! Figures are compared by their logarithms, so a shift is a factor, and a change to or from zero an infinite one.
//!
//! Repeats that ran next to each other are a *block*. What slows the machine down for a while slows a whole
//! block, so labels are permuted within *strata* of blocks only:
//!
//! - a stratum of one block is a pair of repeats, and the test is Wilcoxon's signed-rank test. It takes all drift out,
//!   and can't say less than 2^(1-n) with n blocks;
//! - strata of several blocks have many more permutations (five blocks 252, ten 184,756); the test is the sum of the
//!   rank sums of the strata (van Elteren, 1960, with equal weights). Drift within a stratum is noise to it; where the
//!   sides take turns that makes it say less, not more;
//! - samples that were measured one after the other are in strata as large as can be counted.
//!
//! Which strata there are follows from the number of blocks and of tests alone, never from the figures: the
//! smallest ones in which a change can be told from chance over all tests, with some blocks that contradict.
//!
//! The interval is that of the same test: all shifts that it would not tell from the truth.

#![forbid(unsafe_code)]

use super::null::{Null, doubled_ranks};
use super::{CONFIDENCE, FALSE_DISCOVERIES, middle};

/// Blocks in the largest strata: more permutations than could ever be needed, counted in a millisecond.
const MOST_BLOCKS: usize = 20;

/// Most pairs whose signs are counted one by one.
const MOST_PAIRS: usize = 200;

/// How far the least possible p-value has to be below what is needed: a few blocks may contradict the others.
const SLACK: f64 = 16.0;

/// The figures of two sides, the first one being what the second one is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Sample<'a> {
    /// Pairs that ran next to each other, in order of time.
    Interleaved(&'a [(f64, f64)]),
    /// Each side by itself, in order of time.
    Apart(&'a [f64], &'a [f64]),
}

/// What is known of second / first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The Hodges-Lehmann estimate; 0 or infinite where it is a change to or from zero.
    pub ratio: f64,
    /// Where the true ratio lies with [`CONFIDENCE`]; `None` where there are too few repeats for that.
    pub interval: Option<(f64, f64)>,
    /// The chance of a shift like this one, or further out on either side, where there is none.
    pub p_value: f64,
    /// The least that the p-value could have been with this number of repeats.
    pub least_p_value: f64,
    /// Repeats of the side with fewer.
    pub repeats: usize,
}

impl Shift {
    /// The shift of a sample, as one of `tests` that are judged together. `None` with fewer than two repeats on a side,
    /// or where a figure is negative or not finite.
    #[must_use]
    pub fn of(sample: &Sample<'_>, tests: usize) -> Option<Self> {
        match *sample {
            Sample::Interleaved(pairs) => Self::of_pairs(pairs, tests),
            Sample::Apart(first, second) => Self::apart(first, second),
        }
    }

    /// Whether the shift stands out of chance by itself: the interval leaves out that there is none.
    #[must_use]
    pub fn excludes_none(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    fn of_pairs(pairs: &[(f64, f64)], tests: usize) -> Option<Self> {
        if pairs.len() < 2 || !pairs.iter().all(|pair| usable(pair.0) && usable(pair.1)) {
            return None;
        }
        let count = pairs.len();
        let needed = FALSE_DISCOVERIES / tests.max(1) as f64 / SLACK;
        if least_of_pairs(count) <= needed && count <= MOST_PAIRS {
            return Some(Self::of_signs(pairs));
        }
        let enough = |blocks: &usize| least_of(&cut(count, count.div_ceil(*blocks))) <= needed;
        let blocks = (2..=MOST_BLOCKS.min(count))
            .find(enough)
            .unwrap_or(MOST_BLOCKS);
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let strata = count.div_ceil(blocks);
        Some(Self::of_strata(&first, &second, strata))
    }

    fn apart(first: &[f64], second: &[f64]) -> Option<Self> {
        let fewer = first.len().min(second.len());
        if fewer < 2 || !first.iter().chain(second).all(|figure| usable(*figure)) {
            return None;
        }
        // Every stratum has something of both sides.
        let strata = first
            .len()
            .max(second.len())
            .div_ceil(MOST_BLOCKS)
            .min(fewer);
        Some(Self::of_strata(first, second, strata))
    }

    /// Strata of one block each.
    fn of_signs(pairs: &[(f64, f64)]) -> Self {
        let shifts: Vec<f64> = pairs
            .iter()
            .map(|(first, second)| log_ratio(*first, *second))
            .collect();
        let changed: Vec<f64> = shifts
            .iter()
            .copied()
            .filter(|shift| *shift != 0.0)
            .collect();
        let sizes: Vec<f64> = changed.iter().map(|shift| shift.abs()).collect();
        let ranks = doubled_ranks(&sizes);
        let upwards = ranks
            .iter()
            .zip(&changed)
            .filter(|(_, shift)| **shift > 0.0);
        let p_value = Null::of_coins(&ranks).p_value(upwards.map(|(rank, _)| rank).sum());
        let means = (0..shifts.len()).flat_map(|one| {
            let shifts = &shifts;
            (one..shifts.len()).map(move |other| number((shifts[one] + shifts[other]) / 2.0))
        });
        let plain: Vec<usize> = (1..=shifts.len()).collect();
        Self::around(means.collect(), &Null::of_coins(&plain), p_value)
            .with(least_of_pairs(shifts.len()), shifts.len())
    }

    /// Both sides cut into this number of strata.
    fn of_strata(first: &[f64], second: &[f64], strata: usize) -> Self {
        let strata = Stratum::cut(first, second, strata);
        let ranks: Vec<Vec<usize>> = strata.iter().map(Stratum::doubled_ranks).collect();
        let sum: usize = strata
            .iter()
            .zip(&ranks)
            .map(|(stratum, ranks)| stratum.sum(ranks))
            .sum();
        let plain = Stratum::null(&strata, |stratum, _| (1..=stratum.len()).collect());
        let p_value = if ranks.iter().all(|ranks| are_distinct(ranks)) {
            plain.p_value(sum / 2)
        } else {
            Stratum::null(&strata, |_, index| ranks[index].clone()).p_value(sum)
        };
        let differences = strata.iter().flat_map(Stratum::differences).collect();
        let least = strata
            .iter()
            .map(|stratum| 1.0 / choices(stratum.first.len(), stratum.second.len()));
        Self::around(differences, &plain, p_value)
            .with(2.0 * least.product::<f64>(), first.len().min(second.len()))
    }

    /// The median of some differences, and their outer ones that `null` leaves.
    fn around(mut differences: Vec<f64>, null: &Null, p_value: f64) -> Self {
        differences.sort_by(f64::total_cmp);
        let outside = null.cut((1.0 - CONFIDENCE) / 2.0);
        let bound = |index: Option<usize>| Some(differences.get(index?)?.exp());
        let low = bound(outside.checked_sub(1));
        let high = bound(differences.len().checked_sub(outside));
        Self {
            ratio: middle(&differences).map_or(1.0, f64::exp),
            interval: low.zip(high),
            p_value,
            least_p_value: 1.0,
            repeats: 0,
        }
    }

    fn with(self, least_p_value: f64, repeats: usize) -> Self {
        Self {
            least_p_value: least_p_value.min(1.0),
            repeats,
            ..self
        }
    }
}

/// Repeats of both sides within which labels are permuted.
#[derive(Clone, Copy, Debug)]
struct Stratum<'a> {
    first: &'a [f64],
    second: &'a [f64],
}

impl<'a> Stratum<'a> {
    fn cut(mut first: &'a [f64], mut second: &'a [f64], strata: usize) -> Vec<Self> {
        let lens = cut(first.len(), strata)
            .into_iter()
            .zip(cut(second.len(), strata));
        let mut next = |(one, other)| {
            let stratum;
            (stratum, first) = first.split_at(one);
            let beside;
            (beside, second) = second.split_at(other);
            Self {
                first: stratum,
                second: beside,
            }
        };
        lens.map(&mut next).collect()
    }

    fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    fn doubled_ranks(&self) -> Vec<usize> {
        let both: Vec<f64> = self.first.iter().chain(self.second).copied().collect();
        doubled_ranks(&both)
    }

    /// The sum of the second side's ranks.
    fn sum(&self, ranks: &[usize]) -> usize {
        ranks[self.first.len()..].iter().sum()
    }

    fn differences(&self) -> impl Iterator<Item = f64> {
        let second = self.second;
        self.first
            .iter()
            .flat_map(move |a| second.iter().map(move |b| log_ratio(*a, *b)))
    }

    /// The distribution of the sum of the second side's ranks over all strata.
    fn null(strata: &[Self], ranks: impl Fn(&Self, usize) -> Vec<usize>) -> Null {
        let each = strata.iter().enumerate();
        let each = each.map(|(index, own)| Null::of_choices(&ranks(own, index), own.second.len()));
        each.reduce(|all, own| all.plus(&own))
            .unwrap_or_else(|| Null::of_coins(&[]))
    }
}

fn are_distinct(ranks: &[usize]) -> bool {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] < pair[1])
}

/// Whether a figure can be one of a repeat.
fn usable(figure: f64) -> bool {
    figure.is_finite() && figure >= 0.0
}

/// The logarithm of second / first; nothing has changed from zero to zero.
fn log_ratio(first: f64, second: f64) -> f64 {
    number((second / first).ln())
}

/// What is no number is where two things cancel out.
fn number(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// `count` repeats in order, in this number of parts of about equal length.
fn cut(count: usize, parts: usize) -> Vec<usize> {
    (0..parts)
        .map(|part| (part + 1) * count / parts - part * count / parts)
        .collect()
}

/// The least p-value of pairs.
fn least_of_pairs(count: usize) -> f64 {
    2.0 * 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX))
}

/// The least p-value of strata with this number of blocks each.
fn least_of(strata: &[usize]) -> f64 {
    2.0 * strata
        .iter()
        .map(|blocks| 1.0 / choices(*blocks, *blocks))
        .product::<f64>()
}

/// Ways to choose which of the repeats are of which side.
fn choices(first: usize, second: usize) -> f64 {
    (1..=second)
        .map(|n| (first + n) as f64 / n as f64)
        .product()
}

/// The fewest pairs whose signs can tell a change from chance among `tests`, some of them contradicting.
pub(super) fn least_pairs(tests: usize) -> usize {
    let enough = |count: &usize| least_of_pairs(*count) * tests as f64 * SLACK <= FALSE_DISCOVERIES;
    (1..).find(enough).unwrap_or(MOST_PAIRS)
}

/// Whether the least p-value that `blocks` interleaved blocks can have is small enough among `tests` to
/// call anything.
pub(super) fn can_tell(blocks: usize, tests: usize) -> bool {
    let largest = cut(blocks, blocks.div_ceil(MOST_BLOCKS).max(1));
    least_of_pairs(blocks).min(least_of(&largest)) * tests.max(1) as f64 <= FALSE_DISCOVERIES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(pairs: &[(f64, f64)], tests: usize) -> Shift {
        Shift::of(&Sample::Interleaved(pairs), tests).unwrap()
    }

    fn apart(first: &[f64], second: &[f64]) -> Shift {
        Shift::of(&Sample::Apart(first, second), 1).unwrap()
    }

    /// Figures of SciPy 1.14: `wilcoxon(d, mode="exact")` and `mannwhitneyu(a, b, method="exact")`.
    #[test]
    fn p_values_are_those_of_other_programs() {
        let logs: [f64; 12] = [
            0.11, -0.02, 0.07, 0.05, 0.13, 0.01, -0.03, 0.09, 0.04, 0.06, 0.08, 0.10,
        ];
        let pairs: Vec<_> = logs.iter().map(|log| (1.0, log.exp())).collect();
        let found = paired(&pairs, 1);
        // T- = 2 + 3; P(T <= 5) = 10 / 4096.
        assert!(
            (found.p_value - 2.0 * 10.0 / 4096.0).abs() < 1e-12,
            "{found:?}"
        );
        let (a, b) = ([1.0, 1.2, 1.1, 1.3, 0.9], [1.25, 1.5, 1.6, 1.4, 1.7]);
        // U = 1 of 25; P(U <= 1) = 2 / 252.
        assert!((apart(&a, &b).p_value - 4.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_take_out_what_slows_both() {
        let drift = [1.0, 3.0, 0.2, 9.0, 5.0, 2.0, 0.7, 4.0, 8.0, 1.5, 0.3, 6.0];
        let pairs: Vec<_> = (0..12)
            .map(|n| (drift[n], drift[n] * 0.9 * (1.0 + 0.001 * n as f64)))
            .collect();
        let found = paired(&pairs, 1);
        let (low, high) = found.interval.unwrap();
        assert!(
            low < 0.905 && high < 0.912 && found.p_value < 0.001,
            "{found:?}"
        );
        assert_eq!(found.p_value, found.least_p_value);
    }

    #[test]
    fn strata_grow_with_the_number_of_tests() {
        let pairs: Vec<_> = (0..12)
            .map(|n| (100.0 + n as f64, 50.0 + n as f64))
            .collect();
        let least: Vec<f64> = [1, 10, 1000]
            .iter()
            .map(|tests| paired(&pairs, *tests).least_p_value)
            .collect();
        assert!((least[0] - 2.0 / 4096.0).abs() < 1e-12, "{least:?}");
        assert!(least[0] > least[1] && least[1] > least[2], "{least:?}");
        assert!((least[2] - 2.0 / choices(12, 12)).abs() < 1e-12);
        assert!(can_tell(10, 500) && !can_tell(5, 500) && can_tell(5, 1));
    }

    #[test]
    fn a_change_to_or_from_zero_is_a_change() {
        let found = apart(&[5.0; 6], &[0.0; 6]);
        assert_eq!((found.ratio, found.interval), (0.0, Some((0.0, 0.0))));
        assert!(found.p_value < 0.01 && found.excludes_none());
        let found = paired(&[(0.0, 7.0); 12], 1);
        assert_eq!(found.ratio, f64::INFINITY);
        assert!(found.excludes_none());
        let still = paired(&[(0.0, 0.0); 12], 1);
        assert_eq!((still.ratio, still.p_value), (1.0, 1.0));
        assert!(!still.excludes_none());
    }

    #[test]
    fn equal_figures_are_no_change_and_too_few_have_no_interval() {
        assert_eq!(apart(&[2.0; 8], &[2.0; 8]).p_value, 1.0);
        let few = apart(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]);
        assert_eq!(few.interval, None);
        assert!((few.least_p_value - 0.1).abs() < 1e-12);
        assert_eq!(Shift::of(&Sample::Apart(&[1.0], &[1.0, 2.0]), 1), None);
        assert_eq!(
            Shift::of(&Sample::Apart(&[1.0, f64::NAN], &[1.0, 2.0]), 1),
            None
        );
        assert_eq!(Shift::of(&Sample::Interleaved(&[(1.0, -1.0); 5]), 1), None);
    }

    #[test]
    fn unequal_and_long_samples_have_strata_with_something_of_both() {
        let long: Vec<f64> = (0..70).map(|n| 100.0 + f64::from(n % 7)).collect();
        let short: Vec<f64> = long.iter().take(30).map(|figure| figure * 1.1).collect();
        let found = apart(&long, &short);
        assert!(
            (found.ratio - 1.1).abs() < 0.01 && found.p_value < 1e-6,
            "{found:?}"
        );
        assert_eq!(found.repeats, 30);
        let two = apart(&long, &short[..2]);
        assert!(two.p_value > 1e-4, "{two:?}");
    }
}
