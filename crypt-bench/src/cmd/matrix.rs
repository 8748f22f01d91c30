//! `crypt-bench matrix`: runs a matrix of cells under several policies and reports on it.

#![forbid(unsafe_code)]

use crate::cli::{Failure, Outcome};

/// Measure a matrix of workloads under several dispatch policies.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the subcommand.
///
/// # Errors
/// Bad input, or a failure while measuring.
pub fn run(_args: &Args) -> Outcome {
    Err(Failure::internal("matrix is not here yet"))
}
