//! A published table measured again: its rows and columns with the measured and the published figures,
//! heat maps of the change, and the distribution of throughput over slices.
//!
//! Published figures are marked as such, with the hardware that they come from, and are never compared by
//! the verdict: absolute figures of two machines tell nothing about each other. Pure.

#![forbid(unsafe_code)]

mod agreement;
mod instant;
mod machine;
mod measured;
mod render;

use super::axis::Axis;
use super::cells::{CellSummary, range};
use super::chart::HeatMap;
use super::compare::Lineup;
use super::grid::Cell;
use super::maps;
use super::metric::Metric;
use super::model::Report;
use crate::judge::VIRTUAL_CLOCK;
use crate::preset::{CHANGED_COLUMN, DEFAULT_COLUMN, Preset, Show};
use crate::result::CellParams;

pub use agreement::{Agreement, Change, LEAST_NOISE, agreements, ratio_text};
pub use instant::{Instant, Verdict};
pub use machine::json;
pub(super) use measured::measured;
pub use render::{html, markdown, text};

/// What a preset's run is shown as.
#[derive(Clone, Debug)]
pub struct Section {
    /// The preset.
    pub preset: Preset,
    /// One table for each figure that is shown.
    pub tables: Vec<Table>,
    /// The change over block size and depth, for each pattern.
    pub maps: Vec<HeatMap>,
    /// Throughput over slices of each row and column.
    pub instant: Vec<Instant>,
    /// The simulated machine that the results are from; `None` where they were measured.
    pub simulated_on: Option<String>,
}

/// One figure over rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows, unit included.
    pub title: String,
    /// Headings of the fields that name a row.
    pub keys: Vec<String>,
    /// Headings of the fields with figures.
    pub columns: Vec<String>,
    /// Each workload, followed by what was published of it.
    pub rows: Vec<Row>,
}

/// A row of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What names the workload.
    pub keys: Vec<String>,
    /// Whether the figures are the published ones.
    pub published: bool,
    /// The figures under their headings; [`Cell::Missing`] where there is none.
    pub cells: Vec<Field>,
}

/// A figure in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The number in the table's unit, or the change in percent.
    pub cell: Cell,
    /// As it is shown.
    pub text: String,
}

/// Everything that names a row, where it varies; the first four always do.
const KEYS: [Axis; 4] = [Axis::Rw, Axis::BlockSize, Axis::Depth, Axis::Jobs];

/// The sections of a report, in the order of its runs.
#[must_use]
pub fn sections(report: &Report<'_>) -> Vec<Section> {
    let runs = report.runs.iter().enumerate();
    let named = runs.filter_map(|(index, run)| {
        let preset = Preset::named(run.manifest.preset.as_deref()?).ok()?;
        Some(section(report, index, preset))
    });
    named.collect()
}

/// The column that a cell is in, and what was published of it: `mb_s=282`.
#[must_use]
pub fn of_cell(report: &Report<'_>, cell: &CellSummary<'_>) -> (Option<String>, Vec<String>) {
    let run = report.runs.get(cell.run);
    let name = run.and_then(|run| run.manifest.preset.as_deref());
    let Some(preset) = name.and_then(|name| Preset::named(name).ok()) else {
        return (None, Vec::new());
    };
    let column = preset.column(&cell.params.policy);
    let figures = preset.plan.show.iter().filter_map(|show| {
        let value = preset.published(cell.params, show)?;
        // In the words of the published table, whatever it stands beside.
        Some(format!("{}={value}", show.published?.name))
    });
    (column.map(|column| column.name.clone()), figures.collect())
}

fn section(report: &Report<'_>, run: usize, preset: Preset) -> Section {
    let cells = report.cells.iter().filter(|cell| cell.run == run);
    let layout = Layout::new(&preset, &cells.collect::<Vec<_>>());
    Section {
        tables: preset
            .plan
            .show
            .iter()
            .map(|show| layout.table(&preset, show))
            .collect(),
        maps: if preset.plan.maps {
            change_maps(report, run, &preset)
        } else {
            Vec::new()
        },
        instant: if preset.plan.instant {
            instant::of(&layout)
        } else {
            Vec::new()
        },
        simulated_on: report
            .runs
            .get(run)
            .map(|run| &run.manifest.environment)
            .filter(|environment| environment.clock == VIRTUAL_CLOCK)
            .map(|environment| environment.host.clone()),
        preset,
    }
}

