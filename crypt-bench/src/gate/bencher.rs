//! The candidate's figures for programs that keep a history: Bencher's metric format, and the list that
//! github-action-benchmark takes as `customSmallerIsBetter`.
//!
//! Only figures that may be compared: cells without trouble.

#![forbid(unsafe_code)]

use serde_json::{Map, Value, json};

use super::artefact::{Artefact, CellVerdict, Judged};
use crate::diff::record::ChangeRecord;
use crate::report::format::Unit;

/// Bencher Metric Format: by benchmark and measure, the median, and where it may lie by the change's interval.
#[must_use]
pub fn metric_format(artefact: &Artefact) -> String {
    let mut benchmarks = Map::new();
    for (cell, judged) in figures(artefact) {
        let change = &judged.change;
        let mut value = json!({ "value": change.candidate_median });
        let bound = |bound: Option<f64>| Some(change.baseline_median? * bound?);
        if let (Some(low), Some(high)) = (bound(change.ratio_low), bound(change.ratio_high)) {
            value["lower_value"] = json!(low);
            value["upper_value"] = json!(high);
        }
        let measures = benchmarks.entry(&cell.name).or_insert_with(|| json!({}));
        measures[&change.metric] = value;
    }
    format!("{:#}\n", Value::Object(benchmarks))
}

/// A list of figures of which smaller ones are better: a rate as the time that a gigabyte or a million requests take.
#[must_use]
pub fn smaller_is_better(artefact: &Artefact) -> String {
    let entries = figures(artefact).filter_map(|(cell, judged)| {
        let change = &judged.change;
        let metric = change.metric()?;
        let (unit, scale) = match metric.unit() {
            Unit::BytesPerSecond => ("s/GB", 1e9),
            Unit::PerSecond => ("s/million requests", 1e6),
            Unit::Nanoseconds => ("ns", 1.0),
            Unit::Ratio => ("ratio", 1.0),
        };
        let of = |figure: f64| {
            if metric.higher_is_better() {
                scale / figure
            } else {
                figure
            }
        };
        let value = of(change.candidate_median?);
        let mut entry = json!({
            "name": format!("{}: {}", cell.name, metric.title()),
            "unit": unit,
            "value": value.is_finite().then_some(value)?,
        });
        if let Some(reach) = reach(change) {
            entry["range"] = json!(format!("± {:.1} %", reach));
        }
        Some(entry)
    });
    format!("{:#}\n", Value::Array(entries.collect()))
}

/// Half the width of the interval, in percent.
fn reach(change: &ChangeRecord) -> Option<f64> {
    let reach = 100.0 * ((change.ratio_high? / change.ratio_low?).sqrt() - 1.0);
    reach.is_finite().then_some(reach)
}

/// Figures of cells that nothing stands against.
fn figures(artefact: &Artefact) -> impl Iterator<Item = (&CellVerdict, &Judged)> {
    let cells = artefact
        .cells
        .iter()
        .filter(|cell| cell.verdict.is_judgement());
    let all = cells.flat_map(|cell| cell.changes.iter().map(move |judged| (cell, judged)));
    all.filter(|(_, judged)| judged.change.candidate_median.is_some())
}
