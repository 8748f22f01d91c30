//! What can be read from a cell: throughput, IOPS and the latency distribution, each with its unit
//! and the direction that is better.
//!
//! Latency here is always `lat`, from submission to completion, of both directions together.
//! Several repeats become one figure without averaging averages: throughput is weighted by time,
//! and histograms are merged before a percentile is taken.

#![forbid(unsafe_code)]

use super::format::Unit;
use crate::result::{Distribution, ResultRecord, Stages};
use crate::summary;

/// A number that every valid cell has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Bytes per second.
    Throughput,
    /// Requests per second.
    Iops,
    /// Mean latency.
    LatMean,
    /// Median latency.
    LatP50,
    /// 99th percentile of latency.
    LatP99,
    /// 99.9th percentile of latency.
    LatP99_9,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 6] = [
        Self::Throughput,
        Self::Iops,
        Self::LatMean,
        Self::LatP50,
        Self::LatP99,
        Self::LatP99_9,
    ];

    /// The key in machine-readable output and on the command line, unit included.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Throughput => "bw_bytes_per_s",
            Self::Iops => "iops",
            Self::LatMean => "lat_ns_mean",
            Self::LatP50 => "lat_ns_p50",
            Self::LatP99 => "lat_ns_p99",
            Self::LatP99_9 => "lat_ns_p99_9",
        }
    }

    /// The metric with this key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }

    /// The name in pictures, with which latency it is.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::Iops => "IOPS",
            Self::LatMean => "Mean latency (lat)",
            Self::LatP50 => "p50 latency (lat)",
            Self::LatP99 => "p99 latency (lat)",
            Self::LatP99_9 => "p99.9 latency (lat)",
        }
    }

    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::Throughput => Unit::BytesPerSecond,
            Self::Iops => Unit::PerSecond,
            _ => Unit::Nanoseconds,
        }
    }

    /// Fewest samples in a repeat of which it is more than one of the largest ones.
    #[must_use]
    pub const fn least_samples(self) -> u64 {
        match self {
            Self::LatP99 => 200,
            Self::LatP99_9 => 2000,
            _ => 0,
        }
    }

    /// Whether a larger value is better.
    #[must_use]
    pub const fn higher_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::Iops)
    }

    /// Whether `a` is better than `b`.
    #[must_use]
    pub fn is_better(self, a: f64, b: f64) -> bool {
        if self.higher_is_better() {
            a > b
        } else {
            a < b
        }
    }

    /// Its value among `figures`; `None` where an import does not say.
    #[must_use]
    pub fn of(self, figures: &Figures) -> Option<f64> {
        let lat = figures.lat.as_ref();
        match self {
            Self::Throughput => Some(figures.bw_bytes_per_s),
            Self::Iops => Some(figures.iops),
            Self::LatMean => lat.map(|lat| lat.mean_ns),
            Self::LatP50 => lat?.p50_ns.map(|ns| ns as f64),
            Self::LatP99 => lat?.p99_ns.map(|ns| ns as f64),
            Self::LatP99_9 => lat?.p99_9_ns.map(|ns| ns as f64),
        }
    }
}

/// The figures of one or several measurements of the same cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Throughput of both directions.
    pub bw_bytes_per_s: f64,
    /// Requests per second of both directions.
    pub iops: f64,
    /// From submission to completion, all samples of both directions; `None` where an import has none.
    pub lat: Option<Distribution>,
    /// Where the time of a request went, averaged over all of them; `None` where an import does not say.
    pub stages: Option<Stages>,
    /// Share of the requests whose cipher ran on the queue's own thread, 0..=1; `None` without any
    /// cipher work.
    pub inline_share: Option<f64>,
}

