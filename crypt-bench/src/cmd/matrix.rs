//! `crypt-bench matrix`: runs a matrix of cells under several policies and reports on it.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crypt_core::key::Key;

use crate::cell::{self, Setting};
use crate::cli::{Failure, Outcome};
use crate::cmd::report;
use crate::definition::Definition;
use crate::definition::quantity::Size;
use crate::host;
use crate::journal::{self, Journal};
use crate::manifest::{Environment, Manifest, State, Tool};
use crate::matrix::{Facts, Matrix};
use crate::report::{Report, Run, html, machine, terminal};
use crate::result::{CellParams, ResultRecord, SCHEMA_VERSION};
use crate::run::{End, Runner};
use crate::target::{self, Permissions, Targets};

/// What `--help` says after the options.
const EXAMPLES: &str = "\
Examples:
  crypt-bench matrix --policy adaptive
      adaptive against inline and workqueue, on memory, a modelled NVMe drive and a scratch file
  crypt-bench matrix --device file:disk.img --rw randread --bs 4k,64k --depth 1,32
      reads of an existing file or block device; it is opened read-only
  crypt-bench matrix --device file:new.img --create --size 4g --rw randwrite
      a new file, fully written before measuring; it stays
  crypt-bench matrix --matrix benches/policy.toml --repeats 10 --out results
      a definition from a file (or a preset's name: default, hand-off, policy, smoke)
  crypt-bench matrix --out results --resume
      go on with an interrupted run

Sizes count in 1024: 4k is 4096 bytes. Times have a unit: 200ms, 2s.";

/// Measure a matrix of workloads under several dispatch policies.
///
/// Every combination of the axes is a cell; each cell runs under every policy, interleaved. What is not
/// given comes from --matrix, and what that does not say from benches/default.toml. Results go to a
/// folder: results.jsonl, manifest.json, report.html.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    definition: Definition,

    /// Definition to start from: a TOML file, or the name of a preset
    #[arg(long, value_name = "FILE.toml")]
    matrix: Option<PathBuf>,

    /// Go through the page cache instead of --direct
    #[arg(long, conflicts_with = "direct")]
    buffered: bool,

    /// Folder for the results [default: reports/<time>-<host>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Go on with the interrupted run in --out
    #[arg(long, requires = "out")]
    resume: bool,

    /// Print one JSON document with all results instead of the summary
    #[arg(long)]
    json: bool,

    /// Allow cells that write to destroy the data on this existing file or block device. A device is
    /// named by its identity, which the refusal without this flag tells
    #[arg(long, value_name = "IDENTITY")]
    destroy_data_on: Vec<String>,

    /// Create files of --device file:PATH that don't exist; they stay
    #[arg(long)]
    create: bool,

    /// Raw volume key [default: a random one]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Most memory to use [default: three quarters of what is available]
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Size>,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad input (nothing was written then), a failure while measuring, or an interruption by the user.
pub fn run(args: &Args) -> Outcome {
    let stop = stop_on_signals()?;
    let plan = Plan::prepare(args)?;
    let key = key(args.key_file.as_deref(), &plan.matrix.cells)?;
    let (mut journal, mut records, mut manifest, mut targets) = plan.begin(args)?;
    let setting = Setting {
        tool: &manifest.tool.clone(),
        environment: &manifest.environment.clone(),
        key: &key,
        stop: &stop,
    };
    let mut runner = Runner {
        matrix: &plan.matrix,
        setting: &setting,
        targets: &mut targets,
        journal: &mut journal,
    };
    let end = runner.run(&mut records).map_err(Failure::Internal)?;
    manifest.state = match end {
        End::Complete => State::Complete,
        End::Stopped => State::Interrupted,
    };
    manifest.finished = (end == End::Complete).then(now);
    journal.write_manifest(&manifest).map_err(disk)?;
    let run = Run {
        name: folder_name(journal.folder()),
        manifest,
        records,
    };
    publish(&journal, std::slice::from_ref(&run), args.json)?;
    conclude(end, args, &journal, &run.records)
}

/// What is to be done, checked; nothing was written yet.
struct Plan {
    matrix: Matrix,
    definition: Definition,
    tool: Tool,
    environment: Environment,
    permissions: Permissions,
    resumed: Option<Manifest>,
}

impl Plan {
    fn prepare(args: &Args) -> Outcome<Self> {
        let resumed =
            match (&args.out, args.resume) {
                (Some(out), true) => Some(journal::read_manifest(out).map_err(|error| {
                    Failure::Usage(format!("{error}; there is nothing to resume"))
                })?),
                _ => None,
            };
        let definition = definition(args, resumed.as_ref())?;
        let permissions = Permissions {
            destroy_data_on: args.destroy_data_on.clone(),
            create: args.create,
            created: resumed
                .as_ref()
                .map(|manifest| manifest.created_files.clone())
                .unwrap_or_default(),
        };
        let facts = Facts {
            cpus: &host::allowed_cpus(),
            size_bytes: &target::existing_size_bytes,
        };
        let matrix = Matrix::new(&definition, &facts).map_err(Failure::Usage)?;
        target::check(&matrix.cells, &permissions).map_err(Failure::Usage)?;
        check_memory(&matrix.cells, args.memory_limit)?;
        let plan = Self {
            matrix,
            definition,
            tool: host::tool()
                .map_err(|error| Failure::internal(format!("own program: {error}")))?,
            environment: host::environment(),
            permissions,
            resumed,
        };
        plan.check_resumed()?;
        Ok(plan)
    }

    /// Refuses to go on with a run of something else.
    fn check_resumed(&self) -> Outcome {
        let Some(old) = &self.resumed else {
            return Ok(());
        };
        let what = if old.tool.binary_sha256 != self.tool.binary_sha256 {
            "another build of crypt-bench"
        } else if old.environment.host != self.environment.host {
            "another host"
        } else if old.plan_hash != self.plan_hash() {
            "another matrix"
        } else {
            return Ok(());
        };
        Err(Failure::Usage(format!(
            "--resume: the results in there are of {what}; start a new run in another --out"
        )))
    }

    fn plan_hash(&self) -> String {
        let matrix = &self.matrix;
        cell::plan_hash(
            &matrix.plan(),
            matrix.repeats,
            &self.tool,
            &self.environment,
        )
    }

    /// Makes the devices and the results folder.
    fn begin(&self, args: &Args) -> Outcome<(Journal, Vec<ResultRecord>, Manifest, Targets)> {
        let out = args.out.clone().unwrap_or_else(default_folder);
        // The folder first: it costs nothing, and a run whose results can't be kept need not start.
        if let Some(manifest) = &self.resumed {
            let (journal, records) = Journal::resume(&out, &manifest.plan)
                .map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))?;
            let targets = self.targets()?;
            return Ok((journal, records, manifest.clone(), targets));
        }
        let mut manifest = self.manifest();
        let journal = Journal::create(&out, &manifest)
            .map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))?;
        let targets = self.targets().inspect_err(|_| journal.abandon())?;
        manifest.created_files = targets.created().to_vec();
        journal.write_manifest(&manifest).map_err(disk)?;
        Ok((journal, Vec::new(), manifest, targets))
    }

    fn targets(&self) -> Outcome<Targets> {
        Targets::prepare(&self.matrix.cells, &self.permissions).map_err(Failure::Usage)
    }

    fn manifest(&self) -> Manifest {
        Manifest {
            schema_version: SCHEMA_VERSION,
            tool: self.tool.clone(),
            environment: self.environment.clone(),
            created_files: Vec::new(),
            command_line: host::command_line(),
            definition_toml: self.definition.to_toml(),
            started: now(),
            finished: None,
            state: State::Running,
            plan: self.matrix.plan(),
            repeats: self.matrix.repeats,
            plan_hash: self.plan_hash(),
        }
    }
}

