//! `crypt-bench gate run`: both programs measure in turns on this machine, and what comes out is judged.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::decide;
use super::options::Shared;
use crate::cli::Outcome;
use crate::cmd::turns::{self, Measured};
use crate::gate::artefact::{Reason, Verdict};

/// Measure with two programs in turns on this machine, and judge the second one.
///
/// Both measure the same matrix, block by block, each in a process of its own. Nothing is built.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Program that the candidate is held against: a crypt-bench
    #[arg(long, value_name = "FILE")]
    baseline_bin: PathBuf,

    /// Program that is judged
    #[arg(long, value_name = "FILE")]
    candidate_bin: PathBuf,

    /// What to measure: a TOML file, or the name of a preset
    #[arg(long, value_name = "FILE.toml")]
    matrix: PathBuf,

    #[command(flatten)]
    measured: Measured,

    #[command(flatten)]
    shared: Shared,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad input (nothing was measured), a folder that can't be written, an interruption, and every verdict that is no pass.
pub(super) fn run(args: &Args) -> Outcome {
    let used = [&args.baseline_bin, &args.candidate_bin, &args.matrix];
    let programs = [args.baseline_bin.as_path(), &args.candidate_bin];
    let mut outputs = None;
    let before = || {
        outputs = Some(args.shared.open(used.into_iter().map(PathBuf::as_path))?);
        Ok(())
    };
    let metrics = args.shared.policy()?.metrics.len();
    let turns = turns::measure(programs, &args.matrix, &args.measured, metrics, before)?;
    let [baseline, candidate] = &turns.runs;
    let mut artefact = decide([baseline, candidate], &args.shared)?;
    if let Some(failure) = turns.failure {
        artefact
            .reasons
            .push(Reason::new(Verdict::Incomplete, failure));
        artefact = artefact.concluded();
    }
    match outputs {
        Some(outputs) => outputs.conclude(&artefact),
        None => unreachable!("outputs are opened before anything is measured"),
    }
}