/// The rows and columns of all tables of a run.
struct Layout<'a, 'b> {
    /// Heading and policy of each column.
    columns: Vec<(String, String)>,
    keys: Vec<Axis>,
    /// Cells of each workload, all policies.
    workloads: Vec<Vec<&'b CellSummary<'a>>>,
}

impl<'a, 'b> Layout<'a, 'b> {
    fn new(preset: &Preset, cells: &[&'b CellSummary<'a>]) -> Self
    where
        'a: 'b,
    {
        let mut workloads: Vec<(CellParams, Vec<&CellSummary<'_>>)> = Vec::new();
        let mut policies: Vec<&str> = Vec::new();
        for &cell in cells {
            if !policies.contains(&cell.params.policy.as_str()) {
                policies.push(&cell.params.policy);
            }
            let workload = cell.params.without_policy();
            match workloads.iter_mut().find(|(known, _)| *known == workload) {
                Some((_, members)) => members.push(cell),
                None => workloads.push((workload, vec![cell])),
            }
        }
        let heading = |policy: &&str| {
            let column = preset.column(policy);
            column.map_or_else(|| (*policy).to_owned(), |column| column.name.clone())
        };
        let varies = |axis: &Axis| axis.positions(cells.iter().map(|cell| cell.params)).len() > 1;
        let skipped = [
            Axis::Policy,
            Axis::Runtime,
            Axis::Ramp,
            Axis::Slice,
            Axis::Mix,
        ];
        let more = Axis::ALL
            .into_iter()
            .filter(|axis| !KEYS.contains(axis) && !skipped.contains(axis))
            .filter(varies);
        Self {
            columns: policies
                .iter()
                .map(|policy| (heading(policy), (*policy).to_owned()))
                .collect(),
            keys: more.chain(KEYS).collect(),
            workloads: workloads.into_iter().map(|(_, members)| members).collect(),
        }
    }

    fn keys_of(&self, workload: &[&CellSummary<'_>]) -> Vec<String> {
        let params = workload.first().map(|cell| cell.params);
        let axes = self.keys.iter();
        axes.map(|axis| params.map_or_else(String::new, |params| axis.text(params)))
            .collect()
    }

    fn table(&self, preset: &Preset, show: &Show) -> Table {
        let mut columns = Vec::new();
        for (heading, _) in &self.columns {
            columns.push(heading.clone());
            if heading == CHANGED_COLUMN {
                columns.push("%change".to_owned());
            }
        }
        let mut rows = Vec::new();
        for workload in &self.workloads {
            rows.push(self.measured_row(preset, workload, show));
            rows.extend(self.published_row(preset, workload, show));
        }
        Table {
            title: show.measure.title.to_owned(),
            keys: self
                .keys
                .iter()
                .map(|axis| axis.name().to_owned())
                .collect(),
            columns,
            rows,
        }
    }

    fn measured_row(&self, preset: &Preset, workload: &[&CellSummary<'_>], show: &Show) -> Row {
        let find = |policy: &str| workload.iter().find(|cell| cell.params.policy == policy);
        let value = |policy: &str| find(policy).map_or(Cell::Missing, |cell| measured(cell, show));
        let change = || {
            let (Some(from), Some(to)) =
                (preset.policy(DEFAULT_COLUMN), preset.policy(CHANGED_COLUMN))
            else {
                return Field::missing();
            };
            let (from, to) = (find(from), find(to));
            match from.zip(to) {
                Some((from, to)) => measured_change(from, to, show),
                None => Field::missing(),
            }
        };
        Row {
            keys: self.keys_of(workload),
            published: false,
            cells: self.fields(|policy| Field::number(value(policy)), change),
        }
    }

    /// `None` where nothing was published of this workload.
    fn published_row(
        &self,
        preset: &Preset,
        workload: &[&CellSummary<'_>],
        show: &Show,
    ) -> Option<Row> {
        let value = |policy: &str| {
            let cell = workload.iter().find(|cell| cell.params.policy == policy)?;
            preset.published(cell.params, show)
        };
        let field = |policy: &str| Field::number(value(policy).map_or(Cell::Missing, Cell::new));
        let change = || {
            let from = preset.policy(DEFAULT_COLUMN).and_then(value);
            let to = preset.policy(CHANGED_COLUMN).and_then(value);
            from.zip(to)
                .map_or_else(Field::missing, |(from, to)| Field::change(to / from, false))
        };
        let cells = self.fields(field, change);
        let any = cells.iter().any(|field| field.cell.value().is_some());
        any.then(|| Row {
            keys: self.keys_of(workload),
            published: true,
            cells,
        })
    }

    /// A field for each column, and the change behind the column that changes.
    fn fields(&self, of: impl Fn(&str) -> Field, change: impl Fn() -> Field) -> Vec<Field> {
        let mut fields = Vec::new();
        for (heading, policy) in &self.columns {
            fields.push(of(policy));
            if heading == CHANGED_COLUMN {
                fields.push(change());
            }
        }
        fields
    }
}

impl Field {
    fn missing() -> Self {
        Self::number(Cell::Missing)
    }

    fn number(cell: Cell) -> Self {
        let text = match &cell {
            Cell::Value { value, .. } => digits(*value),
            Cell::Invalid { .. } => "invalid".to_owned(),
            Cell::Missing => "–".to_owned(),
        };
        Self { cell, text }
    }

    fn change(ratio: f64, within_noise: bool) -> Self {
        let percent = 100.0 * (ratio - 1.0);
        let cell = Cell::new(percent);
        let about = if within_noise { "≈" } else { "" };
        let text = match cell {
            Cell::Value { .. } if percent.abs() < 0.5 => format!("{about}±0 %"),
            Cell::Value { .. } => format!("{about}{percent:+.0} %").replace('-', "−"),
            _ => "invalid".to_owned(),
        };
        Self { cell, text }
    }
}

/// The change of what is measured; within noise where the repeats of both sides overlap.
fn measured_change(from: &CellSummary<'_>, to: &CellSummary<'_>, show: &Show) -> Field {
    let (Some(before), Some(after)) = (measured(from, show).value(), measured(to, show).value())
    else {
        return Field::missing();
    };
    let ranges = (
        range(measured::each_repeat(from, show)),
        range(measured::each_repeat(to, show)),
    );
    let overlap = match ranges {
        (Some((a_least, a_most)), Some((b_least, b_most))) => {
            a_least <= b_most && b_least <= a_most
        }
        _ => false,
    };
    let several = from.repeats.len() >= 2 && to.repeats.len() >= 2;
    Field::change(after / before, several && overlap)
}

/// Three digits, or whole numbers above.
fn digits(value: f64) -> String {
    match value.abs() {
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// no_workqueue ÷ default of each facet, throughput and the tail of latency.
fn change_maps(report: &Report<'_>, run: usize, preset: &Preset) -> Vec<HeatMap> {
    let (Some(from), Some(to)) = (preset.policy(DEFAULT_COLUMN), preset.policy(CHANGED_COLUMN))
    else {
        return Vec::new();
    };
    let lineup = Lineup {
        candidate: to.to_owned(),
        others: vec![from.to_owned()],
        references: Vec::new(),
    };
    let axes = (Axis::BlockSize, Axis::Depth);
    let mut pictures = Vec::new();
    for facet in report.facets.iter().filter(|facet| facet.run == run) {
        let members: Vec<&CellParams> = report.members(facet).map(|cell| cell.params).collect();
        for metric in [Metric::Throughput, Metric::LatP99] {
            let wanted = |params: &CellParams| members.contains(&params);
            let map = maps::ratio_over(report, axes, metric, &lineup, wanted);
            pictures.push(HeatMap {
                title: format!("{} · {CHANGED_COLUMN} ÷ {DEFAULT_COLUMN}", metric.title()),
                subtitle: format!("{} · {}", facet.label(), better(metric)),
                ..map
            });
        }
    }
    pictures
}

fn better(metric: Metric) -> &'static str {
    if metric.higher_is_better() {
        "above 1 (blue) is better without workqueues"
    } else {
        "below 1 (blue) is better without workqueues"
    }
}

#[cfg(test)]
mod tests;
