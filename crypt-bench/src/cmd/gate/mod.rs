//! `crypt-bench gate`: whether a run may replace another one, as an exit status and as documents.

#![forbid(unsafe_code)]

pub(super) mod options;
mod run;
mod verify;

use std::path::PathBuf;

use crate::cli::{Failure, Outcome};
use crate::cmd::report;
use crate::diff::{Diff, Options};
use crate::gate::{self, Artefact};
use crate::journal::{MANIFEST, RESULTS};
use crate::report::Run;
use options::Shared;

const EXAMPLES: &str = "\
Examples:
  crypt-bench gate --baseline reports/main --candidate reports/branch --max-regress 5%
      judge two results folders
  crypt-bench gate run --baseline-bin old/crypt-bench --candidate-bin new/crypt-bench --matrix smoke
      measure with both programs in turns on this machine, and judge
  crypt-bench gate --baseline a --candidate b --json gate.json --markdown gate.md --junit gate.xml --github || true
  crypt-bench gate verify gate.json
      the verdict as documents, and the exit status again from one of them

Exit status: 0 pass or improved, or inconclusive unless that is to fail; 10 regressed, 11 inconclusive (with --fail-on
inconclusive), 12 missing or incomplete, 13 invalid, 14 environment mismatch; 1 a failure, 2 bad input.";

/// Decide whether a run may replace another one: nothing passes that is not known to be well.
///
/// Every cell of the baseline is judged by its repeats. It has regressed only where the whole 99 % interval of the change
/// lies beyond what is allowed, and the change counts among all that were tested.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Results that the candidate is held against, as `matrix` wrote them
    #[arg(long, required = true, value_name = "DIR")]
    baseline: Option<PathBuf>,

    /// Results that are judged
    #[arg(long, required = true, value_name = "DIR")]
    candidate: Option<PathBuf>,

    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Verify(verify::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results, a document that can't be written, and every verdict that is no pass.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Some(Command::Run(args)) => return run::run(args),
        Some(Command::Verify(args)) => return verify::run(args),
        None => {}
    }
    let (Some(baseline), Some(candidate)) = (&args.baseline, &args.candidate) else {
        return Err(Failure::usage(
            "name both --baseline DIR and --candidate DIR",
        ));
    };
    let used: Vec<PathBuf> = [baseline, candidate]
        .into_iter()
        .flat_map(|folder| [RESULTS, MANIFEST].map(|file| folder.join(file)))
        .collect();
    let outputs = args.shared.open(used.iter().map(PathBuf::as_path))?;
    let runs = report::read_runs(&[baseline.clone(), candidate.clone()])?;
    let [baseline, candidate] = runs.as_slice() else {
        return Err(Failure::internal("two folders are no two runs"));
    };
    outputs.conclude(&decide([baseline, candidate], &args.shared)?)
}

/// The verdict on two runs.
fn decide(runs: [&Run; 2], shared: &Shared) -> Outcome<Artefact> {
    let policy = shared.policy()?;
    let options = Options {
        metrics: policy.metrics.iter().map(|(metric, _)| *metric).collect(),
        across: None,
        labels: ["baseline", "candidate"],
    };
    let diff = Diff::of(runs, &options).map_err(Failure::Usage)?;
    Ok(gate::decide(&diff, &policy))
}
