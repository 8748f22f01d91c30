//! `crypt-bench compare A B`: two results folders, cell by cell.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::ValueEnum;

use super::report::{parse_axis, parse_metric};
use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::diff::{Diff, Options, machine, markdown, text};
use crate::report::axis::Axis;
use crate::report::metric::Metric;

const EXAMPLES: &str = "\
Examples:
  crypt-bench compare reports/before reports/after
      throughput, median and p99 latency of every cell, and what the runs differ in beside
  crypt-bench compare ssd nvme --across device --format markdown
      the same workloads on two devices, for a pull request

Changes are shown only where chance does not explain them, which takes at least 5 repeats. A change between two runs is one
of the machine as well as of the program, unless they took turns.";

/// Compare two results folders, cell by cell, with the noise of their repeats.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Results to compare with, as `matrix` and `simulate` wrote them
    #[arg(value_name = "A")]
    baseline: PathBuf,

    /// Results that are compared
    #[arg(value_name = "B")]
    candidate: PathBuf,

    /// What to compare: bw_bytes_per_s, iops, lat_ns_mean, lat_ns_p50, lat_ns_p99, lat_ns_p99_9
    #[arg(
        long, value_delimiter = ',', value_name = "METRIC,..", value_parser = parse_metric,
        default_value = "bw_bytes_per_s,lat_ns_p50,lat_ns_p99"
    )]
    metric: Vec<Metric>,

    /// Compare cells that differ in this parameter: device, policy, cipher, ...
    #[arg(long, value_name = "AXIS", value_parser = parse_axis)]
    across: Option<Axis>,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Where to write, - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// What a comparison is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for a terminal
    Text,
    /// For a pull request or a step summary
    Markdown,
    /// One document for programs
    Json,
    /// One line per figure for spreadsheets
    Csv,
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results, cells that can't be told apart, and a file that can't be written.
pub fn run(args: &Args) -> Outcome {
    let runs = report::read_runs(&[args.baseline.clone(), args.candidate.clone()])?;
    let [first, second] = runs.as_slice() else {
        return Err(Failure::internal("two folders are no two runs"));
    };
    let options = Options {
        metrics: args.metric.clone(),
        across: args.across,
        labels: ["A", "B"],
    };
    let diff = Diff::of([first, second], &options).map_err(Failure::Usage)?;
    let document = match args.format {
        Format::Text => text::text(&diff),
        Format::Markdown => markdown::document(&diff),
        Format::Json => machine::json(&diff),
        Format::Csv => machine::csv(&diff),
    };
    output::deliver(output::named(&args.output), &document)
}
