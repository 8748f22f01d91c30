//! `crypt-bench simulate`: a matrix in virtual time, on a machine from a file.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::cell;
use crate::cli::{Failure, Outcome};
use crate::cmd::matrix::{self, Shown, publish};
use crate::cmd::{interrupt, output, report};
use crate::definition::Definition;
use crate::host;
use crate::journal::Journal;
use crate::manifest::{Manifest, State};
use crate::matrix::{Facts, Matrix};
use crate::preset::Preset;
use crate::progress::say;
use crate::report::Run;
use crate::result::{CellParams, ResultRecord};
use crate::simulate::{self, Machine, record};

/// Runs that are simulated before their records are written.
const BATCH: usize = 64;

const EXAMPLES: &str = "\
Examples:
  crypt-bench simulate --policy adaptive
      adaptive against inline and workqueue on this machine as a model, measured first
  crypt-bench simulate --machine server-64 --devices 24 --device model:nvme --depth 32
      24 drives on 64 cores
  crypt-bench simulate --preset dorminy-optane
      a published table of dm-crypt with and without workqueues, on the published hardware as a model
  crypt-bench calibrate -o here.toml && crypt-bench simulate --machine here.toml --out simulated
  crypt-bench report simulated
      results are those of `matrix`, marked as simulated";

/// Run a matrix in virtual time on a modelled machine.
///
/// The pipeline and the policies are the real ones; processors, ciphers and drives are models. Deterministic:
/// the same machine, matrix and seed give the same results.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    definition: Definition,

    /// The machine: a TOML file, or the name of one in benches/machines, as two-cores, server-64, server-256
    /// [default: that of --preset; else this one, calibrated now]
    #[arg(long, value_name = "FILE.toml", help_heading = "Axes")]
    machine: Option<PathBuf>,

    /// Simulate a published table on the machine that it was measured on, its figures beside the simulated ones;
    /// list says which there are. Axes given here pick its rows, as in `matrix`
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "matrix",
        help_heading = "Axes"
    )]
    preset: Option<String>,

    /// Definition to start from: a TOML file, or the name of a preset [default: simulate]
    #[arg(
        long,
        value_name = "FILE.toml",
        default_value = "simulate",
        hide_default_value = true,
        help_heading = "Axes"
    )]
    matrix: PathBuf,

    /// Folder for the results [default: reports/TIME-HOST]
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,

    #[command(flatten)]
    shown: Shown,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad input (nothing was written then), or an interruption by the user.
pub fn run(args: &Args) -> Outcome {
    if args.preset.as_deref() == Some(matrix::LIST) {
        return output::write_stdout(&matrix::presets()?);
    }
    let preset = args.preset()?;
    let definition = args.definition(preset.as_ref())?;
    let machine = args.machine(preset.as_ref())?;
    let matrix = plan(&definition, &machine)?;
    let mut manifest = Manifest {
        preset: args.preset.clone(),
        ..manifest(&definition, &matrix, &machine)?
    };
    // Not before what is read, where the first signal has to end a wait for a pipe.
    let stop = interrupt::flag()?;
    let out = args.out.clone().unwrap_or_else(matrix::default_folder);
    let mut journal = Journal::create(&out, &manifest)
        .map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))?;
    journal
        .write_rendering("machine.toml", &machine.to_toml())
        .map_err(matrix::disk)?;
    let records = simulate_all(&matrix, &machine, &manifest, &mut journal, &stop)?;
    let complete = records.len() as u64 == matrix.runs();
    manifest.state = if complete {
        State::Complete
    } else {
        State::Interrupted
    };
    manifest.finished = complete.then(matrix::now);
    journal.write_manifest(&manifest).map_err(matrix::disk)?;
    let run = Run {
        name: matrix::folder_name(journal.folder()),
        manifest,
        records,
    };
    publish(&journal, std::slice::from_ref(&run), args.shown)?;
    if complete {
        return Ok(());
    }
    Err(Failure::Interrupted(format!(
        "stopped; {} finished runs are in {}",
        run.records.len(),
        journal.folder().join(report::PAGE).display()
    )))
}

