//! Whether results show what was published: for each published change from the default, the change that the
//! results have, and whether it goes the same way.
//!
//! What is published says itself how far it can be trusted. Nothing that encrypts is faster than the device by
//! itself, so by as much as a column of a table exceeds its `raw` column, figures of that table vary; 5 % is the
//! least that is assumed. A change below that has no direction. Neither has one that its author calls equal.
//! Means of latency at a depth that is kept are throughput once more (Little's law) and left out where the table has
//! throughput too. Pure.

#![forbid(unsafe_code)]

use super::super::cells::{CellSummary, range};
use super::super::model::Report;
use super::measured::{each_repeat, measured};
use super::{Layout, digits};
use crate::preset::{
    CHANGED_COLUMN, Claim, DEFAULT_COLUMN, Preset, Quantity, RAW_COLUMN, Show, Way,
};

/// The least noise that is assumed of what was published.
pub const LEAST_NOISE: f64 = 0.05;
/// The least change of results that has a direction.
const LEAST_CHANGE: f64 = 0.02;

/// A published change, and that of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Name: preset, workload or row, column, quantity.
    pub id: String,
    /// How many times as much as in the default column was published; `None` where only the way was.
    pub published: Option<f64>,
    /// The way that was published.
    pub way: Way,
    /// The same where every table has the least noise.
    pub bare_way: Way,
    /// How many times as much the results have; why not, where they have none.
    pub found: Result<Change, String>,
    /// Whether it is about the column that the share is of.
    pub counts: bool,
}

/// A change of results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How many times as much.
    pub ratio: f64,
    /// Its way: equal where repeats overlap, and where the change is below 2 %.
    pub way: Way,
}

impl Agreement {
    /// Whether the results go the published way; `None` where that is no way.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        self.agrees_with(self.way)
    }

    /// The same where every table has the least noise.
    #[must_use]
    pub fn agrees_bare(&self) -> Option<bool> {
        self.agrees_with(self.bare_way)
    }

    fn agrees_with(&self, way: Way) -> Option<bool> {
        let found = self.found.as_ref().ok();
        (way != Way::Equal).then(|| found.is_some_and(|found| found.way == way))
    }
}

/// All published changes of the presets of a report, in its order.
#[must_use]
pub fn agreements(report: &Report<'_>) -> Vec<Agreement> {
    let mut found = Vec::new();
    for (index, run) in report.runs.iter().enumerate() {
        let name = run.manifest.preset.as_deref();
        let Some(preset) = name.and_then(|name| Preset::named(name).ok()) else {
            continue;
        };
        let cells: Vec<&CellSummary<'_>> = report.cells.iter().filter(|c| c.run == index).collect();
        let layout = Layout::new(&preset, &cells);
        let of_columns = counted(&preset)
            .into_iter()
            .flat_map(|show| of_columns(&preset, &layout, show));
        found.extend(of_columns.collect::<Vec<_>>());
        let claims = preset.plan.claim.iter();
        found.extend(claims.flat_map(|claim| of_claim(&preset, &layout, claim)));
    }
    found
}

/// What is shown of a table and was published, without what is the same twice.
fn counted(preset: &Preset) -> Vec<&Show> {
    let shows = || preset.plan.show.iter().filter(|s| s.published.is_some());
    let has_throughput = shows().any(|show| show.measure.quantity == Quantity::Throughput);
    shows()
        .filter(|show| !(has_throughput && show.measure.quantity == Quantity::LatMean))
        .collect()
}

/// The changes of each workload and column.
fn of_columns(preset: &Preset, layout: &Layout<'_, '_>, show: &Show) -> Vec<Agreement> {
    let noise = noise(preset, layout, show);
    let mut found = Vec::new();
    for workload in &layout.workloads {
        for (column, policy) in &layout.columns {
            if [DEFAULT_COLUMN, RAW_COLUMN].contains(&column.as_str()) {
                continue;
            }
            let Some(default) = preset.policy(DEFAULT_COLUMN) else {
                continue;
            };
            let value = |policy: &str| preset.published(find(workload, policy)?.params, show);
            let Some((from, to)) = value(default).zip(value(policy)) else {
                continue;
            };
            let keys = layout.keys_of(workload).join("-");
            let name = show.measure.name;
            found.push(Agreement {
                id: format!("{}/{keys}/{column}/{name}", preset.name),
                published: Some(to / from),
                way: way(to / from, noise),
                bare_way: way(to / from, LEAST_NOISE),
                found: change(workload, (default, policy), show),
                counts: column == CHANGED_COLUMN,
            });
        }
    }
    found
}

