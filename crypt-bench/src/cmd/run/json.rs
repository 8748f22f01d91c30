//! Reports as fio's JSON, version 3: what tools read of it, from what was measured. Pure.
//!
//! Keys that fio has and that are not measured here are left out, rather than filled with zeros.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::outcome::Report;
use super::text::value_at;
use crate::jobfile::place::Plan;
use crate::result::{DirectionStats, Distribution};

/// One document.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub(super) fn text(plan: &Plan, reports: &[Report]) -> Result<String, String> {
    let jobs: Result<Vec<Value>, String> = reports.iter().map(|report| job(plan, report)).collect();
    let now = jiff::Timestamp::now();
    let document = json!({
        "fio version": format!("crypt-bench-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": now.as_second(),
        "timestamp_ms": now.as_millisecond(),
        "time": jiff::ZonedDateTime::now().strftime("%a %b %e %H:%M:%S %Y").to_string(),
        "global options": {},
        "jobs": jobs?,
    });
    Ok(format!("{document:#}\n"))
}

fn job(plan: &Plan, report: &Report) -> Result<Value, String> {
    let mut object = Map::new();
    object.insert("jobname".to_owned(), json!(report.name));
    object.insert("groupid".to_owned(), json!(report.group));
    object.insert("error".to_owned(), json!(report.errno));
    object.insert("total_err".to_owned(), json!(report.errors));
    object.insert(
        "job_runtime".to_owned(),
        json!(report.runtime_ns / 1_000_000),
    );
    object.insert(
        "elapsed".to_owned(),
        json!(report.runtime_ns.div_ceil(1_000_000_000)),
    );
    object.insert("job options".to_owned(), options(plan, report));
    object.insert("read".to_owned(), direction(report, 0)?);
    object.insert("write".to_owned(), direction(report, 1)?);
    if let Some(flush) = &report.flush {
        let lat = latency(&flush.lat, &report.percentiles, true)?;
        object.insert(
            "sync".to_owned(),
            json!({ "total_ios": flush.ios, "lat_ns": lat }),
        );
    }
    object.insert(
        "crypt_bench".to_owned(),
        json!({ "facts": report.facts, "threads": report.threads }),
    );
    Ok(Value::Object(object))
}

/// What is set, as strings, and what tools rely on.
fn options(plan: &Plan, report: &Report) -> Value {
    let mut options = Map::new();
    for (name, default) in [
        ("rw", "read"),
        ("bs", "4096"),
        ("iodepth", "1"),
        ("numjobs", "1"),
    ] {
        options.insert(name.to_owned(), json!(default));
    }
    if let Some(job) = plan.jobs.get(report.job) {
        for (name, setting) in job.settings.iter() {
            options.insert(name.to_owned(), json!(setting.text));
        }
        options.insert("name".to_owned(), json!(job.name));
    }
    Value::Object(options)
}

fn direction(report: &Report, direction: usize) -> Result<Value, String> {
    let stats = [&report.read, &report.write][direction];
    let runtime_ms = report.runtime_ns / 1_000_000;
    let Some(stats) = stats else {
        return Ok(json!({
            "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0,
            "total_ios": 0, "short_ios": 0, "drop_ios": 0,
            "slat_ns": empty(), "clat_ns": empty(), "lat_ns": empty(),
        }));
    };
    let mut object = counts(stats, runtime_ms);
    let kinds = [
        ("slat_ns", &stats.slat),
        ("clat_ns", &stats.clat),
        ("lat_ns", &stats.lat),
    ];
    for ((name, distribution), shown) in kinds.into_iter().zip(report.shown) {
        let value = latency(distribution, &report.percentiles, shown)?;
        object.insert(name.to_owned(), value);
    }
    if let Some(response) = &report.response[direction] {
        let value = latency(response, &report.percentiles, true)?;
        object.insert("response_ns".to_owned(), value);
    }
    Ok(Value::Object(object))
}

fn counts(stats: &DirectionStats, runtime_ms: u64) -> Map<String, Value> {
    let mut object = Map::new();
    let bw_bytes = stats.bw_bytes_per_s.round() as u64;
    for (name, value) in [
        ("io_bytes", stats.bytes),
        ("io_kbytes", stats.bytes / 1024),
        ("bw_bytes", bw_bytes),
        ("bw", bw_bytes / 1024),
        ("runtime", runtime_ms),
        ("total_ios", stats.ios),
        // A short transfer is continued until it is whole, a failed request ends its job.
        ("short_ios", 0),
        ("drop_ios", 0),
    ] {
        object.insert(name.to_owned(), json!(value));
    }
    object.insert("iops".to_owned(), json!(stats.iops));
    object
}

fn empty() -> Value {
    json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 })
}

fn latency(
    distribution: &Distribution,
    percentiles: &[f64],
    with_percentiles: bool,
) -> Result<Value, String> {
    let mut object = json!({
        "min": distribution.min_ns,
        "max": distribution.max_ns,
        "mean": distribution.mean_ns,
        "stddev": distribution.stddev_ns,
        "N": distribution.samples,
    });
    if with_percentiles {
        let mut values = Map::new();
        for &percentile in percentiles {
            let value_ns = value_at(distribution, percentile)?;
            values.insert(format!("{percentile:.6}"), json!(value_ns));
        }
        object["percentile"] = Value::Object(values);
    }
    Ok(object)
}
