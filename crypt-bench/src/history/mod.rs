//! A history of runs: one line per run in a file that only grows, and where its figures changed their level.
//!
//! An entry keeps of each cell what a trend is drawn from, and says on which machine it was measured; figures of different
//! machines are different series. Pure, but for nothing: text in, entries out.

#![forbid(unsafe_code)]

pub mod page;
pub mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use schemars::JsonSchema;

use crate::diff::dimension::fingerprint;
use crate::mark::Marked;
use crate::report::Run;
use crate::report::axis::Axis;
use crate::report::cells::{CellSummary, summarise};
use crate::report::metric::Metric;
use crate::report::names::CellNames;
use crate::result::CellParams;
use crate::statistics::{ChangePoint, change_points, median};

/// Version of the format that this build writes.
pub const VERSION: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the run's folder.
    pub run: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Version of the program.
    pub version: String,
    /// Its revision; null when unknown.
    pub git_revision: Option<String>,
    /// SHA-256 of its executable, in hex.
    pub binary_sha256: String,
    /// SHA-256 over plan, repeats, executable and host, as in the manifest.
    pub plan_hash: String,
    /// Host name.
    pub host: String,
    /// Hash of what makes machines comparable: host, CPU, kernel, governor, mitigations.
    pub fingerprint: String,
    /// Cells with a valid repeat.
    pub cells: Vec<CellEntry>,
    /// SHA-256 over the entry with this field empty, in hex.
    pub mark: String,
}

/// A cell of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CellEntry {
    /// What was asked for.
    pub cell: CellParams,
    /// The metrics of which repeats have enough samples.
    pub figures: Vec<FigureEntry>,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FigureEntry {
    /// Which, with its unit.
    pub metric: String,
    /// Median over the valid repeats.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// How many there are.
    pub repeats: usize,
}

impl Entry {
    /// Of a run.
    ///
    /// # Errors
    /// A run without a single valid figure.
    pub fn of(run: &Run) -> Result<Self, String> {
        let manifest = &run.manifest;
        let cells: Vec<CellEntry> = summarise(std::slice::from_ref(run))
            .iter()
            .filter_map(CellEntry::of)
            .collect();
        if cells.is_empty() {
            return Err("no cell has a valid repeat".to_owned());
        }
        Ok(Self {
            schema_version: VERSION,
            run: run.name.clone(),
            started: manifest.started.clone(),
            version: manifest.tool.version.clone(),
            git_revision: manifest.tool.git_revision.clone(),
            binary_sha256: manifest.tool.binary_sha256.clone(),
            plan_hash: manifest.plan_hash.clone(),
            host: manifest.environment.host.clone(),
            fingerprint: fingerprint(&manifest.environment),
            cells,
            mark: String::new(),
        })
    }

    /// The line that is stored, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(&self.marked())
            .unwrap_or_else(|error| unreachable!("plain data: {error}"))
    }

    /// Whether it is of the same run as another one.
    #[must_use]
    pub fn is_same_run(&self, other: &Self) -> bool {
        (&self.started, &self.plan_hash) == (&other.started, &other.plan_hash)
    }

    fn parse(line: &str) -> Result<Self, String> {
        let entry: Self = serde_json::from_str(line)
            .map_err(|error| format!("not an entry, at column {}: {error}", error.column()))?;
        entry.believed()
    }
}

impl Marked for Entry {
    const VERSION: u32 = VERSION;

    fn version(&self) -> u32 {
        self.schema_version
    }

    fn mark(&mut self) -> &mut String {
        &mut self.mark
    }
}

impl CellEntry {
    fn of(cell: &CellSummary<'_>) -> Option<Self> {
        let figures: Vec<FigureEntry> = Metric::ALL
            .into_iter()
            .filter_map(|metric| FigureEntry::of(cell, metric))
            .collect();
        (!figures.is_empty()).then(|| Self {
            cell: cell.params.clone(),
            figures,
        })
    }
}

