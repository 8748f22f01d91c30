//! Exact distributions of sums of ranks where nothing differs: every permutation is counted, none is drawn.

#![forbid(unsafe_code)]

/// Probabilities of the sums from a least one on, by ones.
#[derive(Clone, Debug)]
pub(super) struct Null {
    least: usize,
    probabilities: Vec<f64>,
}

impl Null {
    /// Of the sum of those ranks that a coin chooses, each by itself.
    pub(super) fn of_coins(ranks: &[usize]) -> Self {
        let mut probabilities = vec![0.0; ranks.iter().sum::<usize>() + 1];
        probabilities[0] = 1.0;
        let mut most = 0;
        for rank in ranks {
            most += rank;
            for sum in (0..=most).rev() {
                let chosen = sum
                    .checked_sub(*rank)
                    .map_or(0.0, |rest| probabilities[rest]);
                probabilities[sum] = (probabilities[sum] + chosen) / 2.0;
            }
        }
        Self {
            least: 0,
            probabilities,
        }
    }

    /// Of the sum of `chosen` of the ranks, each choice as likely as any other.
    pub(super) fn of_choices(ranks: &[usize], chosen: usize) -> Self {
        // The least ranks first, so that the sums so far are as short as they can be.
        let mut ranks = ranks.to_vec();
        ranks.sort_unstable();
        let all: usize = ranks.iter().rev().take(chosen).sum();
        // Ways to reach each sum with each number of ranks.
        let mut ways = vec![vec![0.0; all + 1]; chosen + 1];
        ways[0][0] = 1.0;
        let mut most = 0;
        for rank in &ranks {
            most = (most + rank).min(all);
            for count in (1..=chosen).rev() {
                let (fewer, these) = ways.split_at_mut(count);
                for sum in *rank..=most {
                    these[0][sum] += fewer[count - 1][sum - rank];
                }
            }
        }
        let ways = ways.pop().unwrap_or_default();
        let least = ways.iter().position(|ways| *ways > 0.0).unwrap_or(0);
        let all: f64 = ways.iter().sum();
        let probabilities = ways[least..].iter().map(|ways| ways / all).collect();
        Self {
            least,
            probabilities,
        }
    }

    /// Of the sum with another one that is independent.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let len = self.probabilities.len() + other.probabilities.len() - 1;
        let mut probabilities = vec![0.0; len];
        for (at, own) in self
            .probabilities
            .iter()
            .enumerate()
            .filter(|(_, p)| **p > 0.0)
        {
            for (beyond, others) in other.probabilities.iter().enumerate() {
                probabilities[at + beyond] += own * others;
            }
        }
        Self {
            least: self.least + other.least,
            probabilities,
        }
    }

    /// The chance of a sum at least as far out as this one, on either side.
    pub(super) fn p_value(&self, sum: usize) -> f64 {
        let at = sum
            .saturating_sub(self.least)
            .min(self.probabilities.len() - 1);
        let below: f64 = self.probabilities[..=at].iter().sum();
        let above: f64 = self.probabilities[at..].iter().sum();
        (2.0 * below.min(above)).min(1.0)
    }

    /// How many of the least sums have at most this chance together, counted from the least possible one.
    pub(super) fn cut(&self, chance: f64) -> usize {
        let mut sum = 0.0;
        let within = self.probabilities.iter().take_while(|probability| {
            sum += **probability;
            sum <= chance
        });
        within.count()
    }
}

/// Twice the rank of each value, counted from 1; equal values share the mean of their ranks.
pub(super) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let last = first + equal.len();
        for index in equal {
            ranks[*index] = first + 1 + last;
        }
        first = last;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn signed_ranks_have_the_tabled_tails() {
        // Wilcoxon signed rank, n = 10: P(T <= 8) = 25/1024 and P(T <= 3) = 5/1024.
        let ranks: Vec<usize> = (1..=10).collect();
        let null = Null::of_coins(&ranks);
        assert_near(null.p_value(8), 2.0 * 25.0 / 1024.0);
        assert_near(null.p_value(55 - 3), 2.0 * 5.0 / 1024.0);
        assert_near(null.p_value(27), 1.0);
        assert_eq!(null.cut(0.005), 4);
    }

    #[test]
    fn rank_sums_have_the_tabled_tails() {
        // Mann-Whitney, 5 and 5: P(U <= 0) = 1/252, P(U <= 2) = 4/252.
        let ranks: Vec<usize> = (1..=10).collect();
        let null = Null::of_choices(&ranks, 5);
        assert_near(null.p_value(15), 2.0 / 252.0);
        assert_near(null.p_value(40 - 2), 2.0 * 4.0 / 252.0);
        assert_eq!(null.cut(0.005), 1);
        let two = null.plus(&null);
        assert_near(two.p_value(30), 2.0 / (252.0 * 252.0));
        assert_near(two.p_value(31), 2.0 * 3.0 / (252.0 * 252.0));
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(
            doubled_ranks(&[3.0, 1.0, 3.0, f64::NEG_INFINITY]),
            [7, 4, 7, 2]
        );
        assert_eq!(doubled_ranks(&[0.0, -0.0]), [3, 3]);
        assert_eq!(doubled_ranks(&[]), Vec::<usize>::new());
        let null = Null::of_choices(&doubled_ranks(&[1.0; 6]), 3);
        assert_near(null.p_value(21), 1.0);
    }
}
