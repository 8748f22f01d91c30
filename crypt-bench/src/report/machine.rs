//! The report for programs: one CSV line or JSON object per cell, with units in every key.
//!
//! Numbers are exact; what was not measured or may not be trusted is empty in CSV and null in JSON.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::cells::CellSummary;
use super::decisions;
use super::grid::Cell;
use super::metric::{Figures, Metric};
use super::model::Report;
use super::published;
use super::verdict::Verdict;

/// Columns before the metrics.
const PARAMETERS: [&str; 25] = [
    "run",
    "device",
    "cipher",
    "key_bits",
    "sector_size_bytes",
    "rw",
    "rwmixread_percent",
    "block_size_bytes",
    "block_sizes",
    "depth",
    "jobs",
    "issuer_cpus",
    "devices",
    "workers",
    "policy",
    "hipri",
    "readahead",
    "direct",
    "engine",
    "cipher_throttle_bytes_per_s",
    "size_bytes",
    "runtime_ms",
    "ramp_ms",
    "slice_us",
    "seed",
];

/// Columns after the metrics.
const REST: [&str; 14] = [
    "wait_ns_mean",
    "dispatch_ns_mean",
    "cipher_ns_mean",
    "device_ns_mean",
    "inline_share",
    "decisions",
    "bw_relative_spread",
    "repeats_valid",
    "repeats",
    "samples",
    "state",
    "doubts",
    "column",
    "published",
];

/// A table with a heading, RFC 4180.
#[must_use]
pub fn csv(report: &Report<'_>) -> String {
    let columns: Vec<&str> = PARAMETERS
        .into_iter()
        .chain(Metric::ALL.map(Metric::key))
        .chain(REST)
        .collect();
    let mut text = columns.join(",") + "\r\n";
    for cell in &report.cells {
        let mut object = object(report, cell);
        object.insert("decisions".to_owned(), json!(decisions::field(cell)));
        let fields = columns.iter().map(|column| field(object.get(*column)));
        text += &(fields.collect::<Vec<_>>().join(",") + "\r\n");
    }
    text
}

/// One JSON document: verdict, line-up and cells.
#[must_use]
pub fn json(report: &Report<'_>) -> String {
    let lineup = report.lineup.as_ref();
    let document = json!({
        "schema_version": crate::result::SCHEMA_VERSION,
        "verdict": Verdict::of(report).lines(),
        "candidate_policy": lineup.map(|l| &l.candidate),
        "other_policies": lineup.map(|l| &l.others),
        "runs": report.runs.iter().map(|run| &run.name).collect::<Vec<_>>(),
        "published": published::json(&published::sections(report)),
        "cells": report.cells.iter().map(|cell| object(report, cell)).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn object(report: &Report<'_>, cell: &CellSummary<'_>) -> Map<String, Value> {
    let mut object = match serde_json::to_value(cell.params) {
        Ok(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let run = report.runs.get(cell.run).map(|run| &run.name);
    object.insert("run".to_owned(), json!(run));
    for metric in Metric::ALL {
        object.insert(metric.key().to_owned(), json!(cell.cell(metric).value()));
    }
    let state = match cell.cell(Metric::Throughput) {
        Cell::Value { .. } => "valid",
        Cell::Invalid { .. } => "invalid",
        Cell::Missing => "missing",
    };
    let figures = cell.figures.as_ref().ok().and_then(Option::as_ref);
    let (column, published) = published::of_cell(report, cell);
    let stages = figures.and_then(|figures| figures.stages);
    let rest = [
        json!(stages.map(|stages| stages.wait_ns_mean)),
        json!(stages.map(|stages| stages.dispatch_ns_mean)),
        json!(stages.map(|stages| stages.cipher_ns_mean)),
        json!(stages.map(|stages| stages.device_ns_mean)),
        json!(figures.and_then(|figures| figures.inline_share)),
        decisions::json(cell),
        json!(cell.relative_spread(Metric::Throughput)),
        json!(cell.repeats.len()),
        json!(cell.records.len()),
        json!(figures.map_or(0, Figures::samples)),
        json!(state),
        json!(cell.doubts()),
        json!(column),
        json!(published),
    ];
    for (name, value) in REST.into_iter().zip(rest) {
        object.insert(name.to_owned(), value);
    }
    object
}

/// One CSV field, quoted where it has to be.
pub(crate) fn field(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let text = |item: &Value| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            };
            items.iter().map(text).collect::<Vec<_>>().join("; ")
        }
        Some(other) => other.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::doubt::Doubt;
    use crate::testing::{cell, manifest, record};

    fn runs() -> Vec<Run> {
        let mut params = cell("inline", 4096, 1);
        params.device = "file:/a,\"b\"".to_owned();
        let mut bad = record(cell("adaptive", 4096, 1), 1, 1e9);
        bad.doubts.push(Doubt::Errors { errors: 2 });
        let records = vec![record(params, 1, 1.5e9), bad];
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    #[test]
    fn csv_has_a_field_per_column_and_quotes_what_it_must() {
        let runs = runs();
        let text = csv(&Report::new(&runs));
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("run,\"file:/a,\"\"b\"\"\",aes-xts-plain64,512,"));
        assert!(lines[1].contains(",1500000000.0,"));
        let columns = lines[0].split(',').count();
        assert_eq!(lines[2].split(',').count(), columns);
        assert!(
            lines[2].contains(",,,,,,"),
            "no number where it is invalid: {}",
            lines[2]
        );
    }

    #[test]
    fn json_is_strict_and_has_null_where_there_is_no_number() {
        let runs = runs();
        let document: Value = serde_json::from_str(&json(&Report::new(&runs))).unwrap();
        assert_eq!(document["cells"][0]["bw_bytes_per_s"], 1.5e9);
        assert_eq!(document["cells"][1]["bw_bytes_per_s"], Value::Null);
        assert_eq!(document["cells"][1]["state"], "invalid");
        assert_eq!(document["candidate_policy"], "adaptive");
        assert_eq!(document["verdict"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn every_parameter_has_its_column() {
        let params = serde_json::to_value(cell("inline", 4096, 1)).unwrap();
        for name in params.as_object().unwrap().keys() {
            assert!(PARAMETERS.contains(&name.as_str()), "{name}");
        }
    }
}
