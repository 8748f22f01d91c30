//! A comparison for programs: one JSON document, or one CSV line per metric of a cell.

#![forbid(unsafe_code)]

use serde_json::{Value, json};

use super::record::{ChangeRecord, MeanRecord};
use super::{Change, Diff, Pair, text};
use crate::report::machine::field;

/// Version of the JSON document.
const VERSION: u32 = 1;

/// Columns of the table.
const COLUMNS: [&str; 12] = [
    "cell",
    "policy",
    "metric",
    "baseline_median",
    "candidate_median",
    "ratio",
    "ratio_low",
    "ratio_high",
    "p_value",
    "p_adjusted",
    "repeats",
    "change",
];

/// One JSON document.
#[must_use]
pub fn json(diff: &Diff<'_>) -> String {
    let [first, second] = diff.runs;
    let cells: Vec<Value> = diff.pairs.iter().map(|pair| cell(diff, pair)).collect();
    let means: Vec<MeanRecord> = diff.means.iter().map(MeanRecord::of).collect();
    let document = json!({
        "schema_version": VERSION,
        "baseline": first.name,
        "candidate": second.name,
        "interleaved": diff.is_interleaved(),
        "warnings": diff.warnings(),
        "cells": cells,
        "means": means,
    });
    format!("{document:#}\n")
}

/// A table with a heading, RFC 4180.
#[must_use]
pub fn csv(diff: &Diff<'_>) -> String {
    let names = diff.names();
    let mut csv = COLUMNS.join(",") + "\r\n";
    for pair in &diff.pairs {
        for change in &pair.changes {
            let mut object = changed(change);
            object["cell"] = json!(names.name(pair.params()));
            object["policy"] = json!(pair.params().policy);
            let fields = COLUMNS.map(|column| field(object.get(column)));
            csv += &(fields.join(",") + "\r\n");
        }
    }
    csv
}

fn cell(diff: &Diff<'_>, pair: &Pair<'_>) -> Value {
    let troubles = pair.troubles();
    json!({
        "cell": pair.params(),
        "interleaved": pair.is_interleaved(),
        "troubles": troubles.iter().map(|trouble| trouble.text(diff.labels)).collect::<Vec<_>>(),
        "changes": pair.changes.iter().map(changed).collect::<Vec<_>>(),
    })
}

fn changed(change: &Change) -> Value {
    let mut value = json!(ChangeRecord::of(change));
    value["change"] = json!(match text::mark(change) {
        "~" => "none_shown",
        mark => mark,
    });
    value
}
