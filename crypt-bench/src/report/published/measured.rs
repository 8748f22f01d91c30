//! What a cell measured of a table's quantity, in the table's unit: of all valid repeats together, and of
//! each. Histograms are merged before a percentile is taken.

#![forbid(unsafe_code)]

use super::super::cells::CellSummary;
use super::super::grid::Cell;
use crate::preset::{Quantity, Show};
use crate::result::{Distribution, ResultRecord};
use crate::summary;

/// The figure of a cell, in the unit of `show`.
pub(in super::super) fn measured(cell: &CellSummary<'_>, show: &Show) -> Cell {
    match &cell.figures {
        Ok(None) => return Cell::Missing,
        Err(why) => return Cell::invalid(why.clone()),
        Ok(Some(_)) => {}
    }
    let valid: Vec<&ResultRecord> = cell
        .records
        .iter()
        .copied()
        .filter(|r| r.is_valid())
        .collect();
    match of(&valid, show.measure.quantity) {
        Some(value) => Cell::new(value / show.measure.scale),
        None => Cell::Missing,
    }
}

/// The figure of each valid repeat.
pub(super) fn each_repeat(cell: &CellSummary<'_>, show: &Show) -> Vec<f64> {
    let valid = cell.records.iter().filter(|record| record.is_valid());
    valid
        .filter_map(|record| of(&[record], show.measure.quantity))
        .collect()
}

fn of(records: &[&ResultRecord], quantity: Quantity) -> Option<f64> {
    let merged = |of: fn(&ResultRecord) -> Vec<&Distribution>| {
        summary::merge(records.iter().flat_map(|record| of(record)))
            .ok()
            .flatten()
    };
    let lat = || merged(|record| record.directions().map(|stats| &stats.lat).collect());
    let clat = || merged(|record| record.directions().map(|stats| &stats.clat).collect());
    let reads = || merged(|record| record.read.iter().map(|stats| &stats.lat).collect());
    let writes = || merged(|record| record.write.iter().map(|stats| &stats.lat).collect());
    match quantity {
        Quantity::Throughput => throughput(records),
        Quantity::EachWay => throughput(records).map(|both| both / 2.0),
        Quantity::LatMean => lat().map(|lat| lat.mean_ns),
        Quantity::LatP99 => lat()?.p99_ns.map(|ns| ns as f64),
        Quantity::ClatMean => clat().map(|clat| clat.mean_ns),
        Quantity::ClatP99 => clat()?.p99_ns.map(|ns| ns as f64),
        Quantity::ReadLatMean => reads().map(|lat| lat.mean_ns),
        Quantity::WriteLatMean => writes().map(|lat| lat.mean_ns),
    }
}

/// Bytes over time of all repeats; `None` without any.
fn throughput(records: &[&ResultRecord]) -> Option<f64> {
    let weights = records
        .iter()
        .map(|record| record.achieved.runtime_ns as f64);
    let total: f64 = weights.clone().sum();
    let weighted = records.iter().zip(weights);
    let sum: f64 = weighted
        .map(|(record, weight)| record.bw_bytes_per_s() * weight)
        .sum();
    (total > 0.0).then(|| sum / total)
}
