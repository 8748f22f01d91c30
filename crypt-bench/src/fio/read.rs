//! fio's own JSON, read: documents as fio 3 writes them, and what this program writes in their shape.
//!
//! Text before the document is passed over, because fio prints its warnings there. Of several documents (fio's
//! `--status-interval`) the last one counts, which holds the whole run. Unknown keys are left alone; what is needed and
//! missing or of another type is an error with its place. Pure.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::doubt::Doubt;
use crate::result::CellParams;

/// Why a text is not fio's JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong there, and what to do.
    pub why: String,
}

/// One document.
#[derive(Clone, Debug, Deserialize)]
pub struct Document {
    /// The program that wrote it: `fio-3.33`.
    #[serde(rename = "fio version")]
    pub version: String,
    /// Options that hold for all jobs.
    #[serde(rename = "global options", default)]
    pub global_options: Options,
    /// Jobs, or groups of them.
    pub jobs: Vec<Entry>,
    /// Of our own.
    #[serde(default)]
    crypt_bench: Option<Own>,
}

/// Options and their values as text.
pub type Options = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, Deserialize)]
struct Own {
    #[serde(default)]
    running: bool,
}

/// A job, or a group.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    /// Name of the job, or of the first one of a group.
    pub jobname: String,
    /// Jobs of one group run at the same time.
    #[serde(default)]
    pub groupid: u64,
    /// Error number of the job; 0 for none.
    #[serde(default)]
    pub error: i64,
    /// Failed requests that the job went on after.
    #[serde(default)]
    pub total_err: u64,
    /// Options of the job's own section.
    #[serde(rename = "job options", default)]
    pub options: Options,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    #[serde(default)]
    pub trim: Option<Trims>,
    /// Time of all threads together, in milliseconds.
    #[serde(default)]
    pub job_runtime: u64,
    /// When it started, in milliseconds since the Unix epoch; fio 3.37 and later.
    #[serde(default)]
    pub job_start: Option<u64>,
    /// Time in user mode, in percent of `job_runtime`.
    #[serde(default)]
    pub usr_cpu: f64,
    /// Time in the kernel, in the same unit.
    #[serde(default)]
    pub sys_cpu: f64,
    /// Share of the requests that were submitted at a depth of 1, 2 to 3, 4 to 7, ..., in percent.
    #[serde(default)]
    pub iodepth_level: Option<BTreeMap<String, f64>>,
    /// Of our own.
    #[serde(default)]
    pub crypt_bench: Option<OwnEntry>,
}

/// What this program adds to a job.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct OwnEntry {
    /// The measured cell.
    #[serde(default)]
    pub cell: Option<CellParams>,
    /// What cast doubt on it: in words where repeats were taken together, else as in results.
    #[serde(default)]
    pub doubts: Vec<OwnDoubt>,
}

/// A doubt that this program wrote.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OwnDoubt {
    /// A sentence.
    Words(String),
    /// As in results.
    Typed(Doubt),
    /// Of another version: its sentence.
    Other {
        /// The sentence.
        text: String,
    },
}

/// Trims of a job, which results have no place for.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Trims {
    /// Completed.
    #[serde(default)]
    pub total_ios: u64,
}

/// One direction of a job.
#[derive(Clone, Debug, Deserialize)]
pub struct Direction {
    /// Transferred bytes.
    pub io_bytes: u64,
    /// Bytes per second.
    pub bw_bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Time from the first to the last request, in milliseconds.
    pub runtime: u64,
    /// Completed requests.
    pub total_ios: u64,
    /// From submission to issue.
    pub slat_ns: Latency,
    /// From issue to completion.
    pub clat_ns: Latency,
    /// Both together.
    pub lat_ns: Latency,
}

/// A latency, in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
pub struct Latency {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, of the sample with fio.
    pub stddev: f64,
    /// Samples.
    #[serde(rename = "N")]
    pub samples: u64,
    /// Values by percentile; absent where fio was not asked for them.
    #[serde(default)]
    pub percentile: Option<BTreeMap<String, u64>>,
    /// Counts by the middle of a bucket; json+ only.
    #[serde(default)]
    pub bins: Option<BTreeMap<String, u64>>,
}

/// The last finished document of a text.
///
/// # Errors
/// Where there is none, or one is broken or lacks what is needed.
pub fn document(text: &str) -> Result<Document, Trouble> {
    let (before, start) = start(text).ok_or_else(|| Trouble {
        line: 1,
        column: 1,
        why: "there is no JSON document in it; write it with fio --output-format=json+".to_owned(),
    })?;
    let mut last = None;
    for document in serde_json::Deserializer::from_str(&text[start..]).into_iter::<Document>() {
        let document = document.map_err(|error| Trouble {
            line: before + error.line(),
            column: error.column(),
            why: reason(&error),
        })?;
        let running = document.crypt_bench.as_ref().is_some_and(|own| own.running);
        if !running {
            last = Some(document);
        }
    }
    last.ok_or_else(|| Trouble {
        line: before + 1,
        column: 1,
        why: "it holds figures of a run that goes on, and none of its end".to_owned(),
    })
}

/// Lines before the document, and where it starts.
fn start(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('{') {
            return Some((index, at));
        }
        at += line.len();
    }
    None
}

/// What serde says, without its own place.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(what, _)| what);
    let advice = if what.starts_with("missing field") {
        "; the JSON of fio 3 is needed, with reads and writes reported apart (unified_rw_reporting=0)"
    } else {
        ""
    };
    format!("not fio's JSON: {what}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"fio version": "fio-3.33", "jobs": []}"#;

    #[test]
    fn text_before_it_is_passed_over_and_the_last_document_counts() {
        let later = DOCUMENT.replace("3.33", "3.34");
        let running = DOCUMENT.replace("\"jobs\"", "\"crypt_bench\":{\"running\":true},\"jobs\"");
        let text =
            format!("fio: this is a warning\nfio: another {{\n{DOCUMENT}\n{later}\n{running}\n");
        assert_eq!(document(&text).unwrap().version, "fio-3.34");
        let none = document(&running).unwrap_err();
        assert!(none.why.contains("goes on"), "{none:?}");
    }

    #[test]
    fn what_is_broken_has_a_place() {
        for (text, line, column, why) in [
            ("", 1, 1, "no JSON document"),
            ("fio: nothing came\n", 1, 1, "no JSON document"),
            ("warning\n{\"fio version\": 3}\n", 2, 17, "invalid type"),
            (
                "w\n\n{\n \"fio version\": \"fio-3.33\"\n}\n",
                5,
                1,
                "missing field `jobs`",
            ),
            ("{\"fio version\": \"fio", 1, 20, "EOF"),
        ] {
            let trouble = document(text).unwrap_err();
            assert_eq!(
                (trouble.line, trouble.column),
                (line, column),
                "{text} {trouble:?}"
            );
            assert!(trouble.why.contains(why), "{trouble:?}");
        }
    }

    #[test]
    fn text_behind_it_is_not() {
        let trouble = document(&format!("{DOCUMENT}\n/ rest\n")).unwrap_err();
        assert_eq!(trouble.line, 2);
    }
}