/// By how much the figures of a table vary at least.
fn noise(preset: &Preset, layout: &Layout<'_, '_>, show: &Show) -> f64 {
    let higher_is_better = matches!(
        show.measure.quantity,
        Quantity::Throughput | Quantity::EachWay
    );
    let raw = preset.policy(RAW_COLUMN);
    let mut noise = LEAST_NOISE;
    for workload in &layout.workloads {
        let value = |policy: &str| preset.published(find(workload, policy)?.params, show);
        let Some(raw) = raw.and_then(value) else {
            continue;
        };
        for (_, policy) in &layout.columns {
            let ratio = value(policy).map(|value| value / raw);
            let excess = ratio.map(|ratio| if higher_is_better { ratio } else { 1.0 / ratio });
            noise = noise.max(excess.unwrap_or(0.0) - 1.0);
        }
    }
    noise
}

/// The change that was published in words, for the workload that it is about.
fn of_claim(preset: &Preset, layout: &Layout<'_, '_>, claim: &Claim) -> Option<Agreement> {
    let about = |workload: &&Vec<&CellSummary<'_>>| {
        let first = workload.first();
        first.is_some_and(|cell| claim.is_of(cell.params))
    };
    let workload = layout.workloads.iter().find(about)?;
    let policies = preset
        .policy(DEFAULT_COLUMN)
        .zip(preset.policy(CHANGED_COLUMN))?;
    let show = Show {
        measure: claim.measure,
        published: None,
    };
    let name = claim.measure.name;
    Some(Agreement {
        id: format!("{}/row {}/{CHANGED_COLUMN}/{name}", preset.name, claim.row),
        published: claim.published(preset),
        way: claim.way,
        bare_way: claim.way,
        found: change(workload, policies, &show),
        counts: true,
    })
}

fn find<'a, 'b>(workload: &[&'b CellSummary<'a>], policy: &str) -> Option<&'b CellSummary<'a>> {
    let mut cells = workload.iter().copied();
    cells.find(|cell| cell.params.policy == policy)
}

/// The change from one policy to another.
fn change(
    workload: &[&CellSummary<'_>],
    (from, to): (&str, &str),
    show: &Show,
) -> Result<Change, String> {
    let cell = |policy: &str| {
        find(workload, policy).ok_or_else(|| format!("nothing was measured of {policy}"))
    };
    let value = |cell: &CellSummary<'_>| {
        let value = measured(cell, show).value();
        value.ok_or_else(|| format!("there is no valid figure of {}", cell.params.policy))
    };
    let (from, to) = (cell(from)?, cell(to)?);
    let ratio = value(to)? / value(from)?;
    let ranges = range(each_repeat(from, show)).zip(range(each_repeat(to, show)));
    let apart = ranges
        .is_some_and(|((a_least, a_most), (b_least, b_most))| a_most < b_least || b_most < a_least);
    let way = if apart {
        way(ratio, LEAST_CHANGE)
    } else {
        Way::Equal
    };
    Ok(Change { ratio, way })
}

fn way(ratio: f64, noise: f64) -> Way {
    match ratio {
        _ if ratio > 1.0 + noise => Way::Higher,
        _ if ratio < 1.0 / (1.0 + noise) => Way::Lower,
        _ => Way::Equal,
    }
}

