//! What all renderings of a report share: the runs, their cells, and the facets they fall into.
//!
//! A facet is everything that one heat map over block size and depth holds fixed: run, device, rw
//! and whatever else a matrix varied. Its label names only what tells it from other facets.

#![forbid(unsafe_code)]

use super::axis::Axis;
use super::cells::{CellSummary, Run, summarise};
use super::compare::{Comparison, Lineup, against_best};
use super::grid::{Cell, Grid, GridAxis, Label};
use super::metric::Metric;
use crate::result::CellParams;

/// The content of a report, ready to be rendered.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The results folders.
    pub runs: &'a [Run],
    /// Every cell of every run, in the order of the plans.
    pub cells: Vec<CellSummary<'a>>,
    /// Which policy is judged against which; `None` without cells.
    pub lineup: Option<Lineup>,
    /// Groups of cells that make one heat map per policy.
    pub facets: Vec<Facet>,
}

/// Cells that differ in block size, depth and policy only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facet {
    /// Index of the run.
    pub run: usize,
    /// Device.
    pub device: String,
    /// Direction and order.
    pub rw: String,
    /// What else tells it from facets of the same device and rw; empty where nothing does.
    pub extra: String,
    /// Indices of its cells.
    members: Vec<usize>,
}

impl Facet {
    /// The facet in words: device, rw and the rest.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = format!("{} · {}", self.device, self.rw);
        if !self.extra.is_empty() {
            label += &format!(" · {}", self.extra);
        }
        label
    }
}

impl<'a> Report<'a> {
    /// Gathers what `runs` hold.
    #[must_use]
    pub fn new(runs: &'a [Run]) -> Self {
        let cells = summarise(runs);
        Self {
            runs,
            lineup: Lineup::of(&cells),
            facets: facets(runs, &cells),
            cells,
        }
    }