impl FigureEntry {
    fn of(cell: &CellSummary<'_>, metric: Metric) -> Option<Self> {
        let values: Vec<f64> = cell.trusted_values(metric).into_values().collect();
        Some(Self {
            metric: metric.key().to_owned(),
            median: median(values.clone())?,
            least: values.iter().copied().reduce(f64::min)?,
            most: values.iter().copied().reduce(f64::max)?,
            repeats: values.len(),
        })
    }
}

/// The entries of a history. A last line without its end was cut by a crash and is left out.
///
/// # Errors
/// The first line that is no entry of this version, or was changed, with its number.
pub fn parse(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let lines = text.split_inclusive('\n').enumerate();
    let whole = lines.filter_map(|(index, line)| Some((index + 1, line.strip_suffix('\n')?)));
    whole
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| Entry::parse(line).map_err(|why| (number, why)))
        .collect()
}

/// Length of the part of a history that has whole lines.
#[must_use]
pub fn whole_len(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

/// One metric of a cell over time, on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the cell is called.
    pub name: String,
    /// Which metric.
    pub metric: Metric,
    /// Host and fingerprint.
    pub machine: String,
    /// The figures, in order of time.
    pub points: Vec<Point>,
    /// Where they changed their level.
    pub changes: Vec<ChangePoint>,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Start of the run, RFC 3339.
    pub started: String,
    /// Revision of the program, or its version.
    pub program: String,
    /// The figure.
    pub figure: FigureEntry,
}

/// The series of some metrics, with their changes.
#[must_use]
pub fn series(entries: &[Entry], metrics: &[Metric]) -> Vec<Series> {
    let names = CellNames::of(
        entries
            .iter()
            .flat_map(|entry| &entry.cells)
            .map(|cell| &cell.cell),
    );
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.started.cmp(&b.started));
    let mut places: BTreeMap<(Vec<String>, Metric, &str), usize> = BTreeMap::new();
    let mut all: Vec<Series> = Vec::new();
    for entry in sorted {
        for cell in &entry.cells {
            for figure in &cell.figures {
                let Some(metric) =
                    Metric::from_key(&figure.metric).filter(|one| metrics.contains(one))
                else {
                    continue;
                };
                let key = Axis::ALL.map(|axis| axis.text(&cell.cell)).to_vec();
                let place = *places
                    .entry((key, metric, &entry.fingerprint))
                    .or_insert_with(|| {
                        all.push(Series {
                            name: names.name(&cell.cell),
                            metric,
                            machine: format!("{} {}", entry.host, entry.fingerprint),
                            points: Vec::new(),
                            changes: Vec::new(),
                        });
                        all.len() - 1
                    });
                let program = entry
                    .git_revision
                    .clone()
                    .unwrap_or_else(|| entry.version.clone());
                all[place].points.push(Point {
                    started: entry.started.clone(),
                    program,
                    figure: figure.clone(),
                });
            }
        }
    }
    with_changes(all)
}

fn with_changes(mut all: Vec<Series>) -> Vec<Series> {
    let medians = |one: &Series| one.points.iter().map(|point| point.figure.median).collect();
    let figures: Vec<Vec<f64>> = all.iter().map(medians).collect();
    for (one, changes) in all.iter_mut().zip(change_points(&figures)) {
        one.changes = changes;
    }
    all
}

impl Series {
    /// Whether a change made things better.
    #[must_use]
    pub fn is_better(&self, change: &ChangePoint) -> bool {
        self.metric.is_better(change.ratio, 1.0)
    }

    /// A change in words: when, with which program, by how much.
    #[must_use]
    pub fn change_text(&self, change: &ChangePoint) -> String {
        let word = if self.is_better(change) {
            "better"
        } else {
            "worse"
        };
        let size = crate::report::format::percent_change(change.ratio);
        match self.points.get(change.at) {
            Some(point) => format!(
                "{word} by {size} from {} on ({})",
                point.started, point.program
            ),
            None => format!("{word} by {size}"),
        }
    }
}

#[cfg(test)]
mod tests;
