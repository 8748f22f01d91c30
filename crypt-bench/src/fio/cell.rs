//! A measured cell as a job of fio's JSON: its repeats taken together.
//!
//! | fio | from |
//! | --- | --- |
//! | `io_bytes`, `total_ios` | summed over the repeats |
//! | `bw*`, `iops`, `runtime` | over the time of all repeats |
//! | `slat_ns`, `clat_ns`, `lat_ns` | merged histograms |
//! | `iops_min` and the like | whole slices of the throughput over time |
//! | `usr_cpu`, `sys_cpu` | the whole process, workers included, in percent of the time of the jobs |
//! | `job options` | the cell in fio's words, `crypt_*` where there is a cipher |
//! | `crypt_bench` | the cell itself, number of repeats, doubts |
//!
//! Pure.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::write::{self, Detail, Span, Usage};
use crate::result::{CellParams, DirectionStats, ResultRecord};
use crate::summary;

/// The job of a cell; `records` are its valid repeats, at least one.
///
/// # Errors
/// No records, or a histogram that can't be decoded; in words.
pub fn job(cell: &CellParams, records: &[&ResultRecord], bins: bool) -> Result<Value, String> {
    let first = records.first().ok_or("no valid repeat")?;
    let runtime_ns = records
        .iter()
        .map(|record| record.achieved.runtime_ns)
        .sum();
    let span = Span {
        runtime_ns,
        slice_ns: first.slice_ns,
        request_bytes: Some(cell.block_size_bytes),
    };
    let read = merged(records, |record| record.read.as_ref())?;
    let write = merged(records, |record| record.write.as_ref())?;
    let known = [&read, &write].into_iter().flatten();
    let whole = known
        .clone()
        .all(|stats| stats.lat.hdr_v2_deflate_base64.is_some());
    let detail = Detail {
        percentiles: write::PERCENTILES.to_vec(),
        shown: [whole; 3],
        bins: bins && whole,
    };
    let runtime_ms = runtime_ns / 1_000_000;
    let mut object = Map::new();
    for (name, value) in [
        ("jobname", json!(name(cell))),
        ("groupid", json!(0)),
        ("error", json!(0)),
        ("job_runtime", json!(runtime_ms * u64::from(cell.jobs))),
        ("elapsed", json!(runtime_ms.div_ceil(1000))),
        ("job options", options(cell)),
        (
            "read",
            Value::Object(write::direction(read.as_ref(), &span, &detail)?),
        ),
        (
            "write",
            Value::Object(write::direction(write.as_ref(), &span, &detail)?),
        ),
        ("crypt_bench", own(cell, records)),
    ] {
        object.insert(name.to_owned(), value);
    }
    usage(cell, records, runtime_ns).write(&mut object);
    if whole {
        let lats: Vec<_> = known.map(|stats| &stats.lat).collect();
        object.append(&mut write::classes(&lats)?);
    }
    Ok(Value::Object(object))
}

/// Name of a cell among others of the same block size: pattern, depth and jobs.
#[must_use]
pub fn name(cell: &CellParams) -> String {
    format!("{}-{}-{}", cell.rw.name(), cell.depth, cell.jobs)
}

/// One direction of all repeats.
fn merged(
    records: &[&ResultRecord],
    of: fn(&ResultRecord) -> Option<&DirectionStats>,
) -> Result<Option<DirectionStats>, String> {
    let parts: Vec<(&ResultRecord, &DirectionStats)> = records
        .iter()
        .filter_map(|record| Some((*record, of(record)?)))
        .collect();
    let all = |latency: fn(&DirectionStats) -> &crate::result::Distribution| {
        summary::merge(parts.iter().map(|(_, stats)| latency(stats)))
    };
    let (slat, clat, lat) = (
        all(|stats| &stats.slat)?,
        all(|stats| &stats.clat)?,
        all(|stats| &stats.lat)?,
    );
    let (Some(slat), Some(clat), Some(lat)) = (slat, clat, lat) else {
        return Ok(None);
    };
    let ios = parts.iter().map(|(_, stats)| stats.ios).sum();
    let bytes = parts.iter().map(|(_, stats)| stats.bytes).sum();
    let time_ns: u64 = records
        .iter()
        .map(|record| record.achieved.runtime_ns)
        .sum();
    let seconds = time_ns.max(1) as f64 / 1e9;
    let slice_ios = parts.iter().flat_map(|(record, stats)| {
        let whole = record.achieved.runtime_ns / record.slice_ns.max(1);
        stats.slice_ios.iter().copied().take(whole as usize)
    });
    Ok(Some(DirectionStats {
        ios,
        bytes,
        bw_bytes_per_s: bytes as f64 / seconds,
        iops: ios as f64 / seconds,
        slat,
        clat,
        lat,
        stages: None,
        slice_ios: slice_ios.collect(),
    }))
}