impl Args {
    fn preset(&self) -> Outcome<Option<Preset>> {
        let name = self.preset.as_deref();
        name.map(Preset::named).transpose().map_err(Failure::Usage)
    }

    fn definition(&self, preset: Option<&Preset>) -> Outcome<Definition> {
        let base = match preset {
            Some(preset) => preset.plan.simulation(),
            None => Definition::load(&self.matrix).map_err(Failure::Usage)?,
        };
        let fallback = Definition::fallback().map_err(Failure::Internal)?;
        Ok(self.definition.clone().over(base).over(fallback))
    }

    fn machine(&self, preset: Option<&Preset>) -> Outcome<Machine> {
        match (&self.machine, preset) {
            (Some(file), _) => Machine::load(file).map_err(Failure::Usage),
            (None, Some(preset)) => Machine::named(&preset.plan.machine).map_err(Failure::Internal),
            (None, None) => {
                say("calibrating this machine");
                crate::calibrate::measure().map_err(Failure::Internal)
            }
        }
    }
}

fn plan(definition: &Definition, machine: &Machine) -> Outcome<Matrix> {
    let cpus: Vec<u32> = (0..machine.cpus()).collect();
    let facts = Facts {
        cpus: &cpus,
        size_bytes: &|_| None,
        threads_per_core: Some(machine.cpu.threads_per_core),
    };
    let matrix = Matrix::new(definition, &facts).map_err(Failure::Usage)?;
    for cell in matrix.plan() {
        simulate::check(machine, &cell).map_err(Failure::Usage)?;
    }
    Ok(matrix)
}

fn manifest(definition: &Definition, matrix: &Matrix, machine: &Machine) -> Outcome<Manifest> {
    let tool = host::tool().map_err(|error| Failure::internal(format!("own program: {error}")))?;
    let environment = record::environment(machine);
    Ok(matrix::started(matrix, definition, tool, environment))
}

/// Every run, in the order of the plan; what was finished where `stop` became true.
fn simulate_all(
    matrix: &Matrix,
    machine: &Machine,
    manifest: &Manifest,
    journal: &mut Journal,
    stop: &AtomicBool,
) -> Outcome<Vec<ResultRecord>> {
    let runs = in_order(matrix);
    let mut records: Vec<ResultRecord> = Vec::with_capacity(runs.len());
    for batch in runs.chunks(BATCH) {
        let simulated: Result<Vec<_>, String> = batch
            .par_iter()
            .map(|(cell, repeat)| simulate_one(machine, manifest, cell, *repeat, stop))
            .collect();
        for mut record in simulated.map_err(Failure::Internal)?.into_iter().flatten() {
            record.sequence = records.len() as u64;
            journal.append(&mut record).map_err(matrix::disk)?;
            records.push(record);
        }
        say(format_args!(
            "{} of {} runs simulated",
            records.len(),
            runs.len()
        ));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(records)
}

fn simulate_one(
    machine: &Machine,
    manifest: &Manifest,
    cell: &CellParams,
    repeat: u32,
    stop: &AtomicBool,
) -> Result<Option<ResultRecord>, String> {
    let simulated = simulate::simulate(machine, cell, repeat, stop)?;
    Ok(simulated.map(|simulated| {
        let hash = cell::cell_hash(cell, &manifest.tool, &manifest.environment);
        record::record(cell, repeat, hash, &simulated)
    }))
}

/// Cells with their repeats, the policies of a cell next to each other, as `matrix` measures them.
fn in_order(matrix: &Matrix) -> Vec<(CellParams, u32)> {
    let mut runs = Vec::new();
    for variants in matrix.plan().chunks(matrix.policies.len().max(1)) {
        for repeat in 1..=matrix.repeats {
            runs.extend(variants.iter().map(|cell| (cell.clone(), repeat)));
        }
    }
    runs
}
