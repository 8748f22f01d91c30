//! One measurement: a cell under one policy, once, from open volumes to a result record.
//!
//! The volumes of all policies of a cell are opened together, on the same devices and with the same
//! key, so that the policies can run interleaved with nothing else between them.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crypt_core::Volume;
use crypt_core::cipher::{SectorCipher, Throttled};
use crypt_core::clock::Clock;
use crypt_core::exec::WorkerPool;
use crypt_core::key::Key;
use crypt_core::policy::PolicySpec;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::SectorSize;
use sha2::{Digest, Sha256};

use crate::account;
use crate::definition::quantity::Rate;
use crate::drive::{self, Job, JobOutcome, Measured, Schedule};
use crate::generate::{Blocks, Generator, Workload};
use crate::host::{self, Counters};
use crate::judge::{self, Evidence};
use crate::manifest::{Environment, Tool};
use crate::record::DirectionRecorder;
use crate::result::{
    Achieved, CellParams, DirectionStats, Placements, RAW_POLICY, ResultRecord, SCHEMA_VERSION,
};
use crate::target::Opened;

/// What every measurement of a run has in common.
#[derive(Debug)]
pub struct Setting<'a> {
    /// This program.
    pub tool: &'a Tool,
    /// This machine.
    pub environment: &'a Environment,
    /// The volume key; its length is the longest of the plan.
    pub key: &'a Key,
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
}

/// The volumes of one cell under one policy.
#[derive(Debug)]
pub struct PolicyVolumes {
    /// The cell with its policy.
    pub cell: CellParams,
    /// One per device of the cell.
    pub volumes: Vec<Volume>,
    /// Threads of the pool; 0 without one.
    workers: u32,
    /// What the workers got less of than asked for.
    worker_notes: Vec<String>,
}