/// Flags over file over default; a resumed run's own where neither flags nor file are given.
fn definition(args: &Args, resumed: Option<&Manifest>) -> Outcome<Definition> {
    let mut flags = args.definition.clone();
    if args.buffered {
        flags.direct = Some(false);
    }
    let base = match (&args.matrix, resumed) {
        (Some(file), _) => Definition::load(file).map_err(Failure::Usage)?,
        (None, Some(manifest)) => {
            Definition::parse(&manifest.definition_toml).map_err(Failure::Usage)?
        }
        (None, None) => Definition::default(),
    };
    let fallback = Definition::fallback().map_err(Failure::Internal)?;
    Ok(flags.over(base).over(fallback))
}

/// Slots and devices in memory must fit, before anything starts.
fn check_memory(cells: &[CellParams], limit: Option<Size>) -> Outcome {
    let limit_bytes = limit.map_or(host::available_memory_bytes() / 4 * 3, |limit| limit.0);
    for cell in cells {
        let jobs = u64::from(cell.jobs) * u64::from(cell.devices);
        let slot = cell.block_size_bytes.next_multiple_of(4096);
        let slots = jobs * u64::from(cell.depth);
        let queues = slots.saturating_mul(2 * slot);
        let devices = target::memory_bytes(cell);
        let needed = queues.saturating_add(devices);
        if needed > limit_bytes {
            return Err(Failure::Usage(format!(
                "a cell needs {needed} bytes of memory: {jobs} jobs x {} in flight x 2 x {slot} bytes \
                 (data and ciphertext) and {devices} bytes of devices, more than the limit of \
                 {limit_bytes} bytes; use a smaller depth, block or size, or raise --memory-limit",
                cell.depth
            )));
        }
    }
    Ok(())
}

