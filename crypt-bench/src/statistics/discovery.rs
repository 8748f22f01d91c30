//! Many tests at once: p-values as they count in a whole matrix.

#![forbid(unsafe_code)]

/// The p-values of a family, adjusted by Benjamini and Hochberg's step-up procedure: those at or below q are
/// discoveries with a false discovery rate of at most q, for tests that are independent or depend on each other
/// positively (Benjamini and Yekutieli, 2001), as the metrics of a cell do.
#[must_use]
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*b].total_cmp(&p_values[*a]));
    let count = p_values.len() as f64;
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (above, index) in order.into_iter().enumerate() {
        least = least.min(p_values[index] * count / (count - above as f64));
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of R's `p.adjust(p, "BH")`.
    #[test]
    fn p_values_are_adjusted_as_elsewhere() {
        let found = adjusted(&[0.01, 0.04, 0.03, 0.005, 0.8]);
        let expected = [0.025, 0.05, 0.05, 0.025, 0.8];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(adjusted(&[]), Vec::<f64>::new());
        assert_eq!(adjusted(&[0.2]), [0.2]);
    }

    #[test]
    fn one_small_p_value_counts_less_among_many() {
        let mut family = vec![0.9; 500];
        family[7] = 1e-4;
        assert!((adjusted(&family)[7] - 0.05).abs() < 1e-12);
    }
}
