//! fio's JSON: read into results, which are written as fio's JSON again.

#![forbid(unsafe_code)]

use crypt_bench::fio::asked::Said;
use crypt_bench::fio::{cell, import, read};
use crypt_bench::result::{DirectionStats, ResultRecord};

use super::{check_message, json_pieces};

/// Reads a document.
///
/// # Panics
/// Where figures make no sense.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let Some(records) = records(text) else {
        return false;
    };
    assert!(!records.is_empty());
    for record in &records {
        check_record(record);
    }
    true
}

/// The records of a document, if it is one.
pub(super) fn records(text: &str) -> Option<Vec<ResultRecord>> {
    let document = match read::document(text) {
        Ok(document) => document,
        Err(trouble) => {
            check_message(&trouble.why, text.len());
            let lines = text.split('\n').count();
            assert!(
                (1..=lines).contains(&trouble.line),
                "line {} of {lines}",
                trouble.line
            );
            return None;
        }
    };
    let said = Said {
        policy: Some("inline".to_owned()),
        device: Some("null".to_owned()),
        ..Said::default()
    };
    let records = import::records(&document, &said);
    records.map_err(|why| check_message(&why, text.len())).ok()
}

fn check_record(record: &ResultRecord) {
    let text = serde_json::to_string(record).expect("a record is plain data");
    let again: ResultRecord = serde_json::from_str(&text).expect("a record reads back");
    assert_eq!(again, *record, "another one after it was written");
    for stats in [&record.read, &record.write].into_iter().flatten() {
        check_direction(stats);
    }
    if let Err(why) = cell::job(&record.cell, &[record], true) {
        check_message(&why, text.len());
    }
    for doubt in &record.doubts {
        assert!(!doubt.to_string().is_empty());
    }
}

fn check_direction(stats: &DirectionStats) {
    assert!(stats.ios > 0, "a direction without requests");
    assert!(stats.iops.is_finite() && stats.bw_bytes_per_s.is_finite());
    for latency in [&stats.slat, &stats.clat, &stats.lat] {
        assert!(latency.min_ns <= latency.max_ns, "{latency:?}");
        let tail = [
            latency.p50_ns,
            latency.p90_ns,
            latency.p99_ns,
            latency.p99_9_ns,
            latency.p99_99_ns,
        ];
        let known: Vec<u64> = tail.into_iter().flatten().collect();
        assert!(known.is_sorted(), "{latency:?}");
        assert!(
            known
                .iter()
                .all(|ns| (latency.min_ns..=latency.max_ns).contains(ns)),
            "{latency:?}"
        );
    }
}

/// Documents in the shape of fio's.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let plain = document(
        "",
        &[job(
            "a",
            "\"rw\":\"randread\",\"bs\":\"4k\",\"iodepth\":\"4\"",
            "",
        )],
    );
    let percentiles = "\"percentile\":{\"50.000000\":1000,\"99.000000\":2000}";
    let bins = format!("{percentiles},\"bins\":{{\"900\":5,\"1000\":3,\"2000\":2}}");
    let several = [
        job("a", "\"rw\":\"write\"", percentiles),
        job("a", "\"rw\":\"write\"", percentiles),
        job(
            "b",
            "\"bssplit\":\"4k/50:8k/50\",\"rate_iops\":\"500\"",
            &bins,
        ),
    ];
    vec![
        plain.clone().into_bytes(),
        format!("fio: a warning\n{plain}\n{plain}").into_bytes(),
        document("\"ioengine\":\"null\",\"size\":\"1m\"", &several).into_bytes(),
    ]
}

fn document(options: &str, jobs: &[String]) -> String {
    let jobs = jobs.join(",\n");
    format!(
        "{{\"fio version\":\"fio-3.33\",\"global options\":{{{options}}},\n\"jobs\":[{jobs}]}}\n"
    )
}

fn job(name: &str, options: &str, latency: &str) -> String {
    let separator = if latency.is_empty() { "" } else { "," };
    let latency = format!(
        "{{\"min\":900,\"max\":2000,\"mean\":1200.5,\"stddev\":80.25,\"N\":10{separator}{latency}}}"
    );
    let direction = format!(
        "{{\"io_bytes\":40960,\"bw_bytes\":4096000,\"iops\":1000.0,\"runtime\":10,\"total_ios\":10,\
         \"slat_ns\":{latency},\"clat_ns\":{latency},\"lat_ns\":{latency}}}"
    );
    format!(
        "{{\"jobname\":\"{name}\",\"groupid\":0,\"error\":0,\"job options\":{{{options}}},\n\"read\":{direction},\n\
         \"write\":{direction},\n\"job_runtime\":10,\"usr_cpu\":1.5,\"sys_cpu\":2.5,\"iodepth_level\":{{\"1\":50.0,\
         \"4\":50.0,\">=64\":0.0}}}}"
    )
}

/// Members of documents.
#[must_use]
pub fn pieces() -> Vec<String> {
    json_pieces(&[
        "fio version",
        "global options",
        "jobs",
        "jobname",
        "groupid",
        "error",
        "total_err",
        "job options",
        "read",
        "write",
        "trim",
        "job_runtime",
        "job_start",
        "usr_cpu",
        "iodepth_level",
        "crypt_bench",
        "io_bytes",
        "bw_bytes",
        "iops",
        "runtime",
        "total_ios",
        "lat_ns",
        "min",
        "max",
        "mean",
        "stddev",
        "N",
        "percentile",
        "bins",
        "99.000000",
        "bs",
        "rw",
        "iodepth",
        "numjobs",
        "size",
        "bssplit",
        "filename",
        "crypt_cipher",
        "cell",
        "doubts",
    ])
}
