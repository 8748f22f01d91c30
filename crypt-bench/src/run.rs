//! Runs a plan: cell after cell, each under all policies interleaved, every record on disk before the
//! next run starts.
//!
//! Order within a cell: A B C A B C ... for policies A, B, C. What the journal has already is not
//! measured again. Stops between two runs when asked to.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crypt_core::exec::{Pinning, WorkerConfig, WorkerPool};
use crypt_core::policy::{OffloadRules, PolicySpec};

use crate::cell::{PolicyVolumes, Setting};
use crate::definition::device::DeviceSpec;
use crate::journal::Journal;
use crate::matrix::Matrix;
use crate::progress::Progress;
use crate::result::{CellParams, ResultRecord};
use crate::target::{Opened, Targets};

/// What a run takes beside its ramp and runtime, about: opening, and writing the result. For the first estimate.
const OVERHEAD: Duration = Duration::from_millis(50);

/// Everything that a run works with.
#[derive(Debug)]
pub struct Runner<'a> {
    /// What to measure.
    pub matrix: &'a Matrix,
    /// Program, machine, key, and the wish to stop.
    pub setting: &'a Setting<'a>,
    /// Devices.
    pub targets: &'a mut Targets,
    /// Where records go.
    pub journal: &'a mut Journal,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All records are there.
    Complete,
    /// The user stopped it.
    Stopped,
}

impl Runner<'_> {
    /// Measures what `records` does not have yet, and adds to it.
    ///
    /// # Errors
    /// Where a device, a queue or the journal fails; in words. What was finished before is kept.
    pub fn run(&mut self, records: &mut Vec<ResultRecord>) -> Result<End, String> {
        let done: HashSet<(CellParams, u32)> = records
            .iter()
            .map(|record| (record.cell.clone(), record.repeat))
            .collect();
        let mut progress = self.progress(done.len() as u64);
        let mut pools = Pools::default();
        for cell in &self.matrix.cells {
            let missing = self.missing(cell, &done);
            let start = records.len();
            if !missing.is_empty() {
                let end = self.run_cell(cell, &missing, &mut pools, &mut progress, records)?;
                if end == End::Stopped {
                    progress.finish();
                    return Ok(end);
                }
            }
            progress.cell_done(cell, &records[start..]);
        }
        progress.finish();
        Ok(End::Complete)
    }

    fn progress(&self, done: u64) -> Progress {
        let longest = self
            .matrix
            .cells
            .iter()
            .map(|cell| cell.ramp_ms + cell.runtime_ms)
            .max();
        let planned = Duration::from_millis(longest.unwrap_or(0)) + OVERHEAD;
        let left = self.matrix.runs().saturating_sub(done);
        Progress::start(self.matrix.cells.len(), left, planned)
    }

    /// Repeats of a cell that were not measured yet.
    fn missing(&self, cell: &CellParams, done: &HashSet<(CellParams, u32)>) -> Vec<u32> {
        let Some(policy) = self.matrix.policies.first() else {
            return Vec::new();
        };
        let first = with_policy(cell, policy);
        (1..=self.matrix.repeats)
            .filter(|&repeat| !done.contains(&(first.clone(), repeat)))
            .collect()
    }

    fn run_cell(
        &mut self,
        cell: &CellParams,
        missing: &[u32],
        pools: &mut Pools,
        progress: &mut Progress,
        records: &mut Vec<ResultRecord>,
    ) -> Result<End, String> {
        let opened = match self.targets.open(cell, self.setting.stop) {
            Err(_) if self.setting.stop.load(Ordering::Relaxed) => return Ok(End::Stopped),
            opened => opened?,
        };
        let variants = self.open_variants(cell, &opened, pools)?;
        for &repeat in missing {
            for variant in &variants {
                if self.setting.stop.load(Ordering::Relaxed) {
                    return Ok(End::Stopped);
                }
                progress.running(&variant.cell);
                let renewed = self.renewed(&variant.cell, pools)?;
                let (variant, opened) = renewed
                    .as_ref()
                    .map_or((variant, &opened), |(variant, opened)| (variant, opened));
                let start = Instant::now();
                let Some(mut record) = variant.measure(repeat, opened, self.setting)? else {
                    return Ok(End::Stopped);
                };
                record.sequence = records.len() as u64;
                self.journal
                    .append(&mut record)
                    .map_err(|error| format!("write a result: {error}"))?;
                records.push(record);
                progress.ran(start.elapsed());
            }
        }
        Ok(End::Complete)
    }

    /// A modelled drive remembers: what one policy left in its write cache would slow down the next. So each
    /// run has a drive of its own, over the same data; `None` for other devices.
    fn renewed(
        &mut self,
        cell: &CellParams,
        pools: &mut Pools,
    ) -> Result<Option<(PolicyVolumes, Opened)>, String> {
        if !matches!(cell.device.parse()?, DeviceSpec::Model(_)) {
            return Ok(None);
        }
        let opened = self.targets.open(cell, self.setting.stop)?;
        let pool = pools.for_cell(cell)?;
        let volumes = PolicyVolumes::open(cell.clone(), &opened, pool.as_ref(), self.setting.key)?;
        Ok(Some((volumes, opened)))
    }

    /// The volumes of a cell under every policy.
    fn open_variants(
        &self,
        cell: &CellParams,
        opened: &Opened,
        pools: &mut Pools,
    ) -> Result<Vec<PolicyVolumes>, String> {
        self.matrix
            .policies
            .iter()
            .map(|policy| {
                let cell = with_policy(cell, policy);
                let pool = pools.for_cell(&cell)?;
                PolicyVolumes::open(cell, opened, pool.as_ref(), self.setting.key)
            })
            .collect()
    }
}

/// Worker pools, each started when it is first needed and kept: all volumes of a policy share one.
#[derive(Debug, Default)]
struct Pools {
    pools: Vec<(WorkerConfig, Arc<WorkerPool>)>,
}

impl Pools {
    /// The workers of a policy; `None` where it never hands off.
    fn for_cell(&mut self, cell: &CellParams) -> Result<Option<Arc<WorkerPool>>, String> {
        if cell.is_plain() {
            return Ok(None);
        }
        let policy: PolicySpec = cell.policy.parse().map_err(in_words)?;
        if !policy.needs_workers() {
            return Ok(None);
        }
        let config = worker_config(cell, policy.rules());
        if let Some((_, pool)) = self.pools.iter().find(|(known, _)| *known == config) {
            return Ok(Some(Arc::clone(pool)));
        }
        let pool = WorkerPool::start(&config).map_err(in_words)?;
        self.pools.push((config, Arc::clone(&pool)));
        Ok(Some(pool))
    }
}

fn worker_config(cell: &CellParams, rules: OffloadRules) -> WorkerConfig {
    WorkerConfig {
        threads: NonZeroUsize::new(cell.workers as usize),
        pinning: if rules.same_cpu {
            Pinning::EachCpu
        } else {
            Pinning::None
        },
        nice: if rules.high_priority {
            WorkerConfig::HIGH_PRIORITY_NICE
        } else {
            0
        },
        ..WorkerConfig::default()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn in_words(error: crypt_core::Error) -> String {
    error.to_string()
}

fn with_policy(cell: &CellParams, policy: &str) -> CellParams {
    CellParams {
        policy: policy.to_owned(),
        ..cell.clone()
    }
}
