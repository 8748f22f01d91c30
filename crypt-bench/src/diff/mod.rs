//! Two runs held against each other: every cell that both have, metric by metric, and everything in which
//! the runs differ beside.
//!
//! Repeats are told to be interleaved by the times at which they started: where those of both runs took turns, they are
//! pairs, and else each run is a sample by itself. In the second case a machine that has changed in
//! between looks like a program that has.
//!
//! The first run is what the second one is compared with. Pure: results in, figures out.

#![forbid(unsafe_code)]

pub mod dimension;
pub mod machine;
pub mod markdown;
mod pair;
pub mod record;
pub mod text;

use std::collections::BTreeMap;

use crate::report::Run;
use crate::report::axis::Axis;
use crate::report::cells::{CellSummary, summarise};
use crate::report::metric::Metric;
use crate::report::names::CellNames;
use crate::result::CellParams;
use crate::statistics::{Limit, Ratio, adjusted};
use dimension::Dimension;

pub use pair::{Change, Pair, Trouble};

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is compared of every cell.
    pub metrics: Vec<Metric>,
    /// A parameter in which cells may differ that are compared: a device with another one.
    pub across: Option<Axis>,
    /// What the two runs are called.
    pub labels: [&'static str; 2],
}

/// Two runs, compared.
#[derive(Clone, Debug)]
pub struct Diff<'a> {
    /// The runs.
    pub runs: [&'a Run; 2],
    /// What they are called.
    pub labels: [&'static str; 2],
    /// Every cell of either run, in the order of the plans.
    pub pairs: Vec<Pair<'a>>,
    /// In what the runs differ.
    pub dimensions: Vec<Dimension>,
    /// Geometric means over all cells.
    pub means: Vec<Mean>,
}

/// Second / first over all cells that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// Of what.
    pub metric: Metric,
    /// Of the cells under this policy; of all where they have only one.
    pub policy: Option<String>,
    /// The geometric mean.
    pub ratio: Ratio,
    /// Number of cells.
    pub cells: usize,
}

impl<'a> Diff<'a> {
    /// Compares two runs.
    ///
    /// # Errors
    /// Where several cells of a run are the same but for [`Options::across`].
    pub fn of(runs: [&'a Run; 2], options: &Options) -> Result<Self, String> {
        let mut pairs = paired(runs, options)?;
        let tests = pairs.iter().map(Pair::tests).sum();
        for pair in &mut pairs {
            pair.shift(tests);
        }
        adjust(&mut pairs);
        Ok(Self {
            runs,
            labels: options.labels,
            dimensions: dimension::of_runs(runs),
            means: means(&pairs, options),
            pairs,
        })
    }

    /// The number of figures that are judged together.
    #[must_use]
    pub fn tests(&self) -> usize {
        self.pairs.iter().map(Pair::tests).sum()
    }

    /// Whether the repeats of all compared cells took turns; `None` where no cell is compared.
    #[must_use]
    pub fn is_interleaved(&self) -> Option<bool> {
        let mut compared = self.pairs.iter().filter(|pair| pair.tests() > 0).peekable();
        compared.peek()?;
        Some(compared.all(Pair::is_interleaved))
    }

    /// What its cells are called.
    #[must_use]
    pub fn names(&self) -> CellNames {
        CellNames::of(self.pairs.iter().map(Pair::params))
    }

    /// Everything that casts doubt on the comparison as a whole, in words.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_interleaved() == Some(false) {
            warnings.push(
                "measured one after the other: a machine that changed in between looks like a program that did; \
                 `gate run` measures both in turns"
                    .to_owned(),
            );
        }
        let differing = self.dimensions.iter();
        warnings.extend(differing.map(|dimension| dimension.text(self.labels)));
        warnings.extend(dimension::axes(&self.pairs, self.labels));
        warnings
    }
}

/// No change is small enough to be none.
#[must_use]
pub const fn any_change(metric: Metric) -> Limit {
    Limit {
        higher_is_better: metric.higher_is_better(),
        factor: 1.0,
    }
}

/// The cells of both runs, those that only one of them has included.
fn paired<'a>(runs: [&'a Run; 2], options: &Options) -> Result<Vec<Pair<'a>>, String> {
    let [first, second] = runs.map(|run| summarise(std::slice::from_ref(run)));
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut sides: Vec<[Option<CellSummary<'a>>; 2]> = Vec::new();
    for (side, cells) in [first, second].into_iter().enumerate() {
        for cell in cells {
            let place = *places
                .entry(key(cell.params, options.across))
                .or_insert_with(|| {
                    sides.push([None, None]);
                    sides.len() - 1
                });
            if sides[place][side].is_some() {
                let axis = options.across.map_or("nothing", Axis::name);
                return Err(format!(
                    "--across {axis}: {} has several cells that differ only in it, so it is not clear which is meant",
                    runs[side].name
                ));
            }
            sides[place][side] = Some(cell);
        }
    }
    let planned = runs.map(|run| run.manifest.repeats);
    Ok(sides
        .into_iter()
        .filter_map(|sides| Pair::new(sides, planned, &options.metrics))
        .collect())
}

/// What two cells have to agree in.
fn key(cell: &CellParams, across: Option<Axis>) -> Vec<String> {
    let axes = Axis::ALL.into_iter().filter(|axis| Some(*axis) != across);
    axes.map(|axis| axis.text(cell)).collect()
}

/// P-values as they count among all others.
fn adjust(pairs: &mut [Pair<'_>]) {
    let shifted = || {
        pairs
            .iter()
            .flat_map(|pair| &pair.changes)
            .filter_map(|change| change.shift)
    };
    let p_values: Vec<f64> = shifted().map(|shift| shift.p_value).collect();
    let mut adjusted = adjusted(&p_values).into_iter();
    for change in pairs.iter_mut().flat_map(|pair| &mut pair.changes) {
        if change.shift.is_some() {
            change.adjusted_p = adjusted.next().unwrap_or(1.0);
        }
    }
}

fn means(pairs: &[Pair<'_>], options: &Options) -> Vec<Mean> {
    let policies = Axis::Policy.positions(pairs.iter().map(Pair::params));
    let mut groups: Vec<Option<&String>> = policies.iter().map(Some).collect();
    if groups.len() < 2 {
        groups = vec![None];
    }
    let of = |metric: Metric, policy: Option<&String>| {
        let wanted = pairs
            .iter()
            .filter(|pair| policy.is_none_or(|name| pair.params().policy == *name));
        let changes = wanted.flat_map(|pair| &pair.changes);
        let second_by_first = |change: &Change| -> Vec<(f64, f64)> {
            let pairs = change.pairs().into_iter();
            pairs.map(|(first, second)| (second, first)).collect()
        };
        let beside: Vec<Vec<(f64, f64)>> = changes
            .filter(|change| change.metric == metric && change.shift.is_some())
            .map(second_by_first)
            .collect();
        Some(Mean {
            metric,
            policy: policy.cloned(),
            ratio: Ratio::over(beside.iter().map(Vec::as_slice))?,
            cells: beside.len(),
        })
    };
    let metrics = options.metrics.iter();
    metrics
        .flat_map(|metric| groups.iter().filter_map(move |policy| of(*metric, *policy)))
        .collect()
}

#[cfg(test)]
mod tests;
