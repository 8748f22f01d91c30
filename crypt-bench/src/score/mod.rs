//! The adaptive policy held against the fixed ones: bars, cell by cell and over a matrix.
//!
//! The larger of two noisy numbers is too large in the mean, so a policy as good as the better fixed one would seem
//! to lose. Hence the better one of a cell is chosen on its odd repeats, and what is said about it is said
//! on the even ones alone, by the bounds of [`Ratio`]: a bar is met where the whole interval is on its good side,
//! missed where all of it is on the other, and else nothing can be said. Of cells that are exactly at a bar, 5 %
//! are called missed by chance.
//!
//! - Throughput is held against the fixed policy with the highest throughput.
//! - p99 and processor time per byte are held against the winner of the cell: that policy, or where another one
//!   is level with it, within the tolerance of the throughput bar, the one of those with the lowest p99.
//! - Over the matrix, the geometric means of throughput and p99 against each fixed policy are to be better
//!   than 1. Nothing is chosen there, so all repeats count.
//!
//! Pure: results in, verdicts out.

#![forbid(unsafe_code)]

pub mod table;

use std::collections::BTreeMap;

use crate::report::Run;
use crate::report::cells::{CellSummary, summarise};
use crate::report::compare::{Lineup, geometric_mean, workloads};
use crate::report::metric::Metric;
use crate::result::CellParams;
use crate::statistics::{Ratio, median};

/// What a bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Bytes per second.
    Throughput,
    /// 99th percentile of latency.
    P99,
    /// Processor seconds of all threads per byte.
    Cpu,
}

impl Measure {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::P99, Self::Cpu];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P99 => "p99 latency",
            Self::Cpu => "CPU per byte",
        }
    }

    /// The bar of a single cell: the least ratio of throughput, the most of the others.
    #[must_use]
    pub const fn bar(self) -> f64 {
        match self {
            Self::Throughput => 0.97,
            Self::P99 | Self::Cpu => 1.05,
        }
    }

    const fn higher_is_better(self) -> bool {
        matches!(self, Self::Throughput)
    }

    /// Where a ratio stands to a bar.
    #[must_use]
    pub fn judge(self, ratio: &Ratio, bar: f64) -> Verdict {
        let (good, bad) = if self.higher_is_better() {
            (ratio.low >= bar, ratio.high < bar)
        } else {
            (ratio.high <= bar, ratio.low > bar)
        };
        match (good, bad) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::Missed,
            _ => Verdict::Open,
        }
    }

    /// Its value in each valid repeat of a cell that has one.
    fn values(self, cell: &CellSummary<'_>) -> BTreeMap<u32, f64> {
        match self {
            Self::Throughput => cell.trusted_values(Metric::Throughput),
            Self::P99 => cell.trusted_values(Metric::LatP99),
            Self::Cpu => {
                let valid = cell.records.iter().filter(|record| record.is_valid());
                let per_byte = valid.map(|record| {
                    let bytes: u64 = record.directions().map(|stats| stats.bytes).sum();
                    (record.repeat, record.cpu.total_s / bytes as f64)
                });
                per_byte.filter(|(_, cost)| cost.is_finite()).collect()
            }
        }
    }
}

/// What can be said about a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The ratio is on the good side, with 95 % confidence.
    Met,
    /// It is on the other side, with 95 % confidence.
    Missed,
    /// The noise of the repeats is too large, or there are too few of them.
    Open,
}

/// One measure of one cell against one fixed policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What it is about.
    pub measure: Measure,
    /// The fixed policy.
    pub rival: String,
    /// Candidate / rival over the even repeats; `None` where there are too few.
    pub ratio: Option<Ratio>,
    /// Medians over the same repeats, of the candidate and of the rival, in the measure's own unit.
    pub medians: Option<(f64, f64)>,
    /// Where it stands to the bar.
    pub verdict: Verdict,
}

/// What can be said about one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellScore {
    /// The cell, without a policy.
    pub params: CellParams,
    /// One per measure; none where there is no valid throughput to choose a rival by.
    pub statements: Vec<Statement>,
}

/// The geometric mean over the matrix against one fixed policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Overall {
    /// What it is about.
    pub measure: Measure,
    /// The fixed policy.
    pub rival: String,
    /// Candidate / rival over all cells and repeats.
    pub ratio: Option<Ratio>,
    /// Against a bar of 1; processor time has none over the matrix, and is `None`.
    pub verdict: Option<Verdict>,
}

/// The score of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Name of the run.
    pub name: String,
    /// The policy that is judged.
    pub candidate: String,
    /// Cell by cell, in an order of their own.
    pub cells: Vec<CellScore>,
    /// Over all cells.
    pub overall: Vec<Overall>,
}

/// One cell under the candidate and the fixed policies.
struct Contest<'a, 'b> {
    candidate: &'b CellSummary<'a>,
    fixed: Vec<&'b CellSummary<'a>>,
}

/// Pairs of (candidate, rival) of equal repeats.
type Pairs = Vec<(f64, f64)>;

