//! Results, and every form of report on them.
//!
//! An input is lines of JSON, a record each, without their marks: those only say that nobody changed a line.

#![forbid(unsafe_code)]

use crypt_bench::manifest::{Environment, Manifest, State, Tool};
use crypt_bench::report::{Report, Run, html, load, machine, markdown, terminal};
use crypt_bench::result::{ResultRecord, SCHEMA_VERSION};

use super::{check_message, fio_json, json_pieces};

/// Most records of a report.
const MOST_RECORDS: usize = 8;

/// Reads records and reports on them.
///
/// # Panics
/// Where a report does.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    if let Err(trouble) = load::records(text) {
        check_message(&trouble.why, text.len());
    }
    let parsed: Result<Vec<ResultRecord>, _> = text
        .lines()
        .take(MOST_RECORDS)
        .map(serde_json::from_str)
        .collect();
    let Ok(records) = parsed else {
        return false;
    };
    if records.is_empty() || records.iter().any(|record| record.check().is_err()) {
        return false;
    }
    let run = Run {
        name: "fuzz".to_owned(),
        manifest: manifest(&records),
        records,
    };
    let runs = [run];
    let report = Report::new(&runs);
    let style = terminal::Style::choose(Some(80), |_| None);
    let texts = [
        html::page(&report),
        markdown::document(&report),
        terminal::summary(&report, style),
        machine::csv(&report),
        machine::json(&report),
    ];
    assert!(texts.iter().all(|text| !text.is_empty()));
    let json: Result<serde_json::Value, _> = serde_json::from_str(&texts[4]);
    assert!(json.is_ok(), "{json:?}");
    true
}

/// What other programs' figures become.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let documents = fio_json::corpus().into_iter();
    let texts = documents.filter_map(|document| {
        let records = fio_json::records(std::str::from_utf8(&document).ok()?)?;
        let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
        Some(lines.ok()?.join("\n").into_bytes())
    });
    texts.collect()
}

/// Members of records.
#[must_use]
pub fn pieces() -> Vec<String> {
    json_pieces(&[
        "depth",
        "jobs",
        "devices",
        "policy",
        "device",
        "cipher",
        "block_size_bytes",
        "repeat",
        "sequence",
        "ios",
        "bytes",
        "iops",
        "bw_bytes_per_s",
        "min",
        "max",
        "mean",
        "p50",
        "p99",
        "slice_ios",
        "slice_ns",
        "doubts",
        "runtime_ns",
        "errors",
        "rwmixread_percent",
        "hdr_v2_deflate_base64",
    ])
}

fn manifest(records: &[ResultRecord]) -> Manifest {
    Manifest {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            version: "0".to_owned(),
            git_revision: None,
            binary_sha256: String::new(),
            profile: "debug".to_owned(),
        },
        environment: Environment::default(),
        command_line: Vec::new(),
        definition_toml: String::new(),
        preset: None,
        created_files: Vec::new(),
        started: String::new(),
        finished: None,
        state: State::Complete,
        plan: records.iter().map(|record| record.cell.clone()).collect(),
        repeats: 1,
        plan_hash: String::new(),
    }
}
