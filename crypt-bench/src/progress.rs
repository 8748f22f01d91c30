//! Progress on stderr: a bar with an estimate on a terminal, otherwise one line per cell.
//!
//! stdout is for results; nothing here writes to it.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::definition::quantity::Size;
use crate::result::{CellParams, ResultRecord};

/// Where a run stands, shown to whoever waits.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    cells: usize,
    cells_done: usize,
    estimate: Estimate,
}

/// What is left, from the time that runs are planned to take and the overhead seen so far.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    runs_left: u64,
    planned_per_run: Duration,
    spent: Duration,
    runs_done: u32,
}

impl Progress {
    /// Progress over `cells` cells with `runs` runs left to do, each planned to take this long. Says first how
    /// long that is going to take.
    #[must_use]
    pub fn start(cells: usize, runs: u64, planned_per_run: Duration) -> Self {
        let estimate = Estimate {
            runs_left: runs,
            planned_per_run,
            spent: Duration::ZERO,
            runs_done: 0,
        };
        say(format_args!(
            "cells: {cells}, runs: {runs}, which takes about {}",
            in_minutes(estimate.left())
        ));
        let terminal = io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self {
            bar,
            terminal,
            cells,
            cells_done: 0,
            estimate,
        }
    }

    /// A run begins.
    pub fn running(&self, cell: &CellParams) {
        let left = HumanDuration(self.estimate.left());
        self.bar.set_message(format!(
            "{} {}  about {left} left",
            describe(cell),
            cell.policy
        ));
    }

    /// A run has ended, after this long.
    pub fn ran(&mut self, spent: Duration) {
        self.estimate.runs_left = self.estimate.runs_left.saturating_sub(1);
        self.estimate.runs_done += 1;
        self.estimate.spent += spent;
        self.bar.inc(1);
    }

    /// A cell has ended under all policies; `records` are its own, empty where it was there before.
    pub fn cell_done(&mut self, cell: &CellParams, records: &[ResultRecord]) {
        self.cells_done += 1;
        if self.terminal || records.is_empty() {
            return;
        }
        say(format_args!(
            "[{}/{}] {}: {}{}",
            self.cells_done,
            self.cells,
            describe(cell),
            throughputs(records),
            self.estimate
        ));
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Estimate {
    fn left(&self) -> Duration {
        let per_run = match self.runs_done {
            0 => self.planned_per_run,
            done => self.spent / done,
        };
        per_run.saturating_mul(u32::try_from(self.runs_left).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.left() {
            Duration::ZERO => Ok(()),
            left => write!(f, "; about {} left", HumanDuration(left)),
        }
    }
}

/// A time to plan by: minutes, or seconds where there are few.
fn in_minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A line on standard error. That nobody reads there is no failure.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A cell in a few words.
fn describe(cell: &CellParams) -> String {
    let mut text = format!(
        "{} {} {} depth {}",
        cell.device,
        cell.rw.name(),
        block_sizes(cell),
        cell.depth
    );
    for (count, what) in [(cell.jobs, "jobs"), (cell.devices, "volumes")] {
        if count > 1 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

fn block_sizes(cell: &CellParams) -> String {
    let one = || Size(cell.block_size_bytes).to_string();
    cell.block_sizes.clone().unwrap_or_else(one)
}

/// Mean throughput of each policy over its repeats, in order of appearance.
fn throughputs(records: &[ResultRecord]) -> String {
    let mut policies: Vec<(&str, Vec<f64>, bool)> = Vec::new();
    for record in records {
        let (name, rate) = (record.cell.policy.as_str(), record.bw_bytes_per_s() / 1e6);
        match policies.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, rates, valid)) => {
                rates.push(rate);
                *valid &= record.is_valid();
            }
            None => policies.push((name, vec![rate], record.is_valid())),
        }
    }
    let texts: Vec<String> = policies
        .iter()
        .map(|(name, rates, valid)| {
            let mark = if *valid { "" } else { " (invalid)" };
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            format!("{name} {mean:.0}{mark}")
        })
        .collect();
    format!("{} MB/s", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::Doubt;
    use crate::testing::{cell, record};

    #[test]
    fn a_cell_is_told_in_one_line() {
        assert_eq!(
            describe(&cell("inline", 65536, 8)),
            "memory randread 64k depth 8"
        );
        let mut bad = record(cell("adaptive", 4096, 1), 1, 3e9);
        bad.doubts.push(Doubt::NotDirect);
        let records = [
            record(cell("inline", 4096, 1), 1, 1e9),
            record(cell("inline", 4096, 1), 2, 2e9),
            bad,
        ];
        assert_eq!(
            throughputs(&records),
            "inline 1500, adaptive 3000 (invalid) MB/s"
        );
    }

    #[test]
    fn times_to_plan_by_are_in_minutes() {
        let texts = [0, 119, 120, 4441].map(|s| in_minutes(Duration::from_secs(s)));
        assert_eq!(texts, ["1 s", "119 s", "2 min", "75 min"]);
    }

    #[test]
    fn what_is_left_follows_what_runs_took() {
        let mut progress = Progress::start(1, 10, Duration::from_secs(1));
        assert_eq!(progress.estimate.left(), Duration::from_secs(10));
        progress.ran(Duration::from_secs(2));
        assert_eq!(progress.estimate.left(), Duration::from_secs(18));
    }
}
