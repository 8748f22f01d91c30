//! What a run is going to do, checked as a whole before anything is written.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Args, disk, now};
use crate::cell;
use crate::cli::{Failure, Outcome};
use crate::definition::Definition;
use crate::definition::quantity::Size;
use crate::host;
use crate::journal::{self, Journal};
use crate::manifest::{Environment, Manifest, State, Storage, Tool};
use crate::matrix::{Facts, Matrix};
use crate::progress::say;
use crate::result::{CellParams, ResultRecord, SCHEMA_VERSION};
use crate::storage;
use crate::target::{self, Permissions, Targets};

/// What is to be done, checked; nothing was written yet.
pub(super) struct Plan {
    pub(super) matrix: Matrix,
    definition: Definition,
    tool: Tool,
    environment: Environment,
    permissions: Permissions,
    preset: Option<String>,
    resumed: Option<Manifest>,
}

impl Plan {
    pub(super) fn prepare(args: &Args) -> Outcome<Self> {
        let resumed =
            match (&args.out, args.resume) {
                (Some(out), true) => Some(journal::read_manifest(out).map_err(|error| {
                    Failure::Usage(format!("{error}; there is nothing to resume"))
                })?),
                _ => None,
            };
        let definition = args.definition(resumed.as_ref())?;
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
            threads_per_core: None,
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
            preset: args.preset.clone(),
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
    pub(super) fn begin(
        &self,
        args: &Args,
        stop: &AtomicBool,
    ) -> Outcome<(Journal, Vec<ResultRecord>, Manifest, Targets)> {
        let out = args.folder();
        // The folder first: it costs nothing, and a run whose results can't be kept need not start.
        if let Some(manifest) = &self.resumed {
            let (journal, records) = Journal::resume(&out, &manifest.plan)
                .map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))?;
            let targets = self.targets(stop)?;
            return Ok((journal, records, manifest.clone(), targets));
        }
        let mut manifest = self.manifest();
        let journal = Journal::create(&out, &manifest)
            .map_err(|error| Failure::Usage(format!("--out {}: {error}", out.display())))?;
        let targets = self.targets(stop).inspect_err(|_| journal.abandon())?;
        manifest.created_files = targets.created().to_vec();
        manifest.environment.storage = self.storage(&targets);
        journal.write_manifest(&manifest).map_err(disk)?;
        Ok((journal, Vec::new(), manifest, targets))
    }

    fn targets(&self, stop: &AtomicBool) -> Outcome<Targets> {
        let targets = Targets::prepare(&self.matrix.cells, &self.permissions, stop, |what| {
            say(what);
        });
        targets.map_err(|error| match stop.load(Ordering::Relaxed) {
            true => Failure::Interrupted("stopped before a run began".to_owned()),
            false => Failure::Usage(error),
        })
    }

    /// Where each file device lives.
    fn storage(&self, targets: &Targets) -> Vec<Storage> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.matrix.cells {
            if !names.contains(&cell.device.as_str()) {
                names.push(&cell.device);
            }
        }
        let describe = |name: &str| Some(storage::describe(name, &targets.path(name)?));
        names.into_iter().filter_map(describe).collect()
    }

    fn manifest(&self) -> Manifest {
        Manifest {
            preset: self.preset.clone(),
            ..started(
                &self.matrix,
                &self.definition,
                self.tool.clone(),
                self.environment.clone(),
            )
        }
    }
}

/// The manifest of a matrix that starts now.
pub(in crate::cmd) fn started(
    matrix: &Matrix,
    definition: &Definition,
    tool: Tool,
    environment: Environment,
) -> Manifest {
    let plan = matrix.plan();
    Manifest {
        schema_version: SCHEMA_VERSION,
        plan_hash: cell::plan_hash(&plan, matrix.repeats, &tool, &environment),
        tool,
        environment,
        created_files: Vec::new(),
        command_line: host::command_line(),
        definition_toml: definition.to_toml(),
        preset: None,
        started: now(),
        finished: None,
        state: State::Running,
        plan,
        repeats: matrix.repeats,
    }
}

/// Slots and devices in memory must fit, before anything starts.
fn check_memory(cells: &[CellParams], limit: Option<Size>) -> Outcome {
    let default_bytes = host::available_memory_bytes().map_or(u64::MAX, |bytes| bytes / 4 * 3);
    let limit_bytes = limit.map_or(default_bytes, |limit| limit.0);
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
