//! `crypt-bench score DIR...`: the adaptive policy held against the fixed ones, from stored results alone.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::score::{Score, table};

const EXAMPLES: &str = "\
Examples:
  crypt-bench matrix --matrix policy --sample 30 --out results && crypt-bench score results
      30 cells of the matrix that the bars are about, on this machine
  crypt-bench score results simulated --check
      several runs in one table; exit status 10 where a bar is missed";

/// Hold the adaptive policy against the better fixed one, cell by cell.
///
/// The fixed policy is chosen on the odd repeats of a cell and the statement made on the even ones, by a
/// confidence bound; so at least 6 repeats are needed, and 10 are better.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders with results.jsonl and manifest.json, as `matrix` and `simulate` wrote them
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// Name the cells too of which nothing can be said
    #[arg(long)]
    all: bool,

    /// Exit with status 10 where a bar is missed, or where nothing could be said at all
    #[arg(long)]
    check: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results of an adaptive and a fixed policy; with `--check`, a bar that is missed.
pub fn run(args: &Args) -> Outcome {
    let runs = report::read_runs(&args.dirs)?;
    let mut scores = Vec::with_capacity(runs.len());
    for (run, dir) in runs.iter().zip(&args.dirs) {
        let score = Score::of(run).ok_or_else(|| {
            Failure::usage(format!(
                "{}: no results of an adaptive and a fixed policy; measure with --policy adaptive",
                dir.display()
            ))
        })?;
        scores.push(score);
    }
    output::write_stdout(&table::text(&scores, args.all))?;
    if !args.check {
        return Ok(());
    }
    if let Some(score) = scores.iter().find(|score| score.is_missed()) {
        return Err(Failure::Missed(format!("{}: a bar is missed", score.name)));
    }
    match scores.iter().find(|score| score.is_empty()) {
        Some(score) => Err(Failure::Missed(format!(
            "{}: nothing can be said of any cell, which is no pass",
            score.name
        ))),
        None => Ok(()),
    }
}
