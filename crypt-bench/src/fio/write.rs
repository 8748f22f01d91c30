//! Figures as fio writes them, piece by piece: latencies, directions, jobs, the document around them. Pure.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::bins;
use crate::result::{DirectionStats, Distribution};
use crate::summary;

/// fio's percentiles where nobody asks for others.
pub const PERCENTILES: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Upper ends of the classes that fio sorts latencies into, of each unit.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// What is written of latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// Percentiles.
    pub percentiles: Vec<f64>,
    /// Which latencies have them: slat, clat, lat.
    pub shown: [bool; 3],
    /// Whether those also have their counts: json+.
    pub bins: bool,
}

/// What the figures of a direction are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Measured time in nanoseconds.
    pub runtime_ns: u64,
    /// Length of a slice in nanoseconds.
    pub slice_ns: u64,
    /// Bytes of every request, where all have the same.
    pub request_bytes: Option<u64>,
}

/// Processor use of a job's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Time in user mode, in percent of the runtime.
    pub user_percent: f64,
    /// Time in the kernel, in percent of the runtime.
    pub system_percent: f64,
}

impl Usage {
    /// Writes it into a job.
    pub fn write(&self, job: &mut Map<String, Value>) {
        job.insert("usr_cpu".to_owned(), json!(self.user_percent));
        job.insert("sys_cpu".to_owned(), json!(self.system_percent));
    }
}

/// The document around jobs. `extra` is of our own, under a key that fio's tools don't know.
#[must_use]
pub fn document(jobs: &[Value], time: &jiff::ZonedDateTime, extra: Option<Value>) -> Value {
    let mut document = json!({
        "fio version": format!("crypt-bench-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": time.timestamp().as_second(),
        "timestamp_ms": time.timestamp().as_millisecond(),
        "time": time.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        "global options": {},
        "jobs": jobs,
    });
    if let Some(extra) = extra {
        document["crypt_bench"] = extra;
    }
    document
}

/// A direction of a job, with zeros where nothing was transferred.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn direction(
    stats: Option<&DirectionStats>,
    span: &Span,
    detail: &Detail,
) -> Result<Map<String, Value>, String> {
    let mut object = counts(stats, span.runtime_ns / 1_000_000);
    object.append(&mut samples(stats, span));
    for (index, name) in ["slat_ns", "clat_ns", "lat_ns"].into_iter().enumerate() {
        let value = match stats {
            Some(stats) => {
                let kinds = [&stats.slat, &stats.clat, &stats.lat];
                latency(kinds[index], detail, detail.shown[index])?
            }
            None => json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 }),
        };
        object.insert(name.to_owned(), value);
    }
    Ok(object)
}

fn counts(stats: Option<&DirectionStats>, runtime_ms: u64) -> Map<String, Value> {
    let (ios, bytes) = stats.map_or((0, 0), |stats| (stats.ios, stats.bytes));
    let bw_bytes = stats.map_or(0, |stats| stats.bw_bytes_per_s.round() as u64);
    let mut object = Map::new();
    for (name, value) in [
        ("io_bytes", bytes),
        ("io_kbytes", bytes / 1024),
        ("bw_bytes", bw_bytes),
        ("bw", bw_bytes / 1024),
        ("runtime", if stats.is_some() { runtime_ms } else { 0 }),
        ("total_ios", ios),
        // A short transfer is continued until it is whole.
        ("short_ios", 0),
        ("drop_ios", 0),
    ] {
        object.insert(name.to_owned(), json!(value));
    }
    let iops = stats.map_or(0.0, |stats| stats.iops);
    object.insert("iops".to_owned(), json!(iops));
    object
}

/// How throughput varied: over whole slices, where fio has samples of 500 ms.
fn samples(stats: Option<&DirectionStats>, span: &Span) -> Map<String, Value> {
    let slice_s = span.slice_ns.max(1) as f64 / 1e9;
    let whole = (span.runtime_ns / span.slice_ns.max(1)) as usize;
    let slices = stats.map_or(&[][..], |stats| &stats.slice_ios);
    let iops: Vec<f64> = slices
        .iter()
        .take(whole)
        .map(|&ios| ios as f64 / slice_s)
        .collect();
    let spread = Spread::of(&iops);
    let mut object = Map::new();
    for (name, value) in [
        ("iops_min", json!(spread.min.round() as u64)),
        ("iops_max", json!(spread.max.round() as u64)),
        ("iops_mean", json!(spread.mean)),
        ("iops_stddev", json!(spread.stddev)),
        ("iops_samples", json!(iops.len())),
    ] {
        object.insert(name.to_owned(), value);
    }
    if let Some(bytes) = span.request_bytes {
        let kib = bytes as f64 / 1024.0;
        for (name, value) in [
            ("bw_min", json!((spread.min * kib).round() as u64)),
            ("bw_max", json!((spread.max * kib).round() as u64)),
            ("bw_mean", json!(spread.mean * kib)),
            ("bw_dev", json!(spread.stddev * kib)),
            ("bw_samples", json!(iops.len())),
        ] {
            object.insert(name.to_owned(), value);
        }
    }
    object
}

#[derive(Default)]
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
}

impl Spread {
    /// Zeros without values, as fio has them.
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            stddev: (squares / n).sqrt(),
        }
    }
}

