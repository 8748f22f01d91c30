//! Hartigan's dip test: has a sample more than one mode?
//!
//! The dip is the largest distance between the empirical distribution function and the nearest unimodal one
//! (J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", Annals of Statistics 13(1), 1985; the
//! way to compute it is P. M. Hartigan's algorithm AS 217, Applied Statistics 34(3), 1985). Its p-value
//! comes from samples of the uniform distribution, the unimodal one that is hardest to tell from
//! several modes, drawn here with a fixed seed; no table is interpolated.
//!
//! The test takes the values as independent. Slices of one measurement are not: [`autocorrelation`] says how
//! much, and [`thinned`] leaves out what is too near to its neighbour. Pure; linear after sorting.

#![forbid(unsafe_code)]

use crate::generate::Random;

/// Fewest values that the test says something about.
pub const LEAST_VALUES: usize = 8;

/// The dip of a sample, 1 / 2n to 1/4; `None` below [`LEAST_VALUES`] or where a value is not finite.
#[must_use]
pub fn dip(values: &[f64]) -> Option<f64> {
    if values.len() < LEAST_VALUES || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(dip_of_sorted(&sorted))
}

/// Dips of uniform samples of one length.
#[derive(Clone, Debug)]
pub struct Null {
    sorted: Vec<f64>,
}

impl Null {
    /// The dips of `draws` samples of `len` values each. The same seed gives the same dips.
    #[must_use]
    pub fn new(len: usize, draws: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut sample = vec![0.0; len];
        let mut dips: Vec<f64> = (0..draws)
            .map(|_| {
                sample.fill_with(|| unit(&mut random));
                dip(&sample).unwrap_or(1.0)
            })
            .collect();
        dips.sort_by(f64::total_cmp);
        Self { sorted: dips }
    }

    /// The share of uniform samples with at least this dip, the tested sample counted among them: never 0.
    #[must_use]
    pub fn p_value(&self, dip: f64) -> f64 {
        let below = self.sorted.partition_point(|other| *other < dip);
        (self.sorted.len() - below + 1) as f64 / (self.sorted.len() + 1) as f64
    }
}

/// Values that were rounded to multiples of `step`, spread evenly over what each may have been: else
/// ties look like modes. The same seed gives the same values.
#[must_use]
pub fn without_ties(values: &[f64], step: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    values
        .iter()
        .map(|value| value + step * (unit(&mut random) - 0.5))
        .collect()
}

/// Correlation of each value with the next; 0 where nothing varies.
#[must_use]
pub fn autocorrelation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let next: f64 = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    let correlation = next / all;
    if correlation.is_finite() {
        correlation
    } else {
        0.0
    }
}

/// Every k-th value, with k such that as many are left as independent ones would tell as much about the
/// mean, (1 - r) / (1 + r) of them, where the correlation r falls with distance like a power.
#[must_use]
pub fn thinned(values: &[f64], correlation: f64) -> Vec<f64> {
    let r = correlation.clamp(0.0, 0.999);
    let step = ((1.0 + r) / (1.0 - r)).round().max(1.0) as usize;
    values.iter().step_by(step).copied().collect()
}

/// The means of the two groups that a cut at one value makes most different (Otsu, 1979); `None` where
/// nothing varies.
#[must_use]
pub fn two_means(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let total: f64 = sorted.iter().sum();
    let n = sorted.len() as f64;
    let mut best: Option<(f64, (f64, f64))> = None;
    let mut below = 0.0;
    for (index, pair) in sorted.windows(2).enumerate() {
        below += pair[0];
        if pair[0] == pair[1] {
            continue;
        }
        let count = (index + 1) as f64;
        let means = (below / count, (total - below) / (n - count));
        let between = count * (n - count) * (means.1 - means.0).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, means));
        }
    }
    best.map(|(_, means)| means)
}

/// A number from 0 to below 1.
fn unit(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The empirical distribution function, with the hulls from each point on.
struct Hulls<'a> {
    x: &'a [f64],
    /// The point before each one on the greatest convex minorant that ends there.
    before: Vec<usize>,
    /// The point after each one on the least concave majorant that begins there.
    after: Vec<usize>,
}

/// Where minorant and majorant are farthest apart: positions in their lists of points.
struct Farthest {
    distance: f64,
    minorant: usize,
    majorant: usize,
}

/// Narrows the interval that holds the mode until minorant and majorant are nearer to each other inside it
/// than the function is to them outside of it. Distances are in steps of 1 / n, of both sides together.
fn dip_of_sorted(x: &[f64]) -> f64 {
    let hulls = Hulls::new(x);
    let (mut low, mut high) = (0, x.len() - 1);
    let mut dip = 1.0_f64;
    loop {
        let minorant = chain(high, low, &hulls.before);
        let majorant = chain(low, high, &hulls.after);
        let farthest = hulls.farthest(&minorant, &majorant);
        if farthest.distance < dip {
            break;
        }
        // Outside of the new interval, minorant below and majorant above are final.
        for ends in minorant[farthest.minorant..].windows(2) {
            dip = dip.max(hulls.above_minorant(ends[1], ends[0]));
        }
        for ends in majorant[farthest.majorant..].windows(2) {
            dip = dip.max(hulls.below_majorant(ends[0], ends[1]));
        }
        let next = (minorant[farthest.minorant], majorant[farthest.majorant]);
        if next == (low, high) {
            break;
        }
        (low, high) = next;
    }
    dip / (2.0 * x.len() as f64)
}

