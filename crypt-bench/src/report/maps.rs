//! The heat maps of a report: which grid, which title, which scale and colours.
//!
//! Pictures that are looked at side by side share a scale: the policies of one facet and metric do.
//! Brighter is better in every map of values, and bluer is better in every map of ratios, so maps
//! of latency run the other way round.

#![forbid(unsafe_code)]

use super::axis::Axis;
use super::cells::CellSummary;
use super::chart::HeatMap;
use super::compare::{Lineup, against_best, is_adaptive};
use super::format::Unit;
use super::grid::{Cell, Grid};
use super::metric::Metric;
use super::model::{Facet, Report, axis};
use super::palette::Palette;
use super::scale::{Scale, ScaleKind};
use crate::result::CellParams;

/// From this factor between the largest and the smallest value on, colours go by factors.
const LOG_FROM_FACTOR: f64 = 8.0;

/// Every workload at a glance.
#[must_use]
pub fn overview(report: &Report<'_>, metric: Metric) -> HeatMap {
    let grid = report.overview(metric);
    match &report.lineup {
        Some(lineup) if report.compares() => ratios(grid, lineup, metric, ""),
        lineup => {
            let policy = lineup.as_ref().map_or("", |l| l.candidate.as_str());
            let scale = value_scale(grid.values().collect());
            values(grid, metric, (policy, ""), scale)
        }
    }
}

/// One metric of every policy of a facet, the candidate last, on one scale.
#[must_use]
pub fn of_policies(report: &Report<'_>, facet: &Facet, metric: Metric) -> Vec<(String, HeatMap)> {
    let policies: Vec<&str> = report.lineup.iter().flat_map(Lineup::policies).collect();
    let grids: Vec<Grid> = policies
        .iter()
        .map(|policy| report.grid(facet, policy, metric))
        .collect();
    let scale = value_scale(grids.iter().flat_map(Grid::values).collect());
    policies
        .into_iter()
        .zip(grids)
        .map(|(policy, grid)| {
            let of = (policy, facet.label());
            (
                policy.to_owned(),
                values(grid, metric, (of.0, &of.1), scale),
            )
        })
        .collect()
}

/// Candidate / best other policy of a facet; `None` where there is nothing to compare.
#[must_use]
pub fn of_ratios(report: &Report<'_>, facet: &Facet, metric: Metric) -> Option<HeatMap> {
    let lineup = report.lineup.as_ref().filter(|l| !l.others.is_empty())?;
    let grid = report.ratio_grid(facet, metric);
    Some(ratios(grid, lineup, metric, &facet.label()))
}

/// One metric over any two axes, of the cells that `wanted` picks. Where several cells fall on one
/// position the cell is invalid and names an axis that tells them apart.
pub fn over(
    report: &Report<'_>,
    axes: (Axis, Axis),
    metric: Metric,
    wanted: impl Fn(&CellParams) -> bool,
) -> HeatMap {
    let picked: Vec<_> = report.cells.iter().filter(|c| wanted(c.params)).collect();
    let grid = spread(&picked, axes, |here| match only(here) {
        Ok(cell) => cell.cell(metric),
        Err(instead) => instead,
    });
    let scale = value_scale(grid.values().collect());
    values(grid, metric, ("", &shared(&picked, axes)), scale)
}

/// One policy divided by another over any two axes, as [`over`].
pub fn ratio_over(
    report: &Report<'_>,
    axes: (Axis, Axis),
    metric: Metric,
    lineup: &Lineup,
    wanted: impl Fn(&CellParams) -> bool,
) -> HeatMap {
    let named: Vec<&str> = lineup.policies().collect();
    let taken =
        |c: &&CellSummary<'_>| named.contains(&c.params.policy.as_str()) && wanted(c.params);
    let picked: Vec<_> = report.cells.iter().filter(taken).collect();
    let grid = spread(&picked, axes, |here| {
        for policy in &named {
            let of_policy: Vec<_> = here
                .iter()
                .copied()
                .filter(|c| c.params.policy == *policy)
                .collect();
            if let Err(instead) = only(&of_policy) {
                return instead;
            }
        }
        against_best(here, &lineup.candidate, &lineup.others, metric)
            .map_or_else(|instead| instead, |comparison| comparison.cell())
    });
    ratios(grid, lineup, metric, &shared(&picked, axes))
}

