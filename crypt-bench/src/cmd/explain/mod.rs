//! `crypt-bench explain`: what job files ask for, and where each value came from. Touches nothing.

#![forbid(unsafe_code)]

mod catalog;
mod text;

use std::path::PathBuf;

use super::{output, surroundings};
use crate::cli::Outcome;
pub use text::text;

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  crypt-bench explain job.fio
  crypt-bench explain job.fio --section heavy --readonly
  SIZE=1g crypt-bench explain job.fio       ${SIZE} in the file is 1g
  crypt-bench explain --options             every option that is understood

The dialect is fio's. What it does not support is refused with its line, never ignored.";

/// Show what fio job files ask for: values and where they come from, byte ranges, files
///
/// Nothing is measured, opened for writing or created.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Job files; `-` is standard input
    #[arg(value_name = "FILE.fio", required_unless_present = "options")]
    files: Vec<String>,

    /// Take only this section; may be given several times. [global] always counts
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,

    /// Only check the files and say nothing
    #[arg(long)]
    parse_only: bool,

    /// Refuse jobs that write
    #[arg(long)]
    readonly: bool,

    /// List the options of job files instead
    #[arg(long, conflicts_with_all = ["files", "section", "parse_only", "readonly"])]
    options: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
/// What a job file gets wrong, with its line.
pub fn run(args: &Args) -> Outcome {
    if args.options {
        return output::deliver(args.output.as_deref(), &catalog::text());
    }
    let jobs = surroundings::load(&args.files, &args.section, args.readonly)?;
    if args.parse_only {
        return Ok(());
    }
    let plan = surroundings::plan(jobs)?;
    surroundings::keep_apart(args.output.as_deref(), &args.files, &plan)?;
    output::deliver(args.output.as_deref(), &text(&plan))
}
