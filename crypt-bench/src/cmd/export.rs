//! `crypt-bench export DIR`: the results of a matrix for tools that read fio's JSON.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::output;
use super::report::read_runs;
use crate::cli::{Failure, Outcome};
use crate::fio::{cell, write};
use crate::journal::replace;
use crate::progress::say;
use crate::report::axis::Axis;
use crate::report::cells::{CellSummary, summarise};
use crate::result::ResultRecord;

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  crypt-bench export reports/run > all.json                   one document, a job for each cell
  crypt-bench export reports/run --format fio-json+ --output plots
  fio-plot -i plots/4k -T run -r randread -l -d 1 4 32 -n 1   where policy and device do not vary

Repeats of a cell are taken together; cells without a valid repeat are left out. Into a folder each cell
goes as BS/RW-DEPTH-JOBS.json, as fio-plot reads it, below a folder AXIS=VALUE for everything else that varies.";

/// What results are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// fio's JSON, version 3
    FioJson,
    /// The same with the counts of fio's buckets
    #[value(name = "fio-json+")]
    FioJsonPlus,
}

/// Write the results of a matrix as fio's JSON
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder with results.jsonl and manifest.json
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::FioJson)]
    pub format: Format,

    /// A file that ends in .json, for one document, or a new or empty folder, for one file per cell
    /// [default: standard output]
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without results, nothing valid in it, and what can't be written.
pub fn run(args: &Args) -> Outcome {
    let runs = read_runs(std::slice::from_ref(&args.dir))?;
    let cells = summarise(&runs);
    let bins = args.format == Format::FioJsonPlus;
    let mut jobs: Vec<(PathBuf, Value)> = Vec::new();
    for summary in &cells {
        let valid: Vec<&ResultRecord> = summary
            .records
            .iter()
            .copied()
            .filter(|record| record.is_valid())
            .collect();
        if !valid.is_empty() {
            let job = cell::job(summary.params, &valid, bins).map_err(Failure::Internal)?;
            jobs.push((place(summary, &cells), job));
        }
    }
    if jobs.is_empty() {
        let message = format!("{}: no cell has a valid repeat", args.dir.display());
        return Err(Failure::usage(message));
    }
    if jobs.len() < cells.len() {
        let left = cells.len() - jobs.len();
        say(format_args!(
            "left out: {left} of {} cells, without a valid repeat",
            cells.len()
        ));
    }
    match &args.output {
        Some(folder) if folder.extension().is_none_or(|end| end != "json") => {
            write_folder(folder, &jobs)
        }
        file => {
            let jobs: Vec<Value> = jobs.into_iter().map(|(_, job)| job).collect();
            output::deliver(file.as_deref(), &document(&jobs))
        }
    }
}

fn document(jobs: &[Value]) -> String {
    let document = write::document(jobs, &jiff::ZonedDateTime::now(), None);
    format!("{document:#}\n")
}

/// Where a cell goes below the folder: what fio-plot keeps apart by itself is in the name of the file.
fn place(summary: &CellSummary<'_>, cells: &[CellSummary<'_>]) -> PathBuf {
    const NAMED: [Axis; 4] = [Axis::Rw, Axis::BlockSize, Axis::Depth, Axis::Jobs];
    let mut path = PathBuf::new();
    for axis in Axis::ALL.into_iter().filter(|axis| !NAMED.contains(axis)) {
        let value = axis.text(summary.params);
        if cells.iter().any(|other| axis.text(other.params) != value) {
            path.push(safe(&format!("{}={value}", axis.name())));
        }
    }
    path.push(safe(&Axis::BlockSize.text(summary.params)));
    path.join(format!("{}.json", cell::name(summary.params)))
}

/// A text as the name of a file.
fn safe(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "=.,+-_:".contains(c);
    text.chars()
        .map(|c| if keep(c) { c } else { '_' })
        .collect()
}

fn write_folder(folder: &Path, jobs: &[(PathBuf, Value)]) -> Outcome {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::usage(format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    if entries.next().is_some() {
        let message = format!(
            "{}: has files in it already; name a new folder",
            folder.display()
        );
        return Err(Failure::usage(message));
    }
    for (place, job) in jobs {
        let path = folder.join(place);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| replace(&path, document(std::slice::from_ref(job)).as_bytes()))
            .map_err(|error| failed(&path, &error))?;
    }
    say(format_args!(
        "wrote {} files below {}",
        jobs.len(),
        folder.display()
    ));
    Ok(())
}
