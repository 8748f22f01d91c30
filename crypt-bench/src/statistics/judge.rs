//! From a shift to a decision: worse, better, level, or nothing that could be said.

#![forbid(unsafe_code)]

use super::{FALSE_DISCOVERIES, Shift};

/// What a change is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Whether a larger figure is better.
    pub higher_is_better: bool,
    /// The factor above 1 up to which a figure may get worse.
    pub factor: f64,
}

/// What can be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// It got worse by more than the limit.
    Worse,
    /// It got better by more than the limit.
    Better,
    /// If it got worse at all, it is within the limit.
    Level,
    /// There are too few repeats, or they are too noisy.
    Open,
}

impl Limit {
    /// Figures that may get worse by this share of theirs, 0 up to below 1: a throughput by 5 % to 0.95 of it, a latency
    /// to 1.05.
    #[must_use]
    pub fn of_share(share: f64, higher_is_better: bool) -> Self {
        let factor = if higher_is_better {
            1.0 / (1.0 - share)
        } else {
            1.0 + share
        };
        Self {
            higher_is_better,
            factor,
        }
    }

    /// By what share a figure got worse that is off by a factor above 1.
    #[must_use]
    pub fn share_of(&self, factor: f64) -> f64 {
        if self.higher_is_better {
            1.0 - factor.recip()
        } else {
            factor - 1.0
        }
    }

    /// What can be said of `shift`, whose p-value among all tests is `adjusted`.
    ///
    /// A change counts only where the whole interval lies beyond the limit and the p-value is small enough for
    /// the whole family; a figure is level where the whole interval is within the limit or better.
    #[must_use]
    pub fn judge(&self, shift: &Shift, adjusted: f64) -> Call {
        let Some((low, high)) = shift.interval else {
            return Call::Open;
        };
        let (least, most) = if self.higher_is_better {
            (high.recip(), low.recip())
        } else {
            (low, high)
        };
        let discovered = adjusted <= FALSE_DISCOVERIES;
        if discovered && least > self.factor {
            Call::Worse
        } else if discovered && most < self.factor.recip() {
            Call::Better
        } else if most <= self.factor {
            Call::Level
        } else {
            Call::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(low: f64, high: f64) -> Shift {
        Shift {
            ratio: (low + high) / 2.0,
            interval: Some((low, high)),
            p_value: 0.0,
            least_p_value: 0.0,
            repeats: 10,
        }
    }

    #[test]
    fn the_whole_interval_has_to_lie_beyond_the_limit() {
        let throughput = Limit::of_share(0.05, true);
        let latency = Limit::of_share(0.05, false);
        for (low, high, of_throughput, of_latency) in [
            (0.90, 0.94, Call::Worse, Call::Better),
            (0.90, 0.96, Call::Open, Call::Level),
            (0.96, 1.04, Call::Level, Call::Level),
            (0.96, 1.06, Call::Level, Call::Open),
            (1.06, 1.10, Call::Better, Call::Worse),
            (0.90, 1.10, Call::Open, Call::Open),
            (0.0, 0.0, Call::Worse, Call::Better),
            (f64::INFINITY, f64::INFINITY, Call::Better, Call::Worse),
        ] {
            let shift = shift(low, high);
            assert_eq!(throughput.judge(&shift, 0.0), of_throughput, "{low} {high}");
            assert_eq!(latency.judge(&shift, 0.0), of_latency, "{low} {high}");
        }
    }

    #[test]
    fn what_may_be_chance_is_no_change() {
        let latency = Limit::of_share(0.05, false);
        assert_eq!(latency.judge(&shift(1.2, 1.3), 0.02), Call::Open);
        assert_eq!(latency.judge(&shift(0.8, 0.9), 0.02), Call::Level);
        let unknown = Shift {
            interval: None,
            ..shift(1.2, 1.3)
        };
        assert_eq!(latency.judge(&unknown, 0.0), Call::Open);
    }
}