    /// The cells of a facet.
    pub fn members<'b>(&'b self, facet: &'b Facet) -> impl Iterator<Item = &'b CellSummary<'a>> {
        facet
            .members
            .iter()
            .filter_map(|index| self.cells.get(*index))
    }

    /// One metric of one policy over depth (rows) and block size (columns).
    #[must_use]
    pub fn grid(&self, facet: &Facet, policy: &str, metric: Metric) -> Grid {
        self.over_depth_and_block_size(facet, |cells| {
            cells
                .iter()
                .find(|cell| cell.params.policy == policy)
                .map_or(Cell::Missing, |cell| cell.cell(metric))
        })
    }

    /// Candidate / best other policy over depth (rows) and block size (columns).
    #[must_use]
    pub fn ratio_grid(&self, facet: &Facet, metric: Metric) -> Grid {
        self.over_depth_and_block_size(facet, |cells| self.ratio_cell(cells, metric))
    }

    /// Every workload at a glance: facets (rows) by block size and depth (columns); ratios where
    /// there is something to compare with, else the only policy's values.
    #[must_use]
    pub fn overview(&self, metric: Metric) -> Grid {
        let params = || self.cells.iter().map(|cell| cell.params);
        let rows = GridAxis {
            name: "device · rw".to_owned(),
            labels: self.facets.iter().map(|f| Label::new(f.label())).collect(),
        };
        let (sizes, depths) = (
            Axis::BlockSize.positions(params()),
            Axis::Depth.positions(params()),
        );
        let places: Vec<(&String, &String)> = sizes
            .iter()
            .flat_map(|size| depths.iter().map(move |depth| (size, depth)))
            .collect();
        let columns = GridAxis {
            name: "depth, by block size (bytes)".to_owned(),
            labels: places
                .iter()
                .map(|(size, depth)| Label::grouped(*size, *depth))
                .collect(),
        };
        Grid::from_fn(rows, columns, |row, column| {
            let (size, depth) = places[column];
            let cells = self.at(&self.facets[row], size, depth);
            if self.compares() {
                self.ratio_cell(&cells, metric)
            } else {
                self.candidate_cell(&cells, metric)
            }
        })
    }

    fn candidate_cell(&self, cells: &[&CellSummary<'a>], metric: Metric) -> Cell {
        let policy = self.lineup.as_ref().map(|lineup| &lineup.candidate);
        cells
            .iter()
            .find(|cell| Some(&cell.params.policy) == policy)
            .map_or(Cell::Missing, |cell| cell.cell(metric))
    }

    /// Whether there are at least two policies, references left out.
    #[must_use]
    pub fn compares(&self) -> bool {
        self.lineup.as_ref().is_some_and(|l| !l.others.is_empty())
    }

    /// The candidate against the best of `others` in every workload that allows it, with the facet
    /// that it belongs to.
    #[must_use]
    pub fn comparisons<'b>(
        &'b self,
        others: &[String],
        metric: Metric,
    ) -> Vec<(&'b Facet, Comparison<'a, 'b>)> {
        let Some(lineup) = &self.lineup else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for facet in &self.facets {
            for (size, depth) in self.places(facet) {
                let cells = self.at(facet, &size, &depth);
                let against = against_best(&cells, &lineup.candidate, others, metric);
                found.extend(against.ok().map(|comparison| (facet, comparison)));
            }
        }
        found
    }

    fn ratio_cell(&self, cells: &[&CellSummary<'a>], metric: Metric) -> Cell {
        let Some(lineup) = &self.lineup else {
            return Cell::Missing;
        };
        match against_best(cells, &lineup.candidate, &lineup.others, metric) {
            Ok(comparison) => comparison.cell(),
            Err(cell) => cell,
        }
    }

    fn over_depth_and_block_size(
        &self,
        facet: &Facet,
        mut cell: impl FnMut(&[&CellSummary<'a>]) -> Cell,
    ) -> Grid {
        let params = || self.members(facet).map(|cell| cell.params);
        let (depths, sizes) = (axis(Axis::Depth, params()), axis(Axis::BlockSize, params()));
        let at = |row: &Label, column: &Label| self.at(facet, &column.text, &row.text);
        let (rows, columns) = (depths.clone(), sizes.clone());
        Grid::from_fn(depths, sizes, |row, column| {
            cell(&at(&rows.labels[row], &columns.labels[column]))
        })
    }

    /// Block sizes and depths that occur in a facet.
    fn places(&self, facet: &Facet) -> Vec<(String, String)> {
        let params = || self.members(facet).map(|cell| cell.params);
        let depths = Axis::Depth.positions(params());
        let sizes = Axis::BlockSize.positions(params()).into_iter();
        sizes
            .flat_map(|size| {
                depths
                    .iter()
                    .map(move |depth| (size.clone(), depth.clone()))
            })
            .collect()
    }

    /// The cells of a facet with this block size and depth.
    fn at<'b>(&'b self, facet: &'b Facet, size: &str, depth: &str) -> Vec<&'b CellSummary<'a>> {
        self.members(facet)
            .filter(|cell| {
                Axis::BlockSize.text(cell.params) == size && Axis::Depth.text(cell.params) == depth
            })
            .collect()
    }
}

/// An axis with the positions that occur.
pub(super) fn axis<'a>(axis: Axis, cells: impl IntoIterator<Item = &'a CellParams>) -> GridAxis {
    GridAxis {
        name: axis.title().to_owned(),
        labels: axis.positions(cells).into_iter().map(Label::new).collect(),
    }
}

/// Axes that a facet holds fixed besides device and rw.
fn extra_axes() -> impl Iterator<Item = Axis> {
    Axis::ALL.into_iter().filter(|axis| {
        !matches!(
            axis,
            Axis::Device | Axis::Rw | Axis::BlockSize | Axis::Depth | Axis::Policy
        )
    })
}

fn facets(runs: &[Run], cells: &[CellSummary<'_>]) -> Vec<Facet> {
    let mut facets: Vec<Facet> = Vec::new();
    let mut heads: Vec<&CellParams> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let fixed = |other: &CellParams| {
            let same = |axis: Axis| axis.text(other) == axis.text(cell.params);
            same(Axis::Device) && same(Axis::Rw) && extra_axes().all(same)
        };
        let mut known = facets.iter_mut().zip(&heads);
        match known.find(|(facet, head)| facet.run == cell.run && fixed(head)) {
            Some((facet, _)) => facet.members.push(index),
            None => {
                heads.push(cell.params);
                facets.push(Facet {
                    run: cell.run,
                    device: cell.params.device.clone(),
                    rw: cell.params.rw.name().to_owned(),
                    extra: String::new(),
                    members: vec![index],
                });
            }
        }
    }
    let extras: Vec<String> = (0..facets.len())
        .map(|index| extra(runs, &facets, &heads, index))
        .collect();
    for (facet, extra) in facets.iter_mut().zip(extras) {
        facet.extra = extra;
    }
    facets
}

