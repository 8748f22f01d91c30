//! `crypt-bench merge DIR... --out DIR`: several results folders as one.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::matrix::{disk, folder_name};
use crate::cli::{Failure, Outcome};
use crate::cmd::report;
use crate::host;
use crate::journal::Journal;
use crate::merge;
use crate::progress::say;
use crate::report::{Report, Run, html};

const EXAMPLES: &str = "\
Examples:
  crypt-bench matrix --matrix policy --shard 1/2 --out one
  crypt-bench matrix --matrix policy --shard 2/2 --out two
  crypt-bench merge one two --out policy
      a matrix in two parts, wherever and whenever each was measured - on hosts that are alike";

/// Join results folders into a new one: shards of a matrix, or further repeats of the same cells.
///
/// Records stay as they are, their histograms included; only repeats are numbered anew.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders with results.jsonl and manifest.json
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// New or empty folder for all of them
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Join results of different machines, mechanisms and programs too: what they differ in is lost
    #[arg(long)]
    mixed: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results, results that don't belong together, and a folder that can't be written.
pub fn run(args: &Args) -> Outcome {
    let runs = report::read_runs(&args.dirs)?;
    let mut joined =
        merge::join(&runs, &folder_name(&args.out), args.mixed).map_err(Failure::Usage)?;
    joined.manifest.command_line = host::command_line();
    let journal = store(&args.out, &mut joined)?;
    let page = html::page(&Report::new(std::slice::from_ref(&joined)));
    journal.write_rendering(report::PAGE, &page).map_err(disk)?;
    say(format_args!(
        "{} records in {}",
        joined.records.len(),
        args.out.display()
    ));
    Ok(())
}

/// Writes a run into a new folder.
///
/// # Errors
/// A folder that has something in it, or can't be written.
pub(super) fn store(folder: &Path, run: &mut Run) -> Outcome<Journal> {
    let mut journal = Journal::create(folder, &run.manifest)
        .map_err(|error| Failure::Usage(format!("--out {}: {error}", folder.display())))?;
    journal.fill(&mut run.records).map_err(disk)?;
    Ok(journal)
}
