//! Reports as fio's JSON, version 3. Pure.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::goals;
use super::outcome::Report;
use crate::doubt::Doubt;
use crate::fio::write::{self, Detail, Span};
use crate::jobfile::place::Plan;

/// One document; with `bins`, json+. A document of a run that goes on says so.
///
/// # Errors
/// A histogram that can't be decoded, in words.
pub(super) fn document(
    plan: &Plan,
    reports: &[Report],
    bins: bool,
    running: bool,
) -> Result<Value, String> {
    let jobs: Result<Vec<Value>, String> = reports
        .iter()
        .map(|report| job(plan, report, bins))
        .collect();
    let extra = running.then(|| json!({ "running": true }));
    Ok(write::document(&jobs?, &jiff::ZonedDateTime::now(), extra))
}

fn job(plan: &Plan, report: &Report, bins: bool) -> Result<Value, String> {
    let detail = Detail {
        percentiles: report.percentiles.clone(),
        shown: report.shown,
        bins,
    };
    let mut object = Map::new();
    for (name, value) in [
        ("jobname", json!(report.name)),
        ("groupid", json!(report.group)),
        ("error", json!(report.errno)),
        ("total_err", json!(report.errors)),
        // Of a group fio gives the sum over its threads.
        ("job_runtime", json!(report.thread_time_ns / 1_000_000)),
        ("elapsed", json!(report.runtime_ns.div_ceil(1_000_000_000))),
        ("job options", options(plan, report)),
        ("read", direction(report, 0, &detail)?),
        ("write", direction(report, 1, &detail)?),
        (
            "crypt_bench",
            json!({ "facts": report.facts, "threads": report.threads }),
        ),
    ] {
        object.insert(name.to_owned(), value);
    }
    if let Some(flush) = &report.flush {
        let lat = write::latency(&flush.lat, &detail, true)?;
        let sync = json!({ "total_ios": flush.ios, "lat_ns": lat });
        object.insert("sync".to_owned(), sync);
    }
    goals::write_json(&mut object, report);
    if let Some(usage) = &report.usage {
        usage.write(&mut object);
    }
    let lats: Vec<_> = [&report.read, &report.write]
        .into_iter()
        .flatten()
        .map(|stats| &stats.lat)
        .collect();
    object.append(&mut write::classes(&lats)?);
    object["crypt_bench"]["doubts"] = report.doubts.iter().map(doubt).collect();
    if let Some(lateness) = &report.lateness {
        object["crypt_bench"]["lateness_ns"] = write::latency(lateness, &detail, true)?;
    }
    if let Some(verified) = &report.verified {
        object["crypt_bench"]["verify"] = verified.json();
    }
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

fn direction(report: &Report, direction: usize, detail: &Detail) -> Result<Value, String> {
    let stats = [&report.read, &report.write][direction];
    let span = Span {
        runtime_ns: report.runtime_ns,
        slice_ns: report.slice_ns,
        request_bytes: report.request_bytes[direction],
    };
    let mut object = write::direction(stats.as_ref(), &span, detail)?;
    if let Some(response) = &report.response[direction] {
        let value = write::latency(response, detail, true)?;
        object.insert("response_ns".to_owned(), value);
    }
    Ok(Value::Object(object))
}

/// A doubt with its sentence, and whether it forbids to compare the figures.
fn doubt(doubt: &Doubt) -> Value {
    let mut value = json!(doubt);
    value["text"] = json!(doubt.to_string());
    value["invalidates"] = json!(doubt.invalidates());
    value
}