/// A ratio as people read it: a change in percent, a factor where it is large.
#[must_use]
pub fn ratio_text(ratio: f64) -> String {
    match ratio {
        2.0.. => format!("x{}", digits(ratio)),
        ..=0.5 => format!("/{}", digits(1.0 / ratio)),
        _ => format!("{:+.0} %", 100.0 * (ratio - 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cells::Run;
    use super::*;
    use crate::result::{CellParams, ResultRecord, Rw};
    use crate::testing::{cell, manifest, record};

    const WITHOUT: &str = "workqueue:no_read_workqueue,no_write_workqueue";

    fn params(policy: &str, depth: u32, jobs: u32) -> CellParams {
        CellParams {
            device: "model:sata-array:7:70000".to_owned(),
            cipher: "cipher_null-ecb".to_owned(),
            key_bits: None,
            rw: Rw::RandWrite,
            rwmixread_percent: 0,
            jobs,
            ..cell(policy, 4096, depth)
        }
    }

    fn run(records: Vec<ResultRecord>) -> Vec<Run> {
        let mut manifest = manifest(&records);
        manifest.preset = Some("dorminy-ssd".to_owned());
        vec![Run {
            name: "run".to_owned(),
            manifest,
            records,
        }]
    }

    /// Two repeats of both columns at each of the three depths of the table, in MB/s.
    fn results(rows: [[[f64; 2]; 2]; 3]) -> Vec<Run> {
        let mut records = Vec::new();
        for ((depth, jobs), columns) in [(128, 1), (256, 4), (2048, 4)].into_iter().zip(rows) {
            for (policy, repeats) in ["workqueue", WITHOUT].into_iter().zip(columns) {
                for (repeat, mb_s) in (1..).zip(repeats) {
                    records.push(record(params(policy, depth, jobs), repeat, mb_s * 1e6));
                }
            }
        }
        run(records)
    }

    #[test]
    fn only_a_change_beyond_the_noise_of_its_table_has_a_way() {
        let rows = [[[100.0, 101.0], [50.0, 51.0]]; 3];
        let mut runs = results(rows);
        let ways = |runs: &[Run]| -> Vec<(Way, Way)> {
            let found = agreements(&Report::new(runs));
            found.iter().map(|one| (one.way, one.bare_way)).collect()
        };
        // Published: 282 to 282, 251 to 183, 266 to 283.
        let bare = [
            (Way::Equal, Way::Equal),
            (Way::Lower, Way::Lower),
            (Way::Higher, Way::Higher),
        ];
        assert_eq!(ways(&runs), bare);
        // With 1m the default is published as 433 and raw as 403, so what is below 7.4 % is noise.
        for policy in ["workqueue", WITHOUT, "raw"] {
            let mut params = params(policy, 1, 4);
            params.block_size_bytes = 1 << 20;
            runs[0].manifest.plan.push(params.clone());
            runs[0].records.push(record(params, 1, 1e9));
        }
        let found = agreements(&Report::new(&runs));
        assert_eq!(found[2].way, Way::Equal);
        assert_eq!(found[2].bare_way, Way::Higher);
        assert_eq!((found.len(), found[1].way), (4, Way::Lower));
    }

    #[test]
    fn results_agree_where_they_go_the_same_way_by_more_than_their_own_noise() {
        let agrees = |columns: [[f64; 2]; 2]| {
            let runs = results([columns; 3]);
            let found = agreements(&Report::new(&runs));
            assert_eq!(
                found[1].id,
                "dorminy-ssd/randwrite-4k-256-4/no_workqueue/mb_s"
            );
            assert!(found[1].counts && found[0].agrees().is_none());
            found[1].agrees()
        };
        assert_eq!(agrees([[100.0, 101.0], [50.0, 60.0]]), Some(true));
        assert_eq!(agrees([[100.0, 101.0], [150.0, 160.0]]), Some(false));
        // Less, but repeats overlap; less by 1 %.
        assert_eq!(agrees([[100.0, 120.0], [50.0, 110.0]]), Some(false));
        assert_eq!(agrees([[100.0, 100.1], [99.0, 99.1]]), Some(false));
    }

    #[test]
    fn what_was_not_measured_does_not_agree() {
        let mut runs = results([[[100.0, 101.0], [50.0, 51.0]]; 3]);
        runs[0].records.retain(|one| one.cell.policy == "workqueue");
        let found = agreements(&Report::new(&runs));
        assert!(found[1].found.is_err() && found[1].agrees() == Some(false));
        runs[0].manifest.preset = None;
        assert_eq!(agreements(&Report::new(&runs)), []);
    }

    #[test]
    fn ratios_are_percentages_until_they_are_factors() {
        let texts = [0.25, 0.73, 1.0, 1.06, 3.66].map(ratio_text);
        assert_eq!(texts, ["/4.00", "-27 %", "+0 %", "+6 %", "x3.66"]);
    }
}