/// The points from one end of an interval to the other.
fn chain(from: usize, to: usize, next: &[usize]) -> Vec<usize> {
    let mut points = vec![from];
    let mut point = from;
    while point != to {
        point = next[point];
        points.push(point);
    }
    points
}

impl<'a> Hulls<'a> {
    fn new(x: &'a [f64]) -> Self {
        let n = x.len();
        let mut before = vec![0; n];
        for j in 1..n {
            before[j] = j - 1;
            loop {
                let (k, l) = (before[j], before[before[j]]);
                if k == 0 || (x[j] - x[k]) * ((k - l) as f64) < (x[k] - x[l]) * (j - k) as f64 {
                    break;
                }
                before[j] = l;
            }
        }
        let mut after = vec![n - 1; n];
        for j in (0..n - 1).rev() {
            after[j] = j + 1;
            loop {
                let (k, l) = (after[j], after[after[j]]);
                if k == n - 1 || (x[k] - x[j]) * ((l - k) as f64) < (x[l] - x[k]) * (k - j) as f64 {
                    break;
                }
                after[j] = l;
            }
        }
        Self { x, before, after }
    }

    /// The line through the points `a` and `b`, which differ, at x of `at`, in steps above point `a`.
    fn line(&self, (a, b): (usize, usize), at: usize) -> f64 {
        (self.x[at] - self.x[a]) * (b - a) as f64 / (self.x[b] - self.x[a])
    }

    /// Walks both hulls over their common interval; `minorant` goes down, `majorant` up.
    fn farthest(&self, minorant: &[usize], majorant: &[usize]) -> Farthest {
        let mut found = Farthest {
            distance: 0.0,
            minorant: minorant.len() - 1,
            majorant: majorant.len() - 1,
        };
        if minorant.len() == 2 && majorant.len() == 2 {
            found.distance = 1.0;
            return found;
        }
        let (mut g, mut l) = (minorant.len().saturating_sub(2), 1.min(majorant.len() - 1));
        loop {
            let (lower, upper) = (minorant[g], majorant[l]);
            let distance;
            let at;
            if lower > upper {
                let left = minorant[g + 1];
                distance = upper as f64 - left as f64 + 1.0 - self.line((left, lower), upper);
                at = (g + 1, l);
                l = (l + 1).min(majorant.len() - 1);
            } else {
                let left = majorant[l - 1];
                distance = self.line((left, upper), lower) - (lower as f64 - left as f64 - 1.0);
                at = (g, l);
                g = g.saturating_sub(1);
            }
            if distance >= found.distance {
                found = Farthest {
                    distance,
                    minorant: at.0,
                    majorant: at.1,
                };
            }
            if minorant[g] == majorant[l] {
                return found;
            }
        }
    }

    /// How far the function rises above a piece of its minorant, at least one step.
    fn above_minorant(&self, a: usize, b: usize) -> f64 {
        self.most((a, b), |at, line| (at - a + 1) as f64 - line)
    }

    /// How far the function falls below a piece of its majorant, at least one step.
    fn below_majorant(&self, a: usize, b: usize) -> f64 {
        self.most((a, b), |at, line| line - (at as f64 - a as f64 - 1.0))
    }

