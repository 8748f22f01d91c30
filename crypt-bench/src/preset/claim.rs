//! What was published in words about a workload, so that results can be held against it: which of two columns is
//! higher, and by which factor where the table has figures.

#![forbid(unsafe_code)]

use serde::Deserialize;

use super::{Measure, Preset};
use crate::definition::Definition;
use crate::definition::quantity::{Count, Size};
use crate::result::CellParams;

/// A statement about `no_workqueue` beside the default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The row of the published table that says so.
    pub row: String,
    /// What is higher, lower or equal.
    pub measure: Measure,
    /// How it is without workqueues.
    pub way: Way,
    /// The workload: only what tells it from the preset's others.
    pub at: Definition,
}

/// Which way something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// It becomes more.
    Higher,
    /// It becomes less.
    Lower,
    /// It stays the same, or nearly so.
    Equal,
}

impl Claim {
    /// Whether a cell has its workload.
    #[must_use]
    pub fn is_of(&self, cell: &CellParams) -> bool {
        let at = &self.at;
        let jobs = |count: &Count| *count == Count::PerCpu || *count == Count::Number(cell.jobs);
        allows(&at.rw, |rw| *rw == cell.rw)
            && allows(&at.bs, |bs| *bs == Size(cell.block_size_bytes))
            && allows(&at.depth, |depth| *depth == cell.depth)
            && allows(&at.jobs, jobs)
            && allows(&at.devices, |devices| *devices == cell.devices)
    }

    /// How many times as much there is without workqueues, where the table has figures of this.
    #[must_use]
    pub fn published(&self, preset: &Preset) -> Option<f64> {
        let mut observations = preset.observations.iter();
        let seen = observations.find(|seen| seen.row == self.row)?;
        let quantity = seen.measure.map(|measure| measure.quantity);
        let is_of_this = quantity.is_none_or(|quantity| quantity == self.measure.quantity);
        let (with, without) = seen.pair.filter(|_| is_of_this)?;
        Some(without / with)
    }
}

fn allows<T>(values: &[T], fits: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(fits)
}
