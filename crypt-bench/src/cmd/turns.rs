//! Two programs measure the same matrix in turns, for a gate and for noise.
//!
//! A block is the whole matrix once under each program, in a process of its own; which of them goes first changes from
//! block to block (A B B A). So what changes with time, or with the place in a block, is on neither side alone.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{interrupt, matrix, merge as store, report};
use crate::cli::{Failure, Outcome};
use crate::definition::Definition;
use crate::host;
use crate::matrix::{Facts, Matrix};
use crate::merge;
use crate::progress::say;
use crate::report::Run;
use crate::statistics::power::least_repeats;
use crate::target;

/// Folders of the two sides in the results.
const SIDES: [&str; 2] = ["baseline", "candidate"];

/// What is measured, and how often.
#[derive(Debug, clap::Args)]
pub(super) struct Measured {
    /// Blocks, that is repeats of each cell on each side [default: as many as the number of cells and metrics needs,
    /// from 12 for one to 22 for a thousand]
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,

    /// New or empty folder for the results of both sides, in baseline/ and candidate/ [default: reports/TIME-HOST-turns]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Options for matrix on both sides, after --: -- --destroy-data-on ID
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// What came out of it.
pub(super) struct Turns {
    /// Both sides, the baseline first.
    pub(super) runs: [Run; 2],
    /// What went wrong, where not all was measured.
    pub(super) failure: Option<String>,
}

/// Measures with both programs. `metrics` is how many are going to be judged; `before` runs when all is checked, and before
/// anything is written.
///
/// # Errors
/// Bad input (nothing was measured), a folder that can't be written, an interruption, and a side without a single block.
pub(super) fn measure(
    programs: [&Path; 2],
    file: &Path,
    measured: &Measured,
    metrics: usize,
    before: impl FnOnce() -> Outcome,
) -> Outcome<Turns> {
    let fallback = Definition::fallback().map_err(Failure::Internal)?;
    // With all that is not said in it, which the two programs might take differently.
    let definition = Definition::load(file)
        .map_err(Failure::Usage)?
        .over(fallback);
    let repeats = repeats(measured, &definition, metrics)?;
    programs.into_iter().try_for_each(check_program)?;
    let out = measured.out.clone().unwrap_or_else(|| {
        let mut folder = matrix::default_folder().into_os_string();
        folder.push("-turns");
        folder.into()
    });
    check_folder(&out)?;
    before()?;
    let stop = interrupt::flag()?;
    let mut sides = Sides::prepare(programs, measured, &out, &definition)?;
    let failure = sides.measure(repeats, &stop)?;
    let runs = sides.joined(&out)?;
    say(format_args!("results: {}", out.display()));
    Ok(Turns { runs, failure })
}

/// As many as were asked for, or as the matrix needs.
fn repeats(measured: &Measured, definition: &Definition, metrics: usize) -> Outcome<u32> {
    let facts = Facts {
        cpus: &host::allowed_cpus(),
        size_bytes: &target::existing_size_bytes,
        threads_per_core: None,
    };
    let matrix = Matrix::new(definition, &facts).map_err(Failure::Usage)?;
    let tests = matrix.plan().len() * metrics;
    match measured.repeats {
        Some(0) => Err(Failure::usage("--repeats 0: at least 1")),
        Some(repeats) => Ok(repeats),
        None => Ok(u32::try_from(least_repeats(tests)).unwrap_or(u32::MAX)),
    }
}

fn check_program(path: &Path) -> Outcome {
    let found = fs::metadata(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    if found.is_file() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: not a program; name a crypt-bench that was built",
        path.display()
    )))
}

/// Refuses a folder with something in it.
fn check_folder(out: &Path) -> Outcome {
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Failure::usage(format!(
            "--out {}: has files in it already; name another folder",
            out.display()
        ))),
        _ => Ok(()),
    }
}

/// Both sides while they are measured.
struct Sides<'a> {
    programs: [&'a Path; 2],
    definition: PathBuf,
    options: &'a [String],
    /// Where each block's results are until all are there.
    blocks: PathBuf,
    runs: [Vec<Run>; 2],
}

impl<'a> Sides<'a> {
    fn prepare(
        programs: [&'a Path; 2],
        measured: &'a Measured,
        out: &Path,
        definition: &Definition,
    ) -> Outcome<Self> {
        let file = out.join("definition.toml");
        fs::create_dir_all(out)
            .and_then(|()| fs::write(&file, definition.to_toml()))
            .map_err(|error| Failure::usage(format!("--out {}: {error}", out.display())))?;
        Ok(Self {
            programs,
            definition: file,
            options: &measured.options,
            blocks: out.join("blocks"),
            runs: [Vec::new(), Vec::new()],
        })
    }

    /// Measures block after block; what went wrong where a program failed. What is whole is kept.
    fn measure(&mut self, blocks: u32, stop: &AtomicBool) -> Outcome<Option<String>> {
        let start = Instant::now();
        for block in 0..blocks {
            let order = if block % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                let measured = self.measure_one(side, block);
                if stop.load(Ordering::Relaxed) {
                    return Err(Failure::Interrupted(format!(
                        "stopped in block {} of {blocks}; nothing is judged of a part",
                        block + 1
                    )));
                }
                match measured? {
                    Ok(run) => self.runs[side].push(run),
                    Err(why) => {
                        return Ok(Some(format!("{}, block {}: {why}", SIDES[side], block + 1)));
                    }
                }
            }
            let done = block + 1;
            let left = start.elapsed() / done * (blocks - done);
            say(format_args!(
                "block {done} of {blocks}, about {} s left",
                left.as_secs()
            ));
        }
        Ok(None)
    }

    /// One pass of a program over the matrix, or how it failed.
    fn measure_one(&self, side: usize, block: u32) -> Outcome<Result<Run, String>> {
        let folder = self.blocks.join(format!("{block}-{}", SIDES[side]));
        let program = fs::canonicalize(self.programs[side])
            .unwrap_or_else(|_| self.programs[side].to_owned());
        let ended = Command::new(&program)
            .args(["matrix", "--repeats", "1", "--matrix"])
            .arg(&self.definition)
            .arg("--out")
            .arg(&folder)
            .args(self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Ok(Err(format!("{}: {error}", program.display()))),
        };
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let last = said
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or("")
                .to_owned();
            return Ok(Err(format!("{}: {}", ended.status, last)));
        }
        let run = report::read_run(&folder)?;
        fs::remove_dir_all(&folder).map_err(matrix::disk)?;
        Ok(Ok(run))
    }

    /// The blocks of each side as one run, stored.
    fn joined(self, out: &Path) -> Outcome<[Run; 2]> {
        // What is left of a block that failed tells nothing more.
        drop(fs::remove_dir_all(&self.blocks));
        let mut joined = Vec::with_capacity(2);
        for (runs, side) in self.runs.iter().zip(SIDES) {
            let mut run = merge::join(runs, side, false).map_err(|why| {
                Failure::internal(format!("{side}: no block was measured: {why}"))
            })?;
            store::store(&out.join(side), &mut run)?;
            joined.push(run);
        }
        let both: Result<[Run; 2], _> = joined.try_into();
        both.map_err(|_| Failure::internal("two sides are no two runs"))
    }
}
