//! `crypt-bench noise`: what the same program differs by from itself, and so what a gate can find here.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::gate::options::{Allowed, parse_percent};
use super::turns::{self, Measured};
use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::diff::{Diff, Options};
use crate::noise::{Noise, Question, halves, text};
use crate::report::Run;

const EXAMPLES: &str = "\
Examples:
  crypt-bench noise --matrix gate
      this program against itself, in turns, on 24 cells: the noise of each, and what a gate finds in it
  crypt-bench noise reports/run --effect 5% --max-regress 2%
      from stored results: every second repeat against the one before it
  crypt-bench noise out/baseline out/candidate
      what gate run or noise measured with the same program on both sides";

/// Measure how much this machine's figures vary, and what slow-downs a gate can find in them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stored results of one program: one folder with several repeats, or two that took turns
    #[arg(value_name = "DIR", num_args = 0..=2)]
    dirs: Vec<PathBuf>,

    /// Measure this: a TOML file, or the name of a preset
    #[arg(long, value_name = "FILE.toml", conflicts_with = "dirs")]
    matrix: Option<PathBuf>,

    #[command(flatten)]
    measured: Measured,

    #[command(flatten)]
    allowed: Allowed,

    /// The slow-down that is to be found
    #[arg(long, value_name = "PERCENT", value_parser = parse_effect, default_value = "10%")]
    effect: f64,

    /// Gates to be tried out on the figures, without and with that slow-down in one cell
    #[arg(long, value_name = "N", default_value_t = 300)]
    decisions: u32,

    /// Repeats of each of them [default: all]
    #[arg(long, value_name = "N")]
    decision_repeats: Option<usize>,

    /// Of the draws for them
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad input (nothing was measured), folders without results, an interruption, and a program that fails.
pub fn run(args: &Args) -> Outcome {
    let metrics = args.allowed.metrics()?;
    let runs = match &args.matrix {
        Some(matrix) => measure(args, matrix, metrics.len())?,
        None => stored(&args.dirs)?,
    };
    let options = Options {
        metrics: metrics.iter().map(|(metric, _)| *metric).collect(),
        across: None,
        labels: ["one half", "the other"],
    };
    let [first, second] = &runs;
    let diff = Diff::of([first, second], &options).map_err(Failure::Usage)?;
    let question = Question {
        metrics,
        effect: args.effect,
        decisions: args.decisions,
        repeats: args.decision_repeats,
        seed: args.seed,
    };
    let noise = Noise::of(&diff, &question);
    let document = if args.json {
        let json = serde_json::to_string_pretty(&noise);
        json.unwrap_or_else(|error| unreachable!("plain data: {error}")) + "\n"
    } else {
        text::text(&noise)
    };
    output::write_stdout(&document)
}

fn measure(args: &Args, matrix: &Path, metrics: usize) -> Outcome<[Run; 2]> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::internal(format!("own program: {error}")))?;
    let turns = turns::measure([&own, &own], matrix, &args.measured, metrics, || Ok(()))?;
    match turns.failure {
        Some(failure) => Err(Failure::internal(failure)),
        None => Ok(turns.runs),
    }
}

fn stored(dirs: &[PathBuf]) -> Outcome<[Run; 2]> {
    let runs = report::read_runs(dirs)?;
    match runs.as_slice() {
        [one] => Ok(halves(one)),
        [one, other] if one.manifest.tool.binary_sha256 != other.manifest.tool.binary_sha256 => {
            Err(Failure::usage(format!(
                "{} and {} are of different programs, which differ by more than noise; see `crypt-bench compare`",
                one.name, other.name
            )))
        }
        [one, other] => Ok([one.clone(), other.clone()]),
        _ => Err(Failure::usage(
            "name one folder of results, or two that took turns, or what to measure with --matrix",
        )),
    }
}

fn parse_effect(text: &str) -> Result<f64, String> {
    match parse_percent(text)? {
        0.0 => Err("above 0%".to_owned()),
        effect => Ok(effect),
    }
}
