//! Reads the text of a results folder, strictly: what can't be trusted is an error with its line.
//!
//! Resuming a run is lenient, a report is not: a line in the middle that is broken, of another
//! version or changed by hand would silently change a picture. Only the very end may be torn, as a
//! crash leaves it. Pure: text in, values out; the caller knows the names of the files.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::journal::is_sealed;
use crate::manifest::Manifest;
use crate::result::{ResultRecord, SCHEMA_VERSION};

/// Why a text is not a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub why: String,
}

#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

/// The records of a `results.jsonl`. A last line without its line end was cut by a crash and is
/// left out.
///
/// # Errors
/// The first line that is not a record of this version, was changed, or repeats another.
pub fn records(text: &str) -> Result<Vec<ResultRecord>, Trouble> {
    let mut records = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let trouble = |why: String| Trouble {
            line: index + 1,
            why,
        };
        let Some(line) = line.strip_suffix('\n') else {
            if is_sealed(line) {
                records.push(record(line).map_err(trouble)?);
            }
            break;
        };
        if line.trim().is_empty() {
            continue;
        }
        let record = record(line).map_err(trouble)?;
        if !seen.insert((record.cell.clone(), record.repeat)) {
            let why = "the same repeat of the same cell stands further up already";
            return Err(trouble(why.to_owned()));
        }
        records.push(record);
    }
    Ok(records)
}

/// The content of a `manifest.json`.
///
/// # Errors
/// A text that is not a manifest of this version.
pub fn manifest(text: &str) -> Result<Manifest, Trouble> {
    let trouble = |error: &serde_json::Error| Trouble {
        line: error.line().max(1),
        why: format!("not a manifest: {error}"),
    };
    let version: Version = serde_json::from_str(text).map_err(|error| trouble(&error))?;
    check(&version).map_err(|why| Trouble { line: 1, why })?;
    serde_json::from_str(text).map_err(|error| trouble(&error))
}

fn record(line: &str) -> Result<ResultRecord, String> {
    let broken =
        |error: serde_json::Error| format!("not a result, at column {}: {error}", error.column());
    check(&serde_json::from_str(line).map_err(broken)?)?;
    let record: ResultRecord = serde_json::from_str(line).map_err(broken)?;
    record.check()?;
    if is_sealed(line) {
        Ok(record)
    } else {
        Err("changed after it was measured: its mark does not fit".to_owned())
    }
}

fn check(found: &Version) -> Result<(), String> {
    if found.schema_version == SCHEMA_VERSION {
        return Ok(());
    }
    Err(format!(
        "version {} of the format, and this program reads version {SCHEMA_VERSION}: use the \
         crypt-bench that wrote it",
        found.schema_version
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::seal;
    use crate::testing::{self, cell};

    fn line(depth: u32) -> String {
        seal(&testing::record(cell("inline", 4096, depth), 1, 1e9)).1
    }

    fn trouble(text: &str) -> Trouble {
        records(text).unwrap_err()
    }

    #[test]
    fn whole_lines_are_records_and_a_torn_end_is_left_out() {
        let text = format!("{}\n{}\n", line(1), line(2));
        assert_eq!(records(&text).unwrap().len(), 2);
        for cut in [1, 20, line(2).len()] {
            let torn = &text[..text.len() - cut - 1];
            assert_eq!(records(torn).unwrap().len(), 1, "{cut}");
        }
        assert_eq!(records(text.trim_end()).unwrap().len(), 2);
        assert_eq!(records("").unwrap().len(), 0);
    }

    #[test]
    fn broken_lines_are_named() {
        let found = trouble(&format!("{}\n{{\"schema_version\":1,\n", line(1)));
        assert_eq!(found.line, 2);
        assert!(
            found.why.starts_with("not a result, at column "),
            "{}",
            found.why
        );
        assert_eq!(trouble("hello\n").line, 1);
    }

    #[test]
    fn another_version_is_named_even_where_its_fields_differ() {
        let found = trouble("{\"schema_version\":2,\"news\":true}\n");
        assert!(
            found
                .why
                .starts_with("version 2 of the format, and this program reads version 1")
        );
    }

    #[test]
    fn a_changed_figure_and_a_second_copy_are_refused() {
        let changed = line(1).replace("\"ios\":", "\"ios\":1");
        assert!(trouble(&(changed + "\n")).why.contains("mark does not fit"));
        let copies = format!("{}\n{}\n", line(1), line(1));
        assert_eq!(trouble(&copies).line, 2);
    }

    #[test]
    fn manifests_are_checked_alike() {
        let written = testing::manifest(&[]);
        let text = serde_json::to_string_pretty(&written).unwrap();
        assert_eq!(manifest(&text).unwrap(), written);
        let other = text.replace("\"schema_version\": 1", "\"schema_version\": 9");
        assert!(manifest(&other).unwrap_err().why.starts_with("version 9"));
        let cut = &text[..text.len() / 2];
        assert!(manifest(cut).unwrap_err().line > 5);
    }
}
