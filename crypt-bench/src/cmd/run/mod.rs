//! `crypt-bench run`: runs fio job files and reports on them as fio does.

#![forbid(unsafe_code)]

mod compared;
mod content;
mod doubts;
mod goals;
#[cfg(test)]
mod invariants;
mod json;
mod keys;
mod logs;
mod memory;
mod outcome;
mod publish;
mod setup;
mod supported;
mod text;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{interrupt, surroundings};
use crate::cli::{Failure, Outcome};
use crate::jobfile::place::Plan;
use crate::play::Played;
use crate::target::Permissions;
use logs::LogFiles;
use publish::{Format, Publisher};
use setup::Setup;
pub use setup::script;

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  crypt-bench run job.fio
  crypt-bench run prepare.fio measure.fio --output-format json > result.json
  crypt-bench run job.fio --create                         files that don't exist are made, and stay
  crypt-bench run job.fio --destroy-data-on /mnt/disk.img  jobs may write to this existing file

`crypt-bench explain job.fio` says beforehand what a run would do.
ioengine: null transfers nothing; sync, psync, vsync, pvsync and pvsync2 are plain system calls, one at a
time; libaio, posixaio and io_uring are io_uring.
crypt_cipher=aes-xts-plain64 puts encryption between a job and its file; crypt_policy places it.";

/// Run fio job files
///
/// Jobs run as fio runs them: all at once between stonewalls, files one after the other. What is not
/// supported is refused before anything is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Job files; `-` is standard input
    #[arg(value_name = "FILE.fio", required = true)]
    files: Vec<String>,

    /// Run only this section; may be given several times. [global] always counts
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,

    /// Only check the files and say nothing
    #[arg(long)]
    parse_only: bool,

    /// Refuse jobs that write
    #[arg(long)]
    readonly: bool,

    /// How results are printed; several are separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "normal",
        value_name = "FORMAT"
    )]
    output_format: Vec<Format>,

    /// Write results to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Also print the figures so far, every so many seconds (500ms, 1m), as one line of JSON. With a JSON
    /// format the lines go where results go, which end as one line too; else to standard error
    #[arg(long, value_name = "SECONDS", value_parser = publish::interval)]
    status_interval: Option<Duration>,

    /// Allow jobs that write to destroy the data on this existing file or block device. A device is
    /// named by its identity, which the refusal without this flag tells
    #[arg(long, value_name = "IDENTITY", help_heading = "Data")]
    destroy_data_on: Vec<String>,

    /// Create files that don't exist; they are filled, and stay
    #[arg(long, help_heading = "Data")]
    create: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// What a job file gets wrong (nothing was touched then), a failure while running, or an interruption.
pub fn run(args: &Args) -> Outcome {
    let jobs = surroundings::load(&args.files, &args.section, args.readonly)?;
    supported::check(&jobs).map_err(surroundings::refused)?;
    if args.parse_only {
        return Ok(());
    }
    let plan = surroundings::plan(jobs)?;
    surroundings::keep_apart(args.output.as_deref(), &args.files, &plan)?;
    let logs = LogFiles::prepare(&plan, &args.files, args.output.as_deref())?;
    let permissions = Permissions {
        destroy_data_on: args.destroy_data_on.clone(),
        create: args.create,
        created: Vec::new(),
    };
    let mut publisher = Publisher::open(
        &args.output_format,
        args.output.as_deref(),
        args.status_interval,
    )?;
    let stop = interrupt::flag()?;
    let mut setup = Setup::prepare(&plan, &permissions, &stop)?;
    let mut played = Vec::with_capacity(plan.copies.len());
    for stage in 0..plan.stages() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let players = setup.players(&plan, stage, &stop)?;
        let more = publisher.play(&plan, players, &played, &stop)?;
        played.extend(more);
    }
    publisher.finish(&plan, &played)?;
    logs.write(&played)?;
    conclude(&plan, &played, stop.load(Ordering::Relaxed))
}

/// How the end is told: what is on stderr, and the exit status.
fn conclude(plan: &Plan, played: &[Played], stopped: bool) -> Outcome {
    if stopped {
        let message = "stopped; the figures are of what was done until then";
        return Err(Failure::Interrupted(message.to_owned()));
    }
    let threads = plan.copies.iter().zip(played);
    let failed = threads
        .filter(|(_, played)| played.failed)
        .find_map(|(copy, played)| Some((copy, played.first_error.as_ref()?)));
    let Some((copy, (request, errno))) = failed else {
        return compared::conclude(plan, played);
    };
    let name = plan.jobs.get(copy.job).map_or("", |job| &job.name);
    Err(Failure::Internal(format!(
        "job {name}, thread {}: {:?} of {} bytes at sector {} failed: {errno}",
        copy.number, request.op, request.len, request.sector
    )))
}