/// Lays cells out over two axes: across, and down.
fn spread<'a, 'b>(
    cells: &[&'b CellSummary<'a>],
    (x, y): (Axis, Axis),
    mut cell: impl FnMut(&[&'b CellSummary<'a>]) -> Cell,
) -> Grid {
    let params = || cells.iter().map(|cell| cell.params);
    let (rows, columns) = (axis(y, params()), axis(x, params()));
    let (row_labels, column_labels) = (rows.labels.clone(), columns.labels.clone());
    Grid::from_fn(rows, columns, |row, column| {
        let is_here = |cell: &&&CellSummary<'_>| {
            y.text(cell.params) == row_labels[row].text
                && x.text(cell.params) == column_labels[column].text
        };
        cell(&cells.iter().filter(is_here).copied().collect::<Vec<_>>())
    })
}

/// The one cell; else what to show instead.
fn only<'a, 'b>(cells: &[&'b CellSummary<'a>]) -> Result<&'b CellSummary<'a>, Cell> {
    match cells {
        [] => Err(Cell::Missing),
        [only] => Ok(only),
        [first, rest @ ..] => {
            let differs = |axis: &Axis| {
                let of_first = axis.text(first.params);
                rest.iter().any(|cell| axis.text(cell.params) != of_first)
            };
            let name = Axis::ALL
                .into_iter()
                .find(differs)
                .map_or("run", Axis::name);
            let why = format!("{} cells that differ in {name}", cells.len());
            Err(Cell::invalid(why))
        }
    }
}

/// What all cells have in common, of what a reader wants to know first.
fn shared(cells: &[&CellSummary<'_>], (x, y): (Axis, Axis)) -> String {
    let params = || cells.iter().map(|cell| cell.params);
    let told = [
        Axis::Device,
        Axis::Rw,
        Axis::BlockSize,
        Axis::Depth,
        Axis::Policy,
    ];
    let words: Vec<String> = told
        .into_iter()
        .filter(|axis| *axis != x && *axis != y)
        .filter_map(|axis| match axis.positions(params()).as_slice() {
            [only] => Some(format!("{} {only}", axis.name())),
            _ => None,
        })
        .collect();
    words.join(" · ")
}

fn values(grid: Grid, metric: Metric, (policy, of): (&str, &str), scale: Scale) -> HeatMap {
    let unit = match metric.unit() {
        Unit::BytesPerSecond => "bytes per second",
        Unit::PerSecond => "requests per second",
        _ => "submission to completion",
    };
    HeatMap {
        title: joined(&[metric.title(), policy]),
        subtitle: joined(&[of, unit]),
        grid,
        unit: metric.unit(),
        scale,
        palette: if metric.higher_is_better() {
            Palette::Sequential
        } else {
            Palette::SequentialReversed
        },
    }
}

fn ratios(grid: Grid, lineup: &Lineup, metric: Metric, of: &str) -> HeatMap {
    let (other, which) = match lineup.others.as_slice() {
        [only] => (only.as_str(), String::new()),
        others if is_adaptive(&lineup.candidate) => {
            ("best fixed", format!("fixed: {}", others.join(", ")))
        }
        others => ("best other", format!("others: {}", others.join(", "))),
    };
    let better = if metric.higher_is_better() {
        "above 1 (blue) is better"
    } else {
        "below 1 (blue) is better"
    };
    HeatMap {
        title: format!("{} · {} ÷ {other}", metric.title(), lineup.candidate),
        subtitle: joined(&[of, &which, better]),
        scale: Scale::fit(ScaleKind::Ratio, grid.values()),
        grid,
        unit: Unit::Ratio,
        palette: if metric.higher_is_better() {
            Palette::Diverging
        } else {
            Palette::DivergingReversed
        },
    }
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join(" · ")
}

/// Logarithmic where values span much, else linear.
fn value_scale(values: Vec<f64>) -> Scale {
    let positive = values.iter().copied().filter(|v| *v > 0.0);
    let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), v| {
        (least.min(v), most.max(v))
    });
    let kind = if most / least >= LOG_FROM_FACTOR {
        ScaleKind::Log
    } else {
        ScaleKind::Linear
    };
    Scale::fit(kind, values)
}

#[cfg(test)]
mod tests {
    use super::super::cells::Run;
    use super::*;
    use crate::testing::{cell, manifest, record};