impl Score {
    /// The score of `run`; `None` where it has no adaptive policy beside a fixed one.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let cells = summarise(std::slice::from_ref(run));
        let lineup = Lineup::of(&cells)?;
        if lineup.others.is_empty() || !lineup.is_adaptive() {
            return None;
        }
        let workloads = workloads(&cells);
        let contests: Vec<(&CellParams, Contest<'_, '_>)> = workloads
            .iter()
            .filter_map(|((_, params), cells)| Some((params, Contest::of(cells, &lineup)?)))
            .collect();
        let overall = lineup.others.iter().flat_map(|rival| {
            let contests = &contests;
            Measure::ALL.map(|measure| overall(contests, measure, rival))
        });
        Some(Self {
            name: run.name.clone(),
            candidate: lineup.candidate.clone(),
            overall: overall.collect(),
            cells: contests
                .iter()
                .map(|(params, contest)| CellScore {
                    params: (*params).clone(),
                    statements: contest.statements(),
                })
                .collect(),
        })
    }

    /// Every statement about a measure, with its cell.
    pub fn statements(
        &self,
        measure: Measure,
    ) -> impl Iterator<Item = (&CellParams, &Statement)> + Clone {
        let all = self
            .cells
            .iter()
            .flat_map(|cell| cell.statements.iter().map(move |one| (&cell.params, one)));
        all.filter(move |(_, one)| one.measure == measure)
    }

    /// Whether a bar is missed, in a cell or over the matrix.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        let cells = self.cells.iter().flat_map(|cell| &cell.statements);
        let overall = self.overall.iter().filter_map(|overall| overall.verdict);
        cells
            .map(|one| one.verdict)
            .chain(overall)
            .any(|verdict| verdict == Verdict::Missed)
    }

    /// Whether anything could be said at all: no verdict passes on nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut statements = self.statements(Measure::Throughput);
        statements.all(|(_, one)| one.verdict == Verdict::Open)
    }
}

impl<'a, 'b> Contest<'a, 'b> {
    fn of(cells: &[&'b CellSummary<'a>], lineup: &Lineup) -> Option<Self> {
        let find = |policy: &String| cells.iter().copied().find(|c| c.params.policy == *policy);
        Some(Self {
            candidate: find(&lineup.candidate)?,
            fixed: lineup.others.iter().filter_map(find).collect(),
        })
    }

    fn statements(&self) -> Vec<Statement> {
        let Some(fastest) = self.fastest() else {
            return Vec::new();
        };
        let winner = self.winner(fastest);
        let rival = |measure| match measure {
            Measure::Throughput => fastest,
            Measure::P99 | Measure::Cpu => winner,
        };
        Measure::ALL
            .map(|measure| self.statement(measure, rival(measure)))
            .to_vec()
    }

    fn statement(&self, measure: Measure, rival: &CellSummary<'_>) -> Statement {
        let judged = pairs(measure, self.candidate, rival, is_judged);
        let ratio = Ratio::of(&judged);
        let median_of = |pick: fn(&(f64, f64)) -> f64| median(judged.iter().map(pick).collect());
        Statement {
            measure,
            rival: rival.params.policy.clone(),
            ratio,
            medians: median_of(|pair| pair.0).zip(median_of(|pair| pair.1)),
            verdict: ratio.map_or(Verdict::Open, |ratio| measure.judge(&ratio, measure.bar())),
        }
    }

    /// The fixed policy with the highest throughput in the repeats that choose.
    fn fastest(&self) -> Option<&'b CellSummary<'a>> {
        let valued = self.fixed.iter().copied().filter_map(|cell| {
            let value = chosen_by(Measure::Throughput, cell)?;
            Some((value, cell))
        });
        valued
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, cell)| cell)
    }

    /// Of the fixed policies that are level with the fastest, the one with the lowest p99.
    fn winner(&self, fastest: &'b CellSummary<'a>) -> &'b CellSummary<'a> {
        let level = chosen_by(Measure::Throughput, fastest)
            .map_or(f64::INFINITY, |most| most * Measure::Throughput.bar());
        let is_level = |cell: &CellSummary<'_>| {
            chosen_by(Measure::Throughput, cell).is_some_and(|v| v >= level)
        };
        let valued = self.fixed.iter().copied().filter(|cell| is_level(cell));
        valued
            .filter_map(|cell| Some((chosen_by(Measure::P99, cell)?, cell)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(fastest, |(_, cell)| cell)
    }
}

/// Even repeats are what is spoken about, odd ones choose.
const fn is_judged(repeat: u32) -> bool {
    repeat.is_multiple_of(2)
}

/// A measure's geometric mean over the repeats that choose.
fn chosen_by(measure: Measure, cell: &CellSummary<'_>) -> Option<f64> {
    let values = measure.values(cell);
    let chosen = values.into_iter().filter(|(repeat, _)| !is_judged(*repeat));
    geometric_mean(chosen.map(|(_, value)| value))
}

/// Candidate and rival in the repeats that both have and `is_wanted`.
fn pairs(
    measure: Measure,
    candidate: &CellSummary<'_>,
    rival: &CellSummary<'_>,
    is_wanted: fn(u32) -> bool,
) -> Pairs {
    let (own, others) = (measure.values(candidate), measure.values(rival));
    own.into_iter()
        .filter(|(repeat, _)| is_wanted(*repeat))
        .filter_map(|(repeat, own)| Some((own, *others.get(&repeat)?)))
        .collect()
}

fn overall(contests: &[(&CellParams, Contest<'_, '_>)], measure: Measure, rival: &str) -> Overall {
    let of_contest = |(_, contest): &(&CellParams, Contest<'_, '_>)| {
        let rival = contest.fixed.iter().find(|c| c.params.policy == rival)?;
        Some(pairs(measure, contest.candidate, rival, |_| true))
    };
    let all: Vec<Pairs> = contests.iter().filter_map(of_contest).collect();
    let ratio = Ratio::over(all.iter().map(Vec::as_slice));
    let verdict = ratio.map_or(Verdict::Open, |ratio| measure.judge(&ratio, 1.0));
    Overall {
        measure,
        rival: rival.to_owned(),
        ratio,
        verdict: (measure != Measure::Cpu).then_some(verdict),
    }
}

#[cfg(test)]
mod tests;
