//! Zipf-distributed ranks without a table: rejection-inversion (Hörmann and Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6,
//! 1996). Exact for every number of ranks; about one number is drawn per rank.

#![forbid(unsafe_code)]

use super::random::Random;

/// Ranks `0..ranks`, where rank k has a share of `1 / (k+1)^theta`. Memory: five numbers.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    theta: f64,
    last: f64,
    /// The area under the hat, at its two ends.
    area: [f64; 2],
    /// Ranks this near to the inverse are always taken.
    sure: f64,
}

impl Zipf {
    /// `ranks` is at least 1, `theta` not negative.
    pub(super) fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self {
            theta,
            last: ranks as f64,
            area: [0.0; 2],
            sure: 0.0,
        };
        zipf.area = [zipf.integral(1.5) - 1.0, zipf.integral(zipf.last + 0.5)];
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank, from 0.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let [low, high] = self.area;
        loop {
            let area = high + random.unit() * (low - high);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.last);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the weight from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        let log = x.ln();
        if exponent == 0.0 {
            return log;
        }
        (exponent * log).exp_m1() / exponent
    }

    fn inverse(&self, area: f64) -> f64 {
        let exponent = 1.0 - self.theta;
        if exponent == 0.0 {
            return area.exp();
        }
        // Rounding may lead a hair beyond the end of the logarithm.
        ((area * exponent).max(-1.0).ln_1p() / exponent).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_stay_inside_whatever_theta_is() {
        for theta in [0.0, 0.5, 1.0, 1.2, 20.0, 100.0] {
            for ranks in [1, 2, 3, 1 << 40, u64::MAX >> 12] {
                let zipf = Zipf::new(ranks, theta);
                let mut random = Random::new(ranks);
                assert!((0..1000).all(|_| zipf.draw(&mut random) < ranks), "{theta}");
            }
        }
    }
}
