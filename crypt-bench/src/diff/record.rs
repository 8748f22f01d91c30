//! Changes as documents have them: what [`machine`](super::machine) writes, and a gate's artefact. Plain data.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

#[cfg(test)]
use schemars::JsonSchema;

use super::{Change, Mean};
use crate::report::format::percent_change;
use crate::report::metric::Metric;

/// One metric of a cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ChangeRecord {
    /// Which, with its unit: `bw_bytes_per_s`, `lat_ns_p99`, ...
    pub metric: String,
    /// Median over the repeats of the first run; null without a valid repeat that has enough samples.
    pub baseline_median: Option<f64>,
    /// That of the second one.
    pub candidate_median: Option<f64>,
    /// Second / first, by Hodges and Lehmann; null where it is not known, or a change from zero.
    pub ratio: Option<f64>,
    /// The true ratio is at least this, with 99 % confidence on both bounds together; null where there are too few
    /// repeats, and for a change from zero.
    pub ratio_low: Option<f64>,
    /// The true ratio is at most this.
    pub ratio_high: Option<f64>,
    /// The chance of such a difference where there is none.
    pub p_value: Option<f64>,
    /// The same among all figures that were compared (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Repeats of the run with fewer.
    pub repeats: usize,
}

impl ChangeRecord {
    /// Of a change.
    #[must_use]
    pub fn of(change: &Change) -> Self {
        let finite = |value: f64| value.is_finite().then_some(value);
        let shift = change.shift.as_ref();
        let interval = shift.and_then(|shift| shift.interval);
        Self {
            metric: change.metric.key().to_owned(),
            baseline_median: change.medians[0],
            candidate_median: change.medians[1],
            ratio: shift.and_then(|shift| finite(shift.ratio)),
            ratio_low: interval.and_then(|(low, _)| finite(low)),
            ratio_high: interval.and_then(|(_, high)| finite(high)),
            p_value: shift.map(|shift| shift.p_value),
            p_adjusted: shift.map(|_| change.adjusted_p),
            repeats: shift.map_or(0, |shift| shift.repeats),
        }
    }

    /// Its metric, where this program knows it.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        Metric::from_key(&self.metric)
    }

    /// Metric, both medians, and the change with its interval, in words.
    #[must_use]
    pub fn columns(&self) -> [String; 4] {
        let metric = self.metric();
        let value = |median: Option<f64>| match (median, metric) {
            (None, _) => "-".to_owned(),
            (Some(value), Some(metric)) => metric.unit().text(value),
            (Some(value), None) => value.to_string(),
        };
        [
            title(&self.metric),
            value(self.baseline_median),
            value(self.candidate_median),
            self.change(),
        ]
    }

    /// The change with its interval, in percent.
    #[must_use]
    pub fn change(&self) -> String {
        match (self.p_value, self.ratio) {
            (None, _) => "-".to_owned(),
            (Some(_), None) => "from zero".to_owned(),
            (Some(_), Some(0.0)) => "to zero".to_owned(),
            (Some(_), Some(ratio)) => {
                let bound =
                    |bound: Option<f64>| bound.map_or("from zero".to_owned(), percent_change);
                let bounds = match (self.ratio_low, self.ratio_high) {
                    (None, None) => "(too few repeats for bounds)".to_owned(),
                    (low, high) => format!("[{}, {}]", bound(low), bound(high)),
                };
                format!("{} {bounds}", percent_change(ratio))
            }
        }
    }
}

/// What the metric with this key is called.
fn title(key: &str) -> String {
    Metric::from_key(key)
        .map_or(key, |metric| metric.title())
        .to_owned()
}

/// A geometric mean over cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MeanRecord {
    /// Of which metric.
    pub metric: String,
    /// Of cells under this policy; null for all.
    pub policy: Option<String>,
    /// Second / first.
    pub ratio: f64,
    /// The true ratio is above this with 95 % confidence.
    pub ratio_low: f64,
    /// It is below this with 95 % confidence.
    pub ratio_high: f64,
    /// Number of cells.
    pub cells: usize,
}

impl MeanRecord {
    /// Of a mean.
    #[must_use]
    pub fn of(mean: &Mean) -> Self {
        Self {
            metric: mean.metric.key().to_owned(),
            policy: mean.policy.clone(),
            ratio: mean.ratio.mean,
            ratio_low: mean.ratio.low,
            ratio_high: mean.ratio.high,
            cells: mean.cells,
        }
    }

    /// What stands above [`MeanRecord::columns`].
    #[must_use]
    pub fn heading() -> [String; 4] {
        ["geometric mean", "policy", "cells", "change"].map(str::to_owned)
    }

    /// Metric, policy, number of cells, and the mean with its bounds, in words.
    #[must_use]
    pub fn columns(&self) -> [String; 4] {
        let [middle, low, high] = [self.ratio, self.ratio_low, self.ratio_high].map(percent_change);
        [
            title(&self.metric),
            self.policy.clone().unwrap_or_else(|| "all".to_owned()),
            self.cells.to_string(),
            format!("{middle} [{low}, {high}]"),
        ]
    }
}
