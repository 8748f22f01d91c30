//! One cell in two runs.

#![forbid(unsafe_code)]

use crate::report::cells::CellSummary;
use crate::report::metric::Metric;
use crate::result::CellParams;
use crate::statistics::{Sample, Shift, median};

use super::dimension::{self, Dimension};

/// A cell that at least one of the runs has.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The cell in each run that has it.
    pub sides: [Option<CellSummary<'a>>; 2],
    /// One per metric; of no use where there is trouble.
    pub changes: Vec<Change>,
    /// In what the measurements differ.
    pub dimensions: Vec<Dimension>,
    /// Repeats that were planned in each run.
    planned: [u32; 2],
    /// Repeats that ran next to each other; `None` where the runs did not take turns.
    blocks: Option<Vec<(u32, u32)>>,
}

/// One metric of a cell in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which.
    pub metric: Metric,
    /// Medians over the repeats of each run; `None` without a valid repeat that has enough samples.
    pub medians: [Option<f64>; 2],
    /// Second / first; `None` with fewer than two repeats on a side.
    pub shift: Option<Shift>,
    /// Its p-value among all of the comparison; 1 without a shift.
    pub adjusted_p: f64,
    sample: Figures,
}

/// Figures of repeats, each side in order of time.
#[derive(Clone, Debug, PartialEq)]
enum Figures {
    Interleaved(Vec<(f64, f64)>),
    Apart(Vec<f64>, Vec<f64>),
}

/// Why a cell can't be compared, or only in part. The side is 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Only this side was to measure it.
    OnlyIn(usize),
    /// This side has no record of it.
    Unmeasured(usize),
    /// Repeats of this side are invalid.
    Invalid {
        /// Which.
        side: usize,
        /// How many of how many.
        repeats: (usize, usize),
        /// The first reason.
        why: String,
    },
    /// This side has fewer repeats than were planned.
    Partial {
        /// Which.
        side: usize,
        /// How many of how many.
        repeats: (usize, usize),
    },
    /// The sides were not measured in the same way.
    Separated(Dimension),
}

impl Trouble {
    /// In words; `labels` are the names of the sides.
    #[must_use]
    pub fn text(&self, labels: [&str; 2]) -> String {
        match self {
            Self::OnlyIn(side) => format!("only in {}", labels[*side]),
            Self::Unmeasured(side) => format!("not measured in {}", labels[*side]),
            Self::Invalid {
                side,
                repeats: (some, all),
                why,
            } => {
                format!(
                    "{some} of {all} repeats are invalid in {}: {why}",
                    labels[*side]
                )
            }
            Self::Partial {
                side,
                repeats: (some, all),
            } => {
                format!("{some} of {all} repeats in {}", labels[*side])
            }
            Self::Separated(dimension) => dimension.text(labels),
        }
    }
}

impl<'a> Pair<'a> {
    /// A cell in two runs; `None` where neither has it.
    pub(super) fn new(
        sides: [Option<CellSummary<'a>>; 2],
        planned: [u32; 2],
        metrics: &[Metric],
    ) -> Option<Self> {
        if sides.iter().all(Option::is_none) {
            return None;
        }
        let (mut changes, mut dimensions, mut blocks) = (Vec::new(), Vec::new(), None);
        if let [Some(first), Some(second)] = &sides {
            blocks = taking_turns(first, second);
            dimensions = dimension::of_cells([first, second]);
            let of = |metric: &Metric| Change::new(*metric, [first, second], blocks.as_deref());
            changes = metrics.iter().map(of).collect();
        }
        Some(Self {
            sides,
            changes,
            dimensions,
            planned,
            blocks,
        })
    }

    /// What was asked for; of the first run where both have it.
    #[must_use]
    pub fn params(&self) -> &CellParams {
        let Some(cell) = self.sides.iter().flatten().next() else {
            unreachable!("one side has the cell");
        };
        cell.params
    }

    /// Whether the repeats of both runs took turns.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        self.blocks.is_some()
    }

    /// Everything that stands against a comparison.
    #[must_use]
    pub fn troubles(&self) -> Vec<Trouble> {
        let [first, second] = &self.sides;
        let only = match (first, second) {
            (Some(_), None) => Some(0),
            (None, Some(_)) => Some(1),
            _ => None,
        };
        if let Some(side) = only {
            return vec![Trouble::OnlyIn(side)];
        }
        let separated = self.dimensions.iter().cloned().map(Trouble::Separated);
        let of_side = |side: usize| {
            let cell = self.sides[side].as_ref();
            cell.and_then(|cell| trouble(side, cell, self.planned[side]))
        };
        separated
            .chain([0, 1].into_iter().filter_map(of_side))
            .collect()
    }

