//! `crypt-bench history`: runs over time, and where their figures changed.

#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::report::parse_metric;
use crate::cli::{Failure, Outcome};
use crate::cmd::{output, report};
use crate::history::{self, Entry, page, text, whole_len};
use crate::input;
use crate::progress::say;
use crate::report::metric::Metric;

const EXAMPLES: &str = "\
Examples:
  crypt-bench history add reports/run
      a line for the run in reports/history.jsonl; the run itself may go
  crypt-bench history show
      every change of level, and since which revision
  crypt-bench history page -o trend.html --metric bw_bytes_per_s,lat_ns_p99";

/// Keep the figures of runs over time, and say where they changed their level.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// Where the history is.
#[derive(Debug, clap::Args)]
struct Place {
    /// The history, which only grows
    #[arg(long, value_name = "FILE", default_value = "reports/history.jsonl")]
    file: PathBuf,
}

/// What of it is looked at.
#[derive(Debug, clap::Args)]
struct Looked {
    #[command(flatten)]
    place: Place,

    /// bw_bytes_per_s, iops, lat_ns_mean, lat_ns_p50, lat_ns_p99, lat_ns_p99_9
    #[arg(
        long, value_delimiter = ',', value_name = "METRIC,..", value_parser = parse_metric,
        default_value = "bw_bytes_per_s,lat_ns_p99"
    )]
    metric: Vec<Metric>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a line for each of these runs
    Add {
        /// Folders with results.jsonl and manifest.json
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,

        #[command(flatten)]
        place: Place,
    },
    /// Say where figures changed their level
    Show {
        #[command(flatten)]
        looked: Looked,
    },
    /// Draw every figure over time, as one page
    Page {
        #[command(flatten)]
        looked: Looked,

        /// Where to write, - for standard output
        #[arg(short, long, value_name = "FILE", default_value = "reports/trend.html")]
        output: PathBuf,
    },
}

/// Runs the subcommand.
///
/// # Errors
/// Folders without results, a run that is in the history already, and files that can't be read or written.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Add { dirs, place } => add(dirs, &place.file),
        Command::Show { looked } => {
            let entries = read(&looked.place.file)?;
            let series = history::series(&entries, &looked.metric);
            output::write_stdout(&text::text(&entries, &series))
        }
        Command::Page { looked, output } => {
            let entries = read(&looked.place.file)?;
            let series = history::series(&entries, &looked.metric);
            output::deliver(output::named(output), &page::page(&entries, &series))
        }
    }
}

fn add(dirs: &[PathBuf], file: &Path) -> Outcome {
    let runs = report::read_runs(dirs)?;
    let known = if file.exists() {
        read(file)?
    } else {
        Vec::new()
    };
    let mut added: Vec<Entry> = Vec::with_capacity(runs.len());
    for run in &runs {
        let entry = Entry::of(run).map_err(|why| Failure::usage(format!("{}: {why}", run.name)))?;
        if known
            .iter()
            .chain(&added)
            .any(|other| other.is_same_run(&entry))
        {
            return Err(Failure::usage(format!(
                "{}: {} has this run already",
                file.display(),
                run.name
            )));
        }
        added.push(entry);
    }
    let lines: String = added.iter().map(|entry| entry.to_line() + "\n").collect();
    append(file, &lines).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    say(format_args!(
        "{} runs in {}",
        known.len() + added.len(),
        file.display()
    ));
    Ok(())
}

/// Adds whole lines; what a crash left of a line goes first.
fn append(file: &Path, lines: &str) -> io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
        fs::create_dir_all(folder)?;
    }
    let mut history = OpenOptions::new().create(true).append(true).open(file)?;
    history.lock()?;
    let text = fs::read_to_string(file)?;
    history.set_len(whole_len(&text) as u64)?;
    history.write_all(lines.as_bytes())?;
    history.sync_all()
}

fn read(file: &Path) -> Outcome<Vec<Entry>> {
    let text = input::text(file, input::MOST_RESULT_BYTES).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}; `crypt-bench history add DIR` begins one",
            file.display()
        ))
    })?;
    history::parse(&text)
        .map_err(|(line, why)| Failure::usage(format!("{}:{line}: {why}", file.display())))
}