/// What tells one facet from the others of its device and rw.
fn extra(runs: &[Run], facets: &[Facet], heads: &[&CellParams], index: usize) -> String {
    let (facet, head) = (&facets[index], heads[index]);
    let rivals: Vec<usize> = (0..facets.len())
        .filter(|i| facets[*i].device == facet.device && facets[*i].rw == facet.rw)
        .collect();
    let mut words = Vec::new();
    if rivals.iter().any(|i| facets[*i].run != facet.run) {
        words.push(
            runs.get(facet.run)
                .map_or_else(String::new, |run| run.name.clone()),
        );
    }
    // Workers are as many as a simulated machine has CPUs, where its size varies.
    let follows = |axis: &Axis| *axis == Axis::Workers && head.cores.is_some();
    for axis in extra_axes().filter(|axis| !follows(axis)) {
        if rivals
            .iter()
            .any(|i| axis.text(heads[*i]) != axis.text(head))
        {
            words.push(format!("{} {}", axis.name(), axis.text(head)));
        }
    }
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::ResultRecord;
    use crate::testing::{cell, manifest, record};

    fn run(name: &str, records: Vec<ResultRecord>) -> Run {
        Run {
            name: name.to_owned(),
            manifest: manifest(&records),
            records,
        }
    }

    fn matrix() -> Vec<ResultRecord> {
        let mut records = Vec::new();
        for (policy, factor) in [("inline", 1.0), ("workqueue", 2.0), ("adaptive", 3.0)] {
            for block_size in [4096, 65536] {
                for depth in [1, 32] {
                    let bw = 1e6 * block_size as f64 * factor;
                    records.push(record(cell(policy, block_size, depth), 1, bw));
                }
            }
        }
        records
    }

    #[test]
    fn a_facet_is_a_grid_of_depth_by_block_size() {
        let runs = [run("a", matrix())];
        let report = Report::new(&runs);
        assert_eq!(report.facets.len(), 1);
        let grid = report.grid(&report.facets[0], "workqueue", Metric::Throughput);
        assert_eq!(grid.rows().labels.len(), 2);
        assert_eq!(grid.columns().labels[1].text, "64k");
        let value = grid.cell(0, 1).value().unwrap();
        assert!((value - 2e6 * 65536.0).abs() < 1.0);
        let ratio = report.ratio_grid(&report.facets[0], Metric::Throughput);
        assert!(ratio.values().all(|value| (value - 1.5).abs() < 1e-9));
    }

    #[test]
    fn labels_name_only_what_tells_facets_apart() {
        let mut records = matrix();
        let mut two_jobs = matrix();
        for record in &mut two_jobs {
            record.cell.jobs = 2;
        }
        let mut other_device = matrix();
        for record in &mut other_device {
            record.cell.device = "null".to_owned();
            record.cell.size_bytes = 1 << 30;
        }
        records.extend(two_jobs);
        records.extend(other_device);
        let runs = [run("a", records)];
        let labels: Vec<String> = Report::new(&runs).facets.iter().map(Facet::label).collect();
        assert_eq!(
            labels,
            [
                "memory · randread · jobs 1",
                "memory · randread · jobs 2",
                "null · randread"
            ]
        );
    }

    #[test]
    fn two_runs_stay_apart() {
        let runs = [run("old", matrix()), run("new", matrix())];
        let report = Report::new(&runs);
        let labels: Vec<String> = report.facets.iter().map(Facet::label).collect();
        assert_eq!(
            labels,
            ["memory · randread · old", "memory · randread · new"]
        );
    }

    #[test]
    fn the_overview_shows_every_workload_once() {
        let runs = [run("a", matrix())];
        let report = Report::new(&runs);
        let overview = report.overview(Metric::Throughput);
        assert_eq!(overview.values().count(), 4);
        assert_eq!(overview.columns().labels[3], Label::grouped("64k", "32"));
        let lineup = report.lineup.as_ref().unwrap();
        assert_eq!(report.comparisons(&lineup.others, Metric::LatP99).len(), 4);
    }

    #[test]
    fn no_results_are_a_report_too() {
        let runs = [run("empty", Vec::new())];
        let report = Report::new(&runs);
        assert!(report.overview(Metric::Iops).has_no_value());
        assert!(!report.compares() && report.facets.is_empty());
        assert!(Report::new(&[]).lineup.is_none());
    }
}