/// A key that is long enough for every cell.
fn key(file: Option<&Path>, cells: &[CellParams]) -> Outcome<Key> {
    let bits = cells.iter().filter_map(|cell| cell.key_bits);
    let (shortest, longest) = (bits.clone().min().unwrap_or(0), bits.max().unwrap_or(0));
    let len = longest as usize / 8;
    let mut bytes = vec![0; len];
    let source = file.unwrap_or(Path::new("/dev/urandom"));
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", source.display()));
    let mut reader = File::open(source).map_err(failed)?;
    if file.is_some() {
        let len_found = reader.metadata().map_err(failed)?.len();
        if len_found != len as u64 || shortest != longest {
            return Err(Failure::Usage(format!(
                "{}: {len_found} bytes, but the matrix has keys of {shortest} to {longest} bits; give \
                 one --key-bits and a file of that length",
                source.display()
            )));
        }
    }
    reader.read_exact(&mut bytes).map_err(failed)?;
    Key::from_bytes(&bytes).map_err(|error| Failure::Internal(error.to_string()))
}

/// Writes the report of a run and prints its summary, or all of it as JSON.
fn publish(journal: &Journal, run: &[Run], json: bool) -> Outcome {
    let report = Report::new(run);
    journal
        .write_rendering(report::PAGE, &html::page(&report))
        .map_err(disk)?;
    let text = if json {
        machine::json(&report)
    } else {
        terminal::summary(&report, report::stdout_style())
    };
    report::write_stdout(&text)?;
    let page = journal.folder().join(report::PAGE);
    eprintln!("report: {}", page.display());
    Ok(())
}

fn folder_name(folder: &Path) -> String {
    let absolute = std::fs::canonicalize(folder);
    let name = absolute
        .as_deref()
        .unwrap_or(folder)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}

/// How the end is told: what is on stderr, and the exit status.
fn conclude(end: End, args: &Args, journal: &Journal, records: &[ResultRecord]) -> Outcome {
    let folder = journal.folder().display();
    if end == End::Stopped {
        let again: String = args
            .destroy_data_on
            .iter()
            .map(|name| format!(" --destroy-data-on {name}"))
            .collect();
        return Err(Failure::Interrupted(format!(
            "stopped; {} finished runs are kept in {folder}. Go on with: crypt-bench matrix --out \
             {folder} --resume{again}",
            records.len()
        )));
    }
    let failed = records.iter().filter(|record| record.achieved.errors > 0);
    match failed
        .clone()
        .find_map(|record| record.achieved.first_error.as_ref())
    {
        Some(first) => Err(Failure::Internal(format!(
            "requests failed in {} runs, which are invalid; the first: {first}",
            failed.count()
        ))),
        None => Ok(()),
    }
}

/// A flag that the first interrupt or termination signal sets; the second one ends the process.
fn stop_on_signals() -> Outcome<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the shutdown looks at the flag before the same signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::Internal(format!("signal handler: {error}")))?;
    }
    Ok(stop)
}

fn default_folder() -> PathBuf {
    let time = jiff::ZonedDateTime::now()
        .strftime("%Y%m%d-%H%M%S")
        .to_string();
    PathBuf::from("reports").join(format!("{time}-{}", host::hostname()))
}

fn now() -> String {
    let second = jiff::Unit::Second;
    let time = jiff::Timestamp::now();
    time.round(second).unwrap_or(time).to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn disk(error: std::io::Error) -> Failure {
    Failure::Internal(format!("write the results: {error}"))
}
