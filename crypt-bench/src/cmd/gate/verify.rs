//! `crypt-bench gate verify FILE`: the exit status of a gate again, from what it wrote.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::options::outcome;
use crate::cli::{Failure, Outcome};
use crate::cmd::output;
use crate::gate::{Artefact, text};
use crate::input;

/// Fail unless the verdict that a gate wrote says that all is well.
///
/// The verdict is believed only where the file is whole and unchanged, and its cells lead to it. One that is
/// inconclusive is no pass here.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What `gate --json FILE` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Let an inconclusive verdict pass
    #[arg(long)]
    allow_inconclusive: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A file that is no verdict, and every verdict that is no pass, with the exit status of the gate.
pub(super) fn run(args: &Args) -> Outcome {
    let refused = |why: String| Failure::usage(format!("{}: {why}", args.file.display()));
    let document = input::text(&args.file, input::MOST_RESULT_BYTES).map_err(refused)?;
    let artefact = Artefact::parse(&document).map_err(refused)?;
    output::write_stdout(&(text::headline(&artefact) + "\n"))?;
    outcome(artefact.verdict, !args.allow_inconclusive)
}
