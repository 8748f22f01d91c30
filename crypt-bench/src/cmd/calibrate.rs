//! `crypt-bench calibrate`: this machine as a file for `simulate`.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::calibrate;
use crate::cli::{Failure, Outcome};
use crate::cmd::output;

/// Measure this machine into a description that `simulate --machine` takes.
///
/// Some seconds of ciphers, copies and hand-offs; leave the machine alone meanwhile. What is not measured is
/// the number of cores that a bigger machine of the kind has: edit the file for that.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to write, - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// Where the machine can't be measured, or the file can't be written.
pub fn run(args: &Args) -> Outcome {
    let machine = calibrate::measure().map_err(Failure::Internal)?;
    let path = Some(args.output.as_path()).filter(|path| path.as_os_str() != "-");
    output::deliver(path, &machine.to_toml())
}