impl PolicyVolumes {
    /// Opens the volumes of `cell` on `opened`, with the workers of `pool` if the policy
    /// needs some.
    ///
    /// # Errors
    /// Where key, cipher and device don't fit together; in words.
    pub fn open(
        cell: CellParams,
        opened: &Opened,
        pool: Option<&Arc<WorkerPool>>,
        key: &Key,
    ) -> Result<Self, String> {
        let cipher = cipher(&cell, key).map_err(|error| error.to_string())?;
        let policy = match cell.policy.as_str() {
            RAW_POLICY => PolicySpec::Inline,
            text => text
                .parse()
                .map_err(|error: crypt_core::Error| error.to_string())?,
        };
        let volumes = opened
            .places
            .iter()
            .map(|(device, offset_bytes)| {
                let mut builder = Volume::builder(Arc::clone(device))
                    .data_offset_bytes(*offset_bytes)
                    .size_bytes(cell.size_bytes)
                    .policy(policy);
                if let Some(cipher) = &cipher {
                    builder = builder.cipher(Arc::clone(cipher));
                }
                if let Some(pool) = pool {
                    builder = builder.workers(Arc::clone(pool));
                }
                builder.build()
            })
            .collect::<crypt_core::Result<_>>()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            cell,
            volumes,
            workers: pool.map_or(0, |pool| pool.load().workers),
            worker_notes: pool.map(|pool| pool.notes().to_vec()).unwrap_or_default(),
        })
    }

    /// Measures once. `None` where the user stopped it.
    ///
    /// # Errors
    /// Where a queue can't be opened or breaks; in words.
    pub fn measure(
        &self,
        repeat: u32,
        opened: &Opened,
        setting: &Setting<'_>,
    ) -> Result<Option<ResultRecord>, String> {
        let started_unix_ms = unix_ms();
        let schedule = Schedule {
            ramp: Duration::from_millis(self.cell.ramp_ms),
            runtime: Duration::from_millis(self.cell.runtime_ms),
            slice: self.cell.slice_us.map(Duration::from_micros),
        };
        let mut edges = Vec::with_capacity(2);
        let measured = drive::measure(self.jobs(repeat)?, schedule, setting.stop, || {
            edges.push((Counters::now(), storage_read_bytes()));
        })?;
        let (Some(measured), [before, after]) = (measured, &edges[..]) else {
            return Ok(None);
        };
        let totals = Totals::of(&measured);
        let achieved = self.achieved(&measured, &totals);
        let storage_read = before.1.zip(after.1).map(|(before, after)| after - before);
        let doubts = judge::judge(&Evidence {
            cell: &self.cell,
            achieved: &achieved,
            read: totals.read_stats.as_ref(),
            write: totals.write_stats.as_ref(),
            slice_ns: measured.window.slice_ns(),
            steal_percent: after.0.steal_percent_since(&before.0),
            storage: opened.evidence,
            storage_read_bytes: storage_read,
            cpus: setting.environment.cpus,
            governor: setting.environment.governor.as_deref(),
        });
        Ok(Some(ResultRecord {
            schema_version: SCHEMA_VERSION,
            cell_hash: cell_hash(&self.cell, setting.tool, setting.environment),
            cell: self.cell.clone(),
            repeat,
            sequence: 0,
            started_unix_ms,
            achieved,
            read: totals.read_stats,
            write: totals.write_stats,
            slice_ns: measured.window.slice_ns(),
            cpu: after.0.cpu_since(&before.0),
            doubts,
            mark: String::new(),
        }))
    }

    /// The jobs of every volume. The same repeat has the same requests under every policy.
    fn jobs(&self, repeat: u32) -> Result<Vec<Job>, String> {
        let cell = &self.cell;
        let workload = Workload {
            rw: cell.rw,
            rwmixread_percent: cell.rwmixread_percent,
            blocks: Blocks::of_cell(cell)?,
            size_bytes: cell.size_bytes,
        };
        let hipri = flag(cell.hipri, Flags::HIPRI);
        let seed = cell.seed.wrapping_add(u64::from(repeat) << 32);
        let total = cell.jobs * cell.devices;
        Ok((0..total)
            .map(|number| Job {
                volume: self.volumes[(number % cell.devices) as usize].clone(),
                generator: Generator::new(
                    &workload,
                    seed.wrapping_add(u64::from(number % cell.devices) << 48),
                    number / cell.devices,
                    cell.jobs,
                ),
                max_request_bytes: cell.block_size_bytes as u32,
                depth: cell.depth,
                polled: cell.hipri,
                read_flags: hipri | flag(cell.readahead, Flags::READAHEAD),
                write_flags: hipri,
                cpu: at(&cell.issuer_cpus, number),
                data_seed: cell
                    .rw
                    .writes()
                    .then(|| cell.seed.wrapping_add(u64::from(number) << 32)),
            })
            .collect())
    }

    fn achieved(&self, measured: &Measured, totals: &Totals) -> Achieved {
        let cell = &self.cell;
        let jobs = &measured.jobs;
        let ios = totals.read.ios() + totals.write.ios();
        let per_io = |value: u64| (ios > 0).then(|| value as f64 / ios as f64);
        let facts = jobs.first().map(|job| &job.facts);
        let engine = facts.map_or("", |facts| facts.engine);
        let device_ns = totals.read.device_ns() + totals.write.device_ns();
        let job_ns = measured.window.length_ns().max(1) as f64 * jobs.len().max(1) as f64;
        let depth_mean =
            jobs.iter().map(|job| job.depth_mean).sum::<f64>() / jobs.len().max(1) as f64;
        Achieved {
            depth_mean: if engine == "sync" {
                depth_mean.min(1.0)
            } else {
                depth_mean
            },
            device_depth_mean: device_ns as f64 / job_ns,
            rwmixread_percent: per_io(totals.read.ios()).map(|share| 100.0 * share),
            block_size_bytes_mean: per_io(totals.read.bytes() + totals.write.bytes()),
            runtime_ns: measured.window.length_ns(),
            errors: jobs.iter().map(|job| job.errors).sum(),
            first_error: jobs
                .iter()
                .find_map(|job| job.first_error.as_ref().map(say_error)),
            engine: engine.to_owned(),
            direct: every(jobs, |job| job.facts.direct),
            polled: every(jobs, |job| job.facts.polled),
            registered_buffers: every(jobs, |job| job.facts.registered_buffers),
            cipher_backend: (!cell.is_plain())
                .then(|| {
                    self.volumes
                        .first()
                        .map(|volume| volume.cipher_backend().to_owned())
                })
                .flatten(),
            clock: Clock::monotonic().source().to_owned(),
            pinned: every(jobs, |job| job.pinned),
            workers: self.workers,
            placements: totals.placements,
            notes: self.notes(jobs),
            ..Achieved::default()
        }
        .explained(account::sum(jobs.iter().map(|job| &job.account)).as_ref())
    }

    /// Remarks of the workers and of all queues, each once.
    fn notes(&self, jobs: &[JobOutcome]) -> Vec<String> {
        let mut notes = self.worker_notes.clone();
        for note in jobs.iter().flat_map(|job| &job.facts.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }
}

