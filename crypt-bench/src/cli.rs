//! The command line: one subcommand per file in `cmd`, and what its end means for the exit status.
//!
//! stdout carries results only; errors and progress go to stderr. Exit status: 0 done, 1 internal
//! failure, 2 usage or bad input (nothing was written), 10 a bar is missed, 10 to 14 the verdict of a gate, 130
//! interrupted by the user.

#![forbid(unsafe_code)]

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cmd;
use crate::input::printable_lines;
use crate::progress::say;

/// Measures block encryption: inline, on workers, or placed by an adaptive policy.
#[derive(Debug, Parser)]
#[command(name = "crypt-bench", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Matrix(Box<cmd::matrix::Args>),
    Report(cmd::report::Args),
    Cipher(cmd::cipher::Args),
    Explain(cmd::explain::Args),
    Export(cmd::export::Args),
    Import(cmd::import::Args),
    Run(cmd::run::Args),
    Simulate(Box<cmd::simulate::Args>),
    Calibrate(cmd::calibrate::Args),
    Score(cmd::score::Args),
    Compare(cmd::compare::Args),
    Gate(Box<cmd::gate::Args>),
    Merge(cmd::merge::Args),
    Published(cmd::published::Args),
    Noise(Box<cmd::noise::Args>),
    Doctor(cmd::doctor::Args),
    Baseline(cmd::baseline::Args),
    History(cmd::history::Args),
}

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The user asked for something that can't be done; nothing was written. Exit status 2.
    Usage(String),
    /// Something failed on the way. Exit status 1.
    Internal(String),
    /// Everything was done, and the results miss a bar that was to be checked. Exit status 10.
    Missed(String),
    /// Everything was done, and what was found is no pass.
    Verdict {
        /// Exit status, from 10 on.
        status: u8,
        /// What was found.
        message: String,
    },
    /// The user stopped it; the message says how to go on. Exit status 130.
    Interrupted(String),
}

impl Failure {
    /// Bad input: `message` says what, where, and what to write instead.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// A failure that is not the user's doing.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    fn exit_status(&self) -> u8 {
        match self {
            Self::Internal(_) => 1,
            Self::Usage(_) => 2,
            Self::Missed(_) => 10,
            Self::Verdict { status, .. } => *status,
            Self::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Internal(message)
            | Self::Missed(message)
            | Self::Verdict { message, .. }
            | Self::Interrupted(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Parses the command line, runs the subcommand, and gives the exit status of the process.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Matrix(args) => cmd::matrix::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Cipher(args) => cmd::cipher::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Import(args) => cmd::import::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Simulate(args) => cmd::simulate::run(&args),
        Command::Calibrate(args) => cmd::calibrate::run(&args),
        Command::Score(args) => cmd::score::run(&args),
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Gate(args) => cmd::gate::run(&args),
        Command::Merge(args) => cmd::merge::run(&args),
        Command::Published(args) => cmd::published::run(&args),
        Command::Noise(args) => cmd::noise::run(&args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Baseline(args) => cmd::baseline::run(&args),
        Command::History(args) => cmd::history::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let message = printable_lines(&failure.to_string());
            say(format_args!("crypt-bench: {message}"));
            ExitCode::from(failure.exit_status())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