    fn runs() -> Vec<Run> {
        let mut records = Vec::new();
        for (policy, factor) in [("inline", 1.0), ("workqueue", 1.5), ("adaptive", 1.8)] {
            for depth in [1, 32] {
                records.push(record(cell(policy, 4096, depth), 1, 1e9 * factor));
            }
        }
        vec![Run {
            name: "run".to_owned(),
            manifest: manifest(&records),
            records,
        }]
    }

    #[test]
    fn the_policies_of_a_facet_share_one_scale_and_say_which_latency() {
        let runs = runs();
        let report = Report::new(&runs);
        let maps = of_policies(&report, &report.facets[0], Metric::LatP99);
        assert_eq!(maps.len(), 3);
        assert!(maps.iter().all(|(_, map)| map.scale == maps[0].1.scale));
        assert_eq!(maps[2].0, "adaptive");
        assert_eq!(maps[0].1.title, "p99 latency (lat) · inline");
        assert_eq!(
            maps[0].1.subtitle,
            "memory · randread · submission to completion"
        );
        assert_eq!(maps[0].1.palette, Palette::SequentialReversed);
    }

    #[test]
    fn ratio_maps_say_what_is_divided_by_what_and_which_way_is_better() {
        let runs = runs();
        let report = Report::new(&runs);
        let map = of_ratios(&report, &report.facets[0], Metric::LatP99).unwrap();
        assert_eq!(map.title, "p99 latency (lat) · adaptive ÷ best fixed");
        assert_eq!(
            map.subtitle,
            "memory · randread · fixed: inline, workqueue · below 1 (blue) is better"
        );
        assert_eq!(map.palette, Palette::DivergingReversed);
        assert_eq!(
            overview(&report, Metric::Throughput).grid.values().count(),
            2
        );
    }

    #[test]
    fn any_two_axes_make_a_map_and_ambiguous_positions_are_invalid() {
        let runs = runs();
        let report = Report::new(&runs);
        let axes = (Axis::Policy, Axis::Depth);
        let map = over(&report, axes, Metric::Throughput, |_| true);
        assert_eq!(map.grid.values().count(), 6);
        assert_eq!(map.title, "Throughput");
        assert_eq!(
            map.subtitle,
            "device memory · rw randread · bs 4k · bytes per second"
        );
        let axes = (Axis::BlockSize, Axis::Depth);
        let map = over(&report, axes, Metric::Throughput, |_| true);
        let why = Cell::invalid("3 cells that differ in policy");
        assert_eq!(map.grid.cell(0, 0), &why);
        let map = over(&report, axes, Metric::Throughput, |c| c.policy == "inline");
        assert_eq!(map.grid.values().count(), 2);
        let map = over(&report, axes, Metric::Throughput, |_| false);
        assert!(map.grid.has_no_value());
    }

    #[test]
    fn one_policy_over_another_and_no_ratio_where_cells_are_ambiguous() {
        let runs = runs();
        let report = Report::new(&runs);
        let lineup = Lineup {
            candidate: "workqueue".to_owned(),
            others: vec!["inline".to_owned()],
            ..Lineup::default()
        };
        let axes = (Axis::BlockSize, Axis::Depth);
        let map = ratio_over(&report, axes, Metric::Throughput, &lineup, |_| true);
        assert_eq!(map.title, "Throughput · workqueue ÷ inline");
        assert!(
            map.grid.values().count() == 2 && map.grid.values().all(|v| (v - 1.5).abs() < 1e-9)
        );
        let axes = (Axis::BlockSize, Axis::Device);
        let map = ratio_over(&report, axes, Metric::Throughput, &lineup, |_| true);
        let why = Cell::invalid("2 cells that differ in depth");
        assert_eq!(map.grid.cell(0, 0), &why);
    }

    #[test]
    fn wide_spans_are_logarithmic_and_narrow_ones_linear() {
        assert_eq!(value_scale(vec![1.0, 100.0]).ticks()[0], 1.0);
        assert_eq!(value_scale(vec![1.0, 2.0]).ticks()[0], 0.0);
        assert_eq!(value_scale(vec![]).ticks().len(), 1);
        assert_eq!(value_scale(vec![0.0, 0.0]).ticks().len(), 1);
    }
}
