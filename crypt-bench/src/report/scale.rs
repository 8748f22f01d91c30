//! Maps values to positions on a colour bar: linear, logarithmic, or ratios centred at 1.
//!
//! Pure. A scale fitted to nothing, to one value, or to zeros and infinities is still a scale:
//! every value has a position in 0..=1 and every scale has at least one tick.

#![forbid(unsafe_code)]

/// Ratios nearer to 1 than this still get pale colours, so that noise does not look like news.
const LEAST_RATIO_SPAN: f64 = 1.1;

/// Ratios beyond this (or below its inverse) get the end colours; the number is in the cell.
const MOST_RATIO_SPAN: f64 = 2.0;

/// How positions grow with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// Equal differences, equal steps; begins at zero where no value is negative.
    Linear,
    /// Equal factors, equal steps.
    Log,
    /// Logarithmic, with 1 in the middle.
    Ratio,
}

/// A fitted scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    clips: bool,
}

impl Scale {
    /// The scale that just holds `values`; values it can't show (not finite; for logarithms not
    /// positive) don't widen it.
    #[must_use]
    pub fn fit(kind: ScaleKind, values: impl IntoIterator<Item = f64>) -> Self {
        let usable = values
            .into_iter()
            .filter(|v| v.is_finite() && (kind == ScaleKind::Linear || *v > 0.0));
        let (least, most) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (least.min(v), most.max(v))
        });
        let widest = most.max(1.0 / least);
        let (low, high) = match kind {
            _ if least > most => (1.0, 1.0),
            ScaleKind::Linear => (least.min(0.0), most),
            ScaleKind::Log => (least, most),
            ScaleKind::Ratio => {
                let span = widest.clamp(LEAST_RATIO_SPAN, MOST_RATIO_SPAN);
                (1.0 / span, span)
            }
        };
        let clips = kind == ScaleKind::Ratio && high > low && widest > MOST_RATIO_SPAN;
        Self {
            kind,
            low,
            high,
            clips,
        }
    }

    /// Whether values beyond the ends exist and share the end colours.
    #[must_use]
    pub fn clips(&self) -> bool {
        self.clips
    }

    /// Position of `value` in 0..=1, clamped at the ends; 0.5 where the scale is a single value.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        let (low, high, value) = match self.kind {
            ScaleKind::Linear => (self.low, self.high, value),
            ScaleKind::Log | ScaleKind::Ratio => {
                (self.low.ln(), self.high.ln(), value.max(0.0).ln())
            }
        };
        let position = (value - low) / (high - low);
        if position.is_nan() || high <= low {
            0.5
        } else {
            position.clamp(0.0, 1.0)
        }
    }

    /// Values to label on the colour bar, lowest first: the ends and the middle.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        if self.high <= self.low {
            return vec![self.low];
        }
        let middle = match self.kind {
            ScaleKind::Linear => f64::midpoint(self.low, self.high),
            ScaleKind::Log => (self.low.ln() / 2.0 + self.high.ln() / 2.0).exp(),
            ScaleKind::Ratio => 1.0,
        };
        vec![self.low, middle, self.high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ScaleKind; 3] = [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Ratio];

    #[test]
    fn every_value_has_a_position_on_every_scale() {
        let strange = [
            0.0,
            -1.0,
            1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::MIN,
        ];
        for kind in KINDS {
            for count in 0..=strange.len() {
                let scale = Scale::fit(kind, strange[..count].iter().copied());
                assert!(!scale.ticks().is_empty());
                for value in strange {
                    let position = scale.position(value);
                    assert!((0.0..=1.0).contains(&position), "{scale:?} {value}");
                }
            }
        }
    }

    #[test]
    fn the_middle_of_a_logarithmic_scale_is_the_geometric_mean() {
        let scale = Scale::fit(ScaleKind::Log, [1.0, 10_000.0]);
        assert!((scale.position(100.0) - 0.5).abs() < 1e-12);
        assert!((scale.ticks()[1] - 100.0).abs() < 1e-9);
    }

    #[test]
    fn equal_gains_and_losses_lie_equally_far_from_the_middle() {
        let scale = Scale::fit(ScaleKind::Ratio, [1.5, 0.9]);
        let (gain, loss) = (scale.position(1.25), scale.position(0.8));
        assert!((gain + loss - 1.0).abs() < 1e-12);
        assert!((scale.position(1.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn noise_stays_pale_and_outliers_do_not_bleach_the_rest() {
        let quiet = Scale::fit(ScaleKind::Ratio, [0.995, 1.004]);
        assert!((quiet.position(1.004) - 0.5).abs() < 0.05);
        let loud = Scale::fit(ScaleKind::Ratio, [50.0, 1.2]);
        assert!(loud.position(1.2) > 0.6);
        assert!((loud.position(50.0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_constant_sits_in_the_middle_and_linear_scales_begin_at_zero() {
        let constant = Scale::fit(ScaleKind::Log, [7.0, 7.0]);
        assert!((constant.position(7.0) - 0.5).abs() < f64::EPSILON);
        assert_eq!(constant.ticks(), [7.0]);
        assert_eq!(Scale::fit(ScaleKind::Linear, [5.0, 10.0]).ticks()[0], 0.0);
    }
}
