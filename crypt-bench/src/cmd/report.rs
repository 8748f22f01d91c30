//! `crypt-bench report DIR`: renders the report again from the results in a folder, and nothing else.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::cli::{Failure, Outcome};

/// Render the report of a results folder again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with results.jsonl and manifest.json, as `matrix` wrote it.
    pub dir: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without results.
pub fn run(_args: &Args) -> Outcome {
    Err(Failure::internal("report is not here yet"))
}