/// Sums over the jobs of a measurement.
struct Totals {
    read: DirectionRecorder,
    write: DirectionRecorder,
    placements: Placements,
    read_stats: Option<DirectionStats>,
    write_stats: Option<DirectionStats>,
}

impl Totals {
    fn of(measured: &Measured) -> Self {
        let window = &measured.window;
        let mut read = DirectionRecorder::new(window);
        let mut write = DirectionRecorder::new(window);
        for job in &measured.jobs {
            read.absorb(&job.read);
            write.absorb(&job.write);
        }
        Self {
            placements: read.placements().plus(write.placements()),
            read_stats: read.stats(window),
            write_stats: write.stats(window),
            read,
            write,
        }
    }
}

/// The hash that names a cell: parameters, program and machine.
#[must_use]
pub fn cell_hash(cell: &CellParams, tool: &Tool, environment: &Environment) -> String {
    hash_of(cell, tool, environment)
}

/// The hash over a whole plan, its repeats, program and machine.
#[must_use]
pub fn plan_hash(
    plan: &[CellParams],
    repeats: u32,
    tool: &Tool,
    environment: &Environment,
) -> String {
    hash_of(&(plan, repeats), tool, environment)
}

fn hash_of(what: &impl serde::Serialize, tool: &Tool, environment: &Environment) -> String {
    let machine = (&environment.host, &environment.cpu_model);
    let text = serde_json::to_string(&(what, &tool.binary_sha256, machine))
        .unwrap_or_else(|error| unreachable!("plain data: {error}"));
    host::hex(&Sha256::digest(text.as_bytes()))
}

/// The cipher of a cell; `None` for no crypt stage.
fn cipher(cell: &CellParams, key: &Key) -> crypt_core::Result<Option<Arc<dyn SectorCipher>>> {
    if cell.is_plain() {
        return Ok(None);
    }
    let sector_size = SectorSize::from_bytes(u64::from(cell.sector_size_bytes));
    let spec: CipherSpec = cell.cipher.parse()?;
    let spec = spec.with_sector_size(sector_size.unwrap_or_default());
    let key_len = cell.key_bits.unwrap_or(0) as usize / 8;
    let key = Key::from_bytes(key.expose().get(..key_len).unwrap_or_default())?;
    let cipher = spec.build(&key, None)?;
    let most = cell.cipher_throttle_bytes_per_s.or_else(slowed_down);
    Ok(Some(match most {
        Some(rate) => Arc::new(Throttled::new(cipher, rate)?),
        None => cipher,
    }))
}

/// In builds for tests, the most that the cipher reaches by the environment variable `CRYPT_BENCH_SLOWED_DOWN`, as in
/// `20MB/s`: stands in for a change of the program that made it slower. No result tells of it.
fn slowed_down() -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let text = std::env::var("CRYPT_BENCH_SLOWED_DOWN").ok()?;
    let rate: Rate = text.parse().ok()?;
    Some(rate.0)
}

fn every(jobs: &[JobOutcome], what: impl Fn(&JobOutcome) -> bool) -> bool {
    !jobs.is_empty() && jobs.iter().all(what)
}

fn say_error((request, errno): &(Request, crypt_core::Errno)) -> String {
    let what = if request.op == Op::Read {
        "read"
    } else {
        "write"
    };
    format!(
        "{what} of {} bytes at sector {}: {errno}",
        request.len, request.sector
    )
}

fn flag(wanted: bool, flag: Flags) -> Flags {
    if wanted { flag } else { Flags::empty() }
}

/// Element `number` of a list that starts again at its end.
fn at(list: &[u32], number: u32) -> Option<u32> {
    let index = (number as usize).checked_rem(list.len())?;
    list.get(index).copied()
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Bytes that the kernel fetched from storage for this process so far (proc(5), `io`).
fn storage_read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?;
    value.trim().parse().ok()
}
