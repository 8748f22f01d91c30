//! `crypt-fuzz`: damages inputs for so many seconds and keeps, as short as it gets, what breaks something.
//!
//! Each target has an equal share of the time and a process of its own, which is started again after a finding.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use crypt_fuzz::inside::{self, Limits};
use crypt_fuzz::minimise::minimise;
use crypt_fuzz::targets::{TARGETS, Target};
use crypt_fuzz::watch::{self, Ended};

/// Most time that goes into making a finding shorter.
const SHORTEN: Duration = Duration::from_secs(20);

/// Damages inputs and watches what happens
///
/// Fails where an input makes a target panic, abort, overflow its stack, or use more time or memory than it may. Such
/// an input is kept, made as short as it gets.
#[derive(Parser)]
struct Args {
    /// Only these targets
    #[arg(long, value_name = "NAME", value_parser = TARGETS.iter().map(|target| target.name).collect::<Vec<_>>())]
    target: Vec<String>,

    /// How long, for all targets together
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,

    /// Which inputs: the same ones with the same seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Longest input
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10)]
    most_bytes: usize,

    /// Longest time for one input
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    most_ms: u64,

    /// Most memory, for the program and what it keeps of its inputs as well
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    most_mib: u64,

    /// Where an input that breaks something is written
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/artifacts"))]
    artifacts: PathBuf,

    /// Be the process that may die; the input at hand is in this file
    #[arg(long, hide = true, value_name = "FILE")]
    inside: Option<PathBuf>,

    /// Don't say which inputs are accepted
    #[arg(long, hide = true)]
    quiet: bool,

    /// Try these inputs on the target instead
    #[arg(value_name = "INPUT", requires = "target")]
    inputs: Vec<PathBuf>,
}

impl Args {
    fn limits(&self) -> Limits {
        Limits {
            most_ms: self.most_ms,
            most_mib: self.most_mib,
        }
    }

    fn targets(&self) -> Vec<&'static Target> {
        let wanted = |target: &&Target| {
            self.target.is_empty() || self.target.iter().any(|name| name == target.name)
        };
        TARGETS.iter().filter(wanted).collect()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.inside {
        Some(current) => inside(&args, current),
        None => outside(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("crypt-fuzz: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The process that may die.
fn inside(args: &Args, current: &Path) -> Result<(), String> {
    let guard = inside::Guard::start(args.limits(), current)?;
    for target in args.targets() {
        if args.inputs.is_empty() {
            let length = Duration::from_secs(args.seconds);
            inside::fuzz(target, &guard, length, args.seed, args.most_bytes)?;
        }
        for path in &args.inputs {
            let input = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let accepted = guard.check(target, &input)?;
            if !args.quiet {
                println!(
                    "{}: {}",
                    path.display(),
                    if accepted { "accepted" } else { "refused" }
                );
            }
        }
    }
    Ok(())
}

/// The process that watches it.
fn outside(args: &Args) -> Result<(), String> {
    let targets = args.targets();
    let share = (args.seconds / targets.len().max(1) as u64).max(1);
    let mut findings = 0;
    for target in targets {
        let ended = if args.inputs.is_empty() {
            let numbers = [
                ("--seconds", share),
                ("--seed", args.seed),
                ("--most-bytes", args.most_bytes as u64),
            ];
            let numbers = numbers.map(|(name, number)| format!("{name}={number}"));
            watch::run(target, args.limits(), &numbers)?
        } else {
            let paths: Vec<String> = args
                .inputs
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            watch::run(target, args.limits(), &paths)?
        };
        if let Ended::Broke { input, how, said } = ended {
            findings += 1;
            eprintln!("{}: {how}\n{said}", target.name);
            if args.inputs.is_empty() {
                keep(target, args, &input, &how)?;
            }
        }
    }
    match findings {
        0 => Ok(()),
        _ => Err(format!("{findings} targets broke")),
    }
}

/// Shortens an input that broke something, and writes it to a file.
fn keep(target: &Target, args: &Args, input: &[u8], how: &str) -> Result<(), String> {
    let until = Instant::now() + SHORTEN;
    let breaks = |shorter: &[u8]| matches!(watch::once(target, args.limits(), shorter), Ok(Ended::Broke { how: other, .. }) if other == how);
    let shortest = minimise(input, breaks, || Instant::now() < until);
    let path = args
        .artifacts
        .join(format!("{}-{}", target.name, watch::name_of(&shortest)));
    let written = fs::create_dir_all(&args.artifacts).and_then(|()| fs::write(&path, &shortest));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!(
        "kept {} of {} bytes; try again: crypt-fuzz --target {} {}",
        shortest.len(),
        input.len(),
        target.name,
        path.display()
    );
    Ok(())
}