impl Figures {
    /// Number of requests whose latency is known.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.lat.as_ref().map_or(0, |lat| lat.samples)
    }

    /// The figures of `records` taken together.
    ///
    /// # Errors
    /// No samples at all, or a histogram that can't be read; in words.
    pub fn of(records: &[&ResultRecord]) -> Result<Self, String> {
        let parts: Vec<&Distribution> = records
            .iter()
            .flat_map(|record| record.directions().map(|stats| &stats.lat))
            .collect();
        if parts.is_empty() {
            return Err("no samples".to_owned());
        }
        let lat = match parts.as_slice() {
            [only] => Some((*only).clone()).filter(|only| only.samples > 0),
            _ => summary::merge(parts)?,
        };
        let weights: Vec<f64> = records
            .iter()
            .map(|record| record.achieved.runtime_ns as f64)
            .collect();
        let weighted = |value: fn(&ResultRecord) -> f64| {
            let pairs = records.iter().zip(&weights);
            pairs.map(|(record, w)| value(record) * w).sum::<f64>() / weights.iter().sum::<f64>()
        };
        Ok(Self {
            bw_bytes_per_s: weighted(ResultRecord::bw_bytes_per_s),
            iops: weighted(ResultRecord::iops),
            lat,
            stages: stages(records),
            inline_share: inline_share(records),
        })
    }
}

fn stages(records: &[&ResultRecord]) -> Option<Stages> {
    let mut sum = Stages::default();
    let mut ios = 0.0;
    for stats in records.iter().flat_map(|record| record.directions()) {
        let weight = stats.ios as f64;
        let stages = stats.stages?;
        ios += weight;
        sum.wait_ns_mean += stages.wait_ns_mean * weight;
        sum.dispatch_ns_mean += stages.dispatch_ns_mean * weight;
        sum.cipher_ns_mean += stages.cipher_ns_mean * weight;
        sum.device_ns_mean += stages.device_ns_mean * weight;
    }
    Some(Stages {
        wait_ns_mean: sum.wait_ns_mean / ios,
        dispatch_ns_mean: sum.dispatch_ns_mean / ios,
        cipher_ns_mean: sum.cipher_ns_mean / ios,
        device_ns_mean: sum.device_ns_mean / ios,
    })
}

fn inline_share(records: &[&ResultRecord]) -> Option<f64> {
    let placements = records.iter().map(|record| &record.achieved.placements);
    let (inline, all) = placements.fold((0, 0), |(inline, all), placed| {
        let here = placed.inline + placed.offload + placed.split;
        (inline + placed.inline, all + here)
    });
    (all > 0).then(|| inline as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record};

    #[test]
    fn keys_are_unique_and_lead_back_to_their_metric() {
        for metric in Metric::ALL {
            assert_eq!(Metric::from_key(metric.key()), Some(metric));
        }
    }

    #[test]
    fn repeats_are_weighted_by_their_time() {
        let mut long = record(cell("inline", 4096, 1), 1, 3e9);
        long.achieved.runtime_ns = 3_000_000;
        let mut short = record(cell("inline", 4096, 1), 2, 1e9);
        short.achieved.runtime_ns = 1_000_000;
        let figures = Figures::of(&[&long, &short]).unwrap();
        assert!((figures.bw_bytes_per_s - 2.5e9).abs() < 1.0);
        assert_eq!(figures.lat.as_ref().unwrap().samples, 200);
        let share = figures.inline_share.unwrap();
        assert!((share - 1000.0 / 1011.0).abs() < 1e-12, "{share}");
        let stages = figures.stages.unwrap();
        assert!(stages.cipher_ns_mean > stages.wait_ns_mean);
    }

    #[test]
    fn what_an_import_does_not_say_is_no_value() {
        let mut bare = record(cell("inline", 4096, 1), 1, 1e9);
        let read = bare.read.as_mut().unwrap();
        read.lat = summary::without_histogram(&read.lat);
        read.stages = None;
        let figures = Figures::of(&[&bare]).unwrap();
        assert_eq!(Metric::LatP99.of(&figures), None);
        assert!(Metric::LatMean.of(&figures).is_some() && figures.stages.is_none());
        bare.read.as_mut().unwrap().lat.samples = 0;
        let figures = Figures::of(&[&bare]).unwrap();
        assert_eq!(Metric::LatMean.of(&figures), None);
        assert!(Metric::Iops.of(&figures).is_some());
    }

    #[test]
    fn nothing_measured_and_broken_histograms_are_errors() {
        assert_eq!(Figures::of(&[]).unwrap_err(), "no samples");
        let mut broken = record(cell("inline", 4096, 1), 1, 1e9);
        if let Some(read) = &mut broken.read {
            read.lat.hdr_v2_deflate_base64 = Some("?".to_owned());
        }
        let whole = record(cell("inline", 4096, 1), 2, 1e9);
        assert!(
            Figures::of(&[&broken, &whole])
                .unwrap_err()
                .contains("base64")
        );
    }
}