fn usage(cell: &CellParams, records: &[&ResultRecord], runtime_ns: u64) -> Usage {
    let percent = 100.0 / (runtime_ns.max(1) as f64 / 1e9 * f64::from(cell.jobs.max(1)));
    let sum = |of: fn(&ResultRecord) -> f64| records.iter().map(|record| of(record)).sum::<f64>();
    Usage {
        user_percent: sum(|record| record.cpu.user_s) * percent,
        system_percent: sum(|record| record.cpu.system_s) * percent,
    }
}

/// The cell in the words of a job file. All values are strings, as fio has them.
fn options(cell: &CellParams) -> Value {
    let (engine, file) = match cell.device.strip_prefix("file:") {
        Some(path) if cell.engine == "sync" => ("psync", Some(path)),
        Some(path) => ("io_uring", Some(path)),
        None => ("null", None),
    };
    let mut options = Map::new();
    let mut set = |name: &str, value: String| options.insert(name.to_owned(), json!(value));
    set("name", name(cell));
    set("rw", cell.rw.name().to_owned());
    set("rwmixread", cell.rwmixread_percent.to_string());
    set("bs", cell.block_size_bytes.to_string());
    set("iodepth", cell.depth.to_string());
    set("numjobs", cell.jobs.to_string());
    set("direct", u8::from(cell.direct).to_string());
    set("size", cell.size_bytes.to_string());
    set("runtime", format!("{}ms", cell.runtime_ms));
    set("ramp_time", format!("{}ms", cell.ramp_ms));
    set("ioengine", engine.to_owned());
    if let Some(path) = file {
        set("filename", path.to_owned());
    }
    if cell.cipher != "none" {
        set("crypt_cipher", cell.cipher.clone());
        set("crypt_policy", cell.policy.clone());
        set("crypt_sector_size", cell.sector_size_bytes.to_string());
    }
    Value::Object(options)
}

fn own(cell: &CellParams, records: &[&ResultRecord]) -> Value {
    let mut doubts: Vec<String> = Vec::new();
    for doubt in records.iter().flat_map(|record| &record.doubts) {
        let text = doubt.to_string();
        if !doubts.contains(&text) {
            doubts.push(text);
        }
    }
    json!({ "cell": cell, "repeats": records.len(), "doubts": doubts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record};

    #[test]
    fn repeats_add_up() {
        let cell = cell("adaptive", 4096, 8);
        let repeats = [1e9, 3e9].map(|bw| record(cell.clone(), 1, bw));
        let records: Vec<&ResultRecord> = repeats.iter().collect();
        let job = job(&cell, &records, true).unwrap();
        let ios: u64 = repeats
            .iter()
            .map(|one| one.read.as_ref().unwrap().ios)
            .sum();
        assert_eq!(job["read"]["total_ios"], ios);
        assert_eq!(job["read"]["io_bytes"], ios * 4096);
        assert_eq!(job["read"]["iops_samples"], 20);
        assert_eq!(job["write"]["total_ios"], 0);
        let lat = &job["read"]["lat_ns"];
        let bins = lat["bins"].as_object().unwrap().values();
        let counted: u64 = bins.map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(counted, lat["N"].as_u64().unwrap());
        assert_eq!(job["job options"]["crypt_policy"], "adaptive");
        assert_eq!(job["crypt_bench"]["repeats"], 2);
        let back: CellParams = serde_json::from_value(job["crypt_bench"]["cell"].clone()).unwrap();
        assert_eq!(back, cell);
    }

    #[test]
    fn what_has_no_histogram_has_no_percentiles() {
        let cell = cell("inline", 4096, 1);
        let mut bare = record(cell.clone(), 1, 1e9);
        let read = bare.read.as_mut().unwrap();
        read.lat = summary::without_histogram(&read.lat);
        let job = job(&cell, &[&bare], true).unwrap();
        assert!(job["read"]["lat_ns"].get("percentile").is_none());
        assert!(job.get("latency_us").is_none());
        assert!(super::job(&cell, &[], true).is_err());
    }
}