    fn most(&self, (a, b): (usize, usize), distance: impl Fn(usize, f64) -> f64) -> f64 {
        if b - a <= 1 || self.x[a] == self.x[b] {
            return 1.0;
        }
        (a..=b)
            .map(|at| distance(at, self.line((a, b), at)))
            .fold(1.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear congruential generator that is easy to write in any language.
    fn lcg(len: usize) -> Vec<f64> {
        let mut state = 7_u64;
        (0..len)
            .map(|_| {
                state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
                state as f64 / 2_147_483_648.0
            })
            .collect()
    }

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!(
            (found - expected).abs() < 1e-12,
            "{what}: {found} {expected}"
        );
    }

    /// What `dipstat` of the Python package `diptest` 0.10 says of the same values.
    #[test]
    fn dips_agree_with_another_implementation() {
        for (len, uniform, two, tied, exponential) in [
            (
                8,
                0.1129232998856398,
                0.20642932667330027,
                0.1171875,
                0.11662968091018718,
            ),
            (
                10,
                0.1414349477731655,
                0.2064293266733003,
                0.15,
                0.09330374472814974,
            ),
            (
                50,
                0.03762921558263492,
                0.20076708775359467,
                0.07,
                0.032900807954877063,
            ),
            (
                200,
                0.019577400778551725,
                0.20021202377625463,
                0.0575,
                0.01792365879545783,
            ),
            (
                1000,
                0.010848594302243804,
                0.20008766977022058,
                0.055625,
                0.00966780996695288,
            ),
        ] {
            let values = lcg(len);
            let each = |change: &dyn Fn(usize, f64) -> f64| -> f64 {
                let changed: Vec<f64> = values
                    .iter()
                    .enumerate()
                    .map(|(i, v)| change(i, *v))
                    .collect();
                dip(&changed).unwrap()
            };
            assert_near(each(&|_, v| v), uniform, "uniform");
            assert_near(
                each(&|i, v| if i % 2 == 0 { v } else { v + 5.0 }),
                two,
                "two modes",
            );
            assert_near(each(&|_, v| (v * 10.0).floor()), tied, "ties");
            assert_near(each(&|_, v| -(1.0 - v).ln()), exponential, "exponential");
        }
    }

    #[test]
    fn the_least_dip_is_that_of_even_steps_and_the_largest_that_of_two_points() {
        let even: Vec<f64> = (0..20).map(f64::from).collect();
        assert_near(dip(&even).unwrap(), 1.0 / 40.0, "even");
        assert_near(dip(&[3.0; 20]).unwrap(), 1.0 / 40.0, "one point");
        let two: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        assert!((dip(&two).unwrap() - 0.25).abs() < 0.01);
    }

    #[test]
    fn what_has_no_distribution_has_no_dip() {
        assert_eq!(dip(&[]), None);
        assert_eq!(dip(&[1.0; LEAST_VALUES - 1]), None);
        assert_eq!(dip(&[f64::NAN; 20]), None);
        assert_eq!(dip(&[f64::INFINITY; 20]), None);
        assert_eq!(autocorrelation(&[]), 0.0);
        assert_eq!(two_means(&[2.0, 2.0]), None);
        assert!(thinned(&[], 0.5).is_empty());
    }

    #[test]
    fn scale_and_place_do_not_matter() {
        let values = lcg(100);
        let moved: Vec<f64> = values.iter().map(|v| 1e6 - 3.0 * v).collect();
        assert!((dip(&values).unwrap() - dip(&moved).unwrap()).abs() < 1e-9);
    }

    /// Sums of uniform numbers are near to a normal distribution.
    fn normal(random: &mut Random, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| unit(random)).sum();
        mean + deviation * (sum - 6.0)
    }

    #[test]
    fn two_modes_are_told_from_one() {
        let null = Null::new(300, 500, 1);
        let mut random = Random::new(3);
        let one: Vec<f64> = (0..300).map(|_| normal(&mut random, 100.0, 5.0)).collect();
        assert!(null.p_value(dip(&one).unwrap()) > 0.1);
        let two: Vec<f64> = (0..300)
            .map(|i| normal(&mut random, if i % 3 == 0 { 80.0 } else { 120.0 }, 5.0))
            .collect();
        assert_near(null.p_value(dip(&two).unwrap()), 1.0 / 501.0, "p");
        let (low, high) = two_means(&two).unwrap();
        assert!(
            (low - 80.0).abs() < 2.0 && (high - 120.0).abs() < 2.0,
            "{low} {high}"
        );
    }

    /// Its quantiles for 50 values, from 4000 samples of the other implementation: 0.0485 (half of them are
    /// below), 0.0700 (95 %), 0.0802 (99 %).
    #[test]
    fn the_null_distribution_has_the_known_quantiles() {
        let null = Null::new(50, 4000, 1);
        for (dip, p) in [(0.0485, 0.5), (0.0700, 0.05), (0.0802, 0.01)] {
            let found = null.p_value(dip);
            assert!((found - p).abs() < 0.25 * p, "{dip}: {found}");
        }
        assert_eq!(null.p_value(1.0), 1.0 / 4001.0);
        assert_eq!(null.p_value(0.0), 1.0);
    }

    #[test]
    fn rounding_looks_like_modes_until_ties_are_spread() {
        let mut random = Random::new(5);
        let rounded: Vec<f64> = (0..300)
            .map(|_| normal(&mut random, 100.0, 2.0).round())
            .collect();
        let null = Null::new(300, 500, 1);
        assert!(null.p_value(dip(&rounded).unwrap()) < 0.01);
        let spread = without_ties(&rounded, 1.0, 1);
        assert!(null.p_value(dip(&spread).unwrap()) > 0.1);
        assert!(
            spread
                .iter()
                .zip(&rounded)
                .all(|(a, b)| (a - b).abs() <= 0.5)
        );
        assert_eq!(spread, without_ties(&rounded, 1.0, 1));
    }

    #[test]
    fn neighbours_that_hang_together_are_thinned_out() {
        let mut random = Random::new(9);
        let mut last = 0.0;
        let walk: Vec<f64> = (0..5000)
            .map(|_| {
                last = 0.8 * last + normal(&mut random, 0.0, 1.0);
                last
            })
            .collect();
        let correlation = autocorrelation(&walk);
        assert!((correlation - 0.8).abs() < 0.05, "{correlation}");
        let rest = thinned(&walk, correlation);
        assert!((450..700).contains(&rest.len()), "{}", rest.len());
        assert!(autocorrelation(&rest).abs() < 0.25);
        assert_eq!(thinned(&walk, -0.5).len(), walk.len());
    }
}