/// A latency, with percentiles and counts where it is `shown`.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn latency(stored: &Distribution, detail: &Detail, shown: bool) -> Result<Value, String> {
    let mut object = json!({
        "min": stored.min_ns,
        "max": stored.max_ns,
        "mean": stored.mean_ns,
        "stddev": stored.stddev_ns,
        "N": stored.samples,
    });
    if !shown {
        return Ok(object);
    }
    let mut values = Map::new();
    for &percentile in &detail.percentiles {
        let value_ns = value_at(stored, percentile)?;
        values.insert(format!("{percentile:.6}"), json!(value_ns));
    }
    object["percentile"] = Value::Object(values);
    if detail.bins {
        let bins = bins::bins(stored)?;
        let bins = bins.into_iter().map(|(key, n)| (key.to_string(), json!(n)));
        object["bins"] = Value::Object(bins.collect());
    }
    Ok(object)
}

/// The value at a percentile, by integer rank.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn value_at(stored: &Distribution, percentile: f64) -> Result<u64, String> {
    // Percentiles have at most six decimals in fio's output.
    let millionths = (percentile * 1e6).round() as u64;
    summary::quantile_ns(stored, millionths, 100_000_000)
}

/// `latency_ns`, `latency_us` and `latency_ms`: shares of the requests of all directions, by the class that
/// their whole latency falls into, in percent.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub fn classes(lats: &[&Distribution]) -> Result<Map<String, Value>, String> {
    let mut counts = [[0_u64; 12]; 3];
    let mut samples = 0;
    for stored in lats {
        samples += stored.samples;
        counts[2][11] += stored.over_range_samples;
        for step in summary::histogram_of(stored)?.iter_recorded() {
            let (unit, class) = class_of(step.value_iterated_to());
            counts[unit][class] += step.count_at_value();
        }
    }
    let percent = |count: u64| 100.0 * count as f64 / samples.max(1) as f64;
    let mut object = Map::new();
    for (name, counts) in ["latency_ns", "latency_us", "latency_ms"]
        .iter()
        .zip(counts)
    {
        let mut unit: Map<String, Value> = CLASSES
            .iter()
            .zip(counts)
            .map(|(end, count)| (end.to_string(), json!(percent(count))))
            .collect();
        if *name == "latency_ms" {
            unit.insert("2000".to_owned(), json!(percent(counts[10])));
            unit.insert(">=2000".to_owned(), json!(percent(counts[11])));
        }
        object.insert((*name).to_owned(), Value::Object(unit));
    }
    Ok(object)
}

/// The unit (0 for ns, 1 for us, 2 for ms) and the class in it.
fn class_of(value_ns: u64) -> (usize, usize) {
    let (unit, value) = match value_ns {
        0..1_000 => (0, value_ns),
        1_000..1_000_000 => (1, value_ns / 1_000),
        _ => (2, value_ns / 1_000_000),
    };
    let class = CLASSES.iter().position(|&end| value < end);
    (unit, class.unwrap_or(if value < 2_000 { 10 } else { 11 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, distribution_of, record};

    fn detail(bins: bool) -> Detail {
        Detail {
            percentiles: vec![50.0, 99.9],
            shown: [false, true, false],
            bins,
        }
    }

    #[test]
    fn percentiles_and_counts_are_where_they_were_asked_for() {
        let record = record(cell("inline", 4096, 1), 1, 1e9);
        let span = Span {
            runtime_ns: 200_000_000,
            slice_ns: record.slice_ns,
            request_bytes: Some(4096),
        };
        let read = record.read.as_ref();
        for bins in [false, true] {
            let object = direction(read, &span, &detail(bins)).unwrap();
            let clat = &object["clat_ns"];
            assert_eq!(clat["percentile"].as_object().unwrap().len(), 2);
            assert_eq!(clat.get("bins").is_some(), bins);
            assert!(object["lat_ns"].get("percentile").is_none());
            assert_eq!(object["bw"], (1e9_f64 / 1024.0) as u64);
            assert_eq!(object["iops_samples"], 10);
        }
        let none = direction(None, &span, &detail(true)).unwrap();
        assert_eq!(none["clat_ns"]["N"], 0);
        assert!(none["clat_ns"].get("percentile").is_none());
        assert_eq!(none["runtime"], 0);
    }

    #[test]
    fn classes_are_those_of_fio() {
        for (value_ns, class) in [
            (1, (0, 0)),
            (2, (0, 1)),
            (999, (0, 9)),
            (1_000, (1, 0)),
            (750_000, (1, 9)),
            (1_000_000, (2, 0)),
            (1_000_000_000, (2, 10)),
            (2_000_000_000, (2, 11)),
        ] {
            assert_eq!(class_of(value_ns), class, "{value_ns}");
        }
        let some = distribution_of(&[5, 5, 3_000, 3_000_000_000]);
        let object = classes(&[&some]).unwrap();
        assert_eq!(object["latency_ns"]["10"], 50.0);
        assert_eq!(object["latency_us"]["4"], 25.0);
        assert_eq!(object["latency_ms"][">=2000"], 25.0);
    }

    #[test]
    fn spread_without_values_is_zero() {
        assert_eq!(Spread::of(&[]).max, 0.0);
        let spread = Spread::of(&[1.0, 3.0]);
        assert_eq!((spread.min, spread.max, spread.mean), (1.0, 3.0, 2.0));
        assert_eq!(spread.stddev, 1.0);
    }
}
