//! Records gathered into cells: all repeats of one cell under one policy, with their figures.
//!
//! A cell that was planned and has no record is missing; one whose repeats are all invalid is
//! invalid and says why. Invalid repeats never enter a figure.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use super::grid::Cell;
use super::metric::{Figures, Metric};
use crate::doubt::Doubt;
use crate::manifest::Manifest;
use crate::result::{CellParams, ResultRecord};

/// The content of one results folder.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the folder.
    pub name: String,
    /// What it is the result of.
    pub manifest: Manifest,
    /// The finished measurements.
    pub records: Vec<ResultRecord>,
}

/// All repeats of one cell under one policy.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    /// Index of the run.
    pub run: usize,
    /// What was asked for.
    pub params: &'a CellParams,
    /// Every record, in the order of repeats.
    pub records: Vec<&'a ResultRecord>,
    /// Figures of each valid repeat, by its number.
    pub repeats: BTreeMap<u32, Figures>,
    /// Figures over all valid repeats, or why there are none; `Ok(None)` where nothing was measured.
    pub figures: Result<Option<Figures>, String>,
}

impl<'a> CellSummary<'a> {
    fn new(run: usize, params: &'a CellParams, records: Vec<&'a ResultRecord>) -> Self {
        let valid: Vec<&ResultRecord> = records.iter().copied().filter(|r| r.is_valid()).collect();
        let mut repeats = BTreeMap::new();
        let figures = if records.is_empty() {
            Ok(None)
        } else if valid.is_empty() {
            Err(first_reason(&records))
        } else {
            valid
                .iter()
                .try_for_each(|record| {
                    repeats.insert(record.repeat, Figures::of(&[record])?);
                    Ok(())
                })
                .and_then(|()| Figures::of(&valid))
                .map(Some)
        };
        Self {
            run,
            params,
            records,
            repeats,
            figures,
        }
    }

    /// The cell's value of a metric.
    #[must_use]
    pub fn cell(&self, metric: Metric) -> Cell {
        match &self.figures {
            Ok(Some(figures)) => metric.of(figures).map_or(Cell::Missing, Cell::new),
            Ok(None) => Cell::Missing,
            Err(why) => Cell::invalid(why.clone()),
        }
    }

    /// The metric's value of each valid repeat.
    pub fn repeat_values(&self, metric: Metric) -> impl Iterator<Item = f64> {
        self.repeats
            .values()
            .filter_map(move |figures| metric.of(figures))
    }

    /// The metric's value of each valid repeat with enough samples for it, by the number of the repeat.
    #[must_use]
    pub fn trusted_values(&self, metric: Metric) -> BTreeMap<u32, f64> {
        let enough = |figures: &&Figures| figures.samples() >= metric.least_samples();
        let repeats = self.repeats.iter();
        repeats
            .filter(|(_, figures)| enough(figures))
            .filter_map(|(repeat, figures)| Some((*repeat, metric.of(figures)?)))
            .collect()
    }

    /// Half the range of the repeats over their middle; `None` with fewer than two.
    #[must_use]
    pub fn relative_spread(&self, metric: Metric) -> Option<f64> {
        let (least, most) = range(self.repeat_values(metric))?;
        let spread = (most - least) / (most + least);
        (self.repeats.len() >= 2 && spread.is_finite()).then_some(spread)
    }

    /// Everything that casts doubt on the cell, each kind once with its first figures, and how many
    /// repeats it concerns where that is not all.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut kinds: Vec<(&Doubt, usize)> = Vec::new();
        for doubt in self.records.iter().flat_map(|record| &record.doubts) {
            let same = |other: &Doubt| discriminant(other) == discriminant(doubt);
            match kinds.iter_mut().find(|(first, _)| same(first)) {
                Some((_, count)) => *count += 1,
                None => kinds.push((doubt, 1)),
            }
        }
        let all = self.records.len();
        let words = |(doubt, count): (&Doubt, usize)| {
            let weight = if doubt.invalidates() { "invalid: " } else { "" };
            if count < all {
                format!("{weight}{doubt} ({count} of {all} repeats)")
            } else {
                format!("{weight}{doubt}")
            }
        };
        kinds.into_iter().map(words).collect()
    }
}

/// Smallest and largest of some numbers; `None` without any.
#[must_use]
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |range, value| {
        let (least, most) = range.unwrap_or((value, value));
        Some((value.min(least), value.max(most)))
    })
}

/// Every planned or measured cell of every run, in the order of the plans.
#[must_use]
pub fn summarise(runs: &[Run]) -> Vec<CellSummary<'_>> {
    let mut cells = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let mut by_cell: BTreeMap<&CellParams, Vec<&ResultRecord>> = BTreeMap::new();
        for record in &run.records {
            by_cell.entry(&record.cell).or_default().push(record);
        }
        let mut seen = BTreeSet::new();
        let planned = run.manifest.plan.iter();
        for params in planned.chain(run.records.iter().map(|record| &record.cell)) {
            if seen.insert(params) {
                let mut records = by_cell.remove(params).unwrap_or_default();
                records.sort_by_key(|record| record.repeat);
                cells.push(CellSummary::new(index, params, records));
            }
        }
    }
    cells
}

fn first_reason(records: &[&ResultRecord]) -> String {
    records
        .iter()
        .flat_map(|record| &record.doubts)
        .find(|doubt| doubt.invalidates())
        .map_or_else(|| "invalid".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, manifest, record};

    fn run(records: Vec<ResultRecord>) -> Run {
        Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }
    }

    #[test]
    fn repeats_of_a_cell_come_together_and_spread_is_theirs() {
        let params = cell("inline", 4096, 1);
        let runs = [run(vec![
            record(params.clone(), 2, 1.1e9),
            record(cell("workqueue", 4096, 1), 1, 1e9),
            record(params.clone(), 1, 0.9e9),
        ])];
        let cells = summarise(&runs);
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[0].repeats.len(), 2);
        let spread = cells[0].relative_spread(Metric::Throughput).unwrap();
        assert!((spread - 0.1).abs() < 1e-9, "{spread}");
        assert_eq!(cells[1].relative_spread(Metric::Throughput), None);
    }

    #[test]
    fn planned_cells_without_records_are_missing() {
        let mut run = run(vec![record(cell("inline", 4096, 1), 1, 1e9)]);
        run.manifest.plan.push(cell("inline", 4096, 2));
        let runs = [run];
        let cells = summarise(&runs);
        assert_eq!(cells[1].cell(Metric::Iops), Cell::Missing);
    }

    #[test]
    fn invalid_repeats_enter_no_figure_and_alone_make_the_cell_invalid() {
        let params = cell("inline", 4096, 1);
        let mut bad = record(params.clone(), 1, 9e9);
        bad.doubts.push(Doubt::Errors { errors: 3 });
        let good = record(params, 2, 1e9);
        let runs = [run(vec![bad.clone(), good])];
        let cells = summarise(&runs);
        let value = cells[0].cell(Metric::Throughput).value().unwrap();
        assert!((value - 1e9).abs() < 1.0);
        assert_eq!(
            cells[0].doubts(),
            ["invalid: 3 requests failed (1 of 2 repeats)"]
        );
        let runs = [run(vec![bad])];
        let why = summarise(&runs)[0].cell(Metric::Throughput);
        assert_eq!(why, Cell::invalid("3 requests failed"));
    }
}