    /// Number of metrics that can be judged.
    pub(super) fn tests(&self) -> usize {
        self.changes
            .iter()
            .filter(|change| change.sample.is_enough())
            .count()
    }

    /// Works the shifts out, as some of `tests`.
    pub(super) fn shift(&mut self, tests: usize) {
        for change in &mut self.changes {
            change.shift = change.sample.shift(tests);
        }
    }
}

fn trouble(side: usize, cell: &CellSummary<'_>, planned: u32) -> Option<Trouble> {
    let (found, planned) = (cell.records.len(), planned as usize);
    let valid = cell
        .records
        .iter()
        .filter(|record| record.is_valid())
        .count();
    if found == 0 {
        return Some(Trouble::Unmeasured(side));
    }
    if valid < found {
        let mut doubts = cell.records.iter().flat_map(|record| &record.doubts);
        let why = doubts.find(|doubt| doubt.invalidates());
        return Some(Trouble::Invalid {
            side,
            repeats: (found - valid, found),
            why: why.map_or_else(|| "invalid".to_owned(), ToString::to_string),
        });
    }
    if let Err(why) = &cell.figures {
        return Some(Trouble::Invalid {
            side,
            repeats: (found, found),
            why: why.clone(),
        });
    }
    (found < planned).then_some(Trouble::Partial {
        side,
        repeats: (found, planned),
    })
}

/// Pairs of repeats that ran next to each other, in order of time; `None` where the sides did not take turns.
fn taking_turns(first: &CellSummary<'_>, second: &CellSummary<'_>) -> Option<Vec<(u32, u32)>> {
    let started = |side: usize, cell: &CellSummary<'_>| -> Vec<(u64, usize, u32)> {
        cell.records
            .iter()
            .map(|record| (record.started_unix_ms, side, record.repeat))
            .collect()
    };
    let mut all = [started(0, first), started(1, second)].concat();
    // What does not say when it was measured.
    if all.is_empty() || all.iter().any(|(time, ..)| *time == 0) {
        return None;
    }
    all.sort_unstable();
    let block = |both: &[(u64, usize, u32)]| match both {
        [(_, 0, first), (_, 1, second)] | [(_, 1, second), (_, 0, first)] => {
            Some((*first, *second))
        }
        _ => None,
    };
    all.chunks(2).map(block).collect()
}

impl Change {
    /// Figures of (first, second) of each block, or of repeats in their order where the runs did not take turns.
    #[must_use]
    pub fn pairs(&self) -> Vec<(f64, f64)> {
        match &self.sample {
            Figures::Interleaved(pairs) => pairs.clone(),
            Figures::Apart(first, second) => {
                first.iter().copied().zip(second.iter().copied()).collect()
            }
        }
    }

    fn new(metric: Metric, sides: [&CellSummary<'_>; 2], blocks: Option<&[(u32, u32)]>) -> Self {
        let [first, second] = sides.map(|cell| cell.trusted_values(metric));
        let medians = [&first, &second].map(|values| median(values.values().copied().collect()));
        let sample = match blocks {
            Some(blocks) => {
                let both =
                    |(one, other): &(u32, u32)| Some((*first.get(one)?, *second.get(other)?));
                Figures::Interleaved(blocks.iter().filter_map(both).collect())
            }
            None => Figures::Apart(
                first.into_values().collect(),
                second.into_values().collect(),
            ),
        };
        Self {
            metric,
            medians,
            shift: None,
            adjusted_p: 1.0,
            sample,
        }
    }
}

impl Figures {
    fn is_enough(&self) -> bool {
        match self {
            Self::Interleaved(pairs) => pairs.len() >= 2,
            Self::Apart(first, second) => first.len().min(second.len()) >= 2,
        }
    }

    fn shift(&self, tests: usize) -> Option<Shift> {
        let sample = match self {
            Self::Interleaved(pairs) => Sample::Interleaved(pairs),
            Self::Apart(first, second) => Sample::Apart(first, second),
        };
        Shift::of(&sample, tests)
    }
}
