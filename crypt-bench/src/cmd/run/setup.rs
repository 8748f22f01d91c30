//! From a plan to threads that are ready to play: checks, files, volumes, streams.
//!
//! Files go through the same guards as those of `matrix`: nothing is written that was not named with
//! `--destroy-data-on`, nothing is created without `--create`.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crypt_core::Volume;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::policy::PolicySpec;

use super::keys::Keys;
use super::{content, memory};
use crate::cli::{Failure, Outcome};
use crate::definition::device::{DeviceSpec, Engine};
use crate::generate::{Random, Script, Span, Stream};
use crate::host;
use crate::jobfile::job::{Access, Job};
use crate::jobfile::place::{Copy, Place, Plan, Range};
use crate::jobfile::replay::Replay;
use crate::judge::StorageEvidence;
use crate::play::{Conduct, Player, Rates, Trace};
use crate::progress::say;
use crate::result::{CellParams, Rw};
use crate::target::{self, Permissions, Targets};

/// Seed of what is to repeat, without `randseed`.
const DEFAULT_SEED: u64 = 0x0c2b_f10e;

/// Devices and workers that the stages share.
pub(super) struct Setup {
    targets: Targets,
    pools: Vec<(PolicySpec, Arc<WorkerPool>)>,
    keys: Keys,
    /// Seed of what is not to repeat.
    fresh_seed: u64,
}

impl Setup {
    /// Checks everything, then creates what is missing.
    ///
    /// # Errors
    /// What is not there or not allowed; nothing was touched then.
    pub(super) fn prepare(
        plan: &Plan,
        permissions: &Permissions,
        stop: &AtomicBool,
    ) -> Outcome<Self> {
        let cells = plan.copies.iter().flat_map(|copy| cells(plan, copy));
        let cells: Vec<CellParams> = cells.collect();
        memory::check(plan)?;
        check_cpus(plan)?;
        let keys = Keys::draw()?;
        keys.check(plan)?;
        target::check(&cells, permissions).map_err(Failure::Usage)?;
        let targets = Targets::prepare(&cells, permissions, stop, |what| {
            say(what);
        });
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            targets: targets.map_err(|error| match stop.load(Ordering::Relaxed) {
                true => Failure::Interrupted("stopped before a job began".to_owned()),
                false => Failure::Usage(error),
            })?,
            pools: Vec::new(),
            keys,
            fresh_seed: since.map_or(0, |since| since.as_nanos() as u64),
        })
    }

    /// The threads of a stage.
    ///
    /// # Errors
    /// Where a device can't be opened, or a key does not fit.
    pub(super) fn players(
        &mut self,
        plan: &Plan,
        stage: usize,
        stop: &AtomicBool,
    ) -> Outcome<Vec<Player>> {
        let copies = plan.copies.iter().filter(|copy| copy.stage == stage);
        let copies: Vec<&Copy> = copies.collect();
        copies
            .iter()
            .enumerate()
            .filter_map(|(index, copy)| Some((index, copy, plan.jobs.get(copy.job)?)))
            .map(|(index, copy, job)| {
                let (volume, storage) = self.volume(plan, copy, job, stop)?;
                let mut player = self.player(copy, job, volume, storage)?;
                player.conduct = conduct(&copies, index, job);
                Ok(player)
            })
            .collect()
    }

    fn volume(
        &mut self,
        plan: &Plan,
        copy: &Copy,
        job: &Job,
        stop: &AtomicBool,
    ) -> Outcome<(Volume, StorageEvidence)> {
        let opened = self
            .targets
            .open_together(&cells(plan, copy), stop)
            .map_err(Failure::Internal)?;
        let Some((device, _)) = opened.places.first() else {
            return Err(Failure::internal("a device without a place"));
        };
        let unit = job
            .crypt
            .as_ref()
            .map_or(512, |crypt| crypt.cipher.sector_size().bytes() as u64);
        let end = copy.ranges.last().map_or(0, Range::end_bytes);
        let mut builder = Volume::builder(Arc::clone(device)).size_bytes(end - end % unit);
        if let Some(crypt) = &job.crypt {
            let key = self.keys.of(job, crypt)?;
            let cipher = crypt.cipher.build(&key, None);
            builder = builder
                .cipher(cipher.map_err(|error| in_job(job, &error.to_string()))?)
                .policy(crypt.policy);
            if crypt.policy.needs_workers() {
                builder = builder.workers(self.pool(crypt.policy)?);
            }
        }
        let volume = builder.build();
        let volume = volume.map_err(|error| in_job(job, &error.to_string()))?;
        Ok((volume, opened.evidence))
    }

    /// The workers of a policy, shared by all its jobs.
    fn pool(&mut self, policy: PolicySpec) -> Outcome<Arc<WorkerPool>> {
        if let Some((_, pool)) = self.pools.iter().find(|(known, _)| *known == policy) {
            return Ok(Arc::clone(pool));
        }
        let pool = WorkerPool::start(&WorkerConfig::for_rules(&policy.rules()))
            .map_err(|error| Failure::internal(error.to_string()))?;
        self.pools.push((policy, Arc::clone(&pool)));
        Ok(pool)
    }

    fn player(
        &self,
        copy: &Copy,
        job: &Job,
        volume: Volume,
        storage: StorageEvidence,
    ) -> Outcome<Player> {
        let mut random = Random::new(self.seed(copy, job));
        let (from_us, to_us) = job.delay_us;
        let delay_us = from_us + random.below_u64(to_us - from_us + 1);
        let filler = content::filler(job, random.next())?;
        Ok(Player {
            volume,
            storage,
            stream: Stream::new(script(copy, job), random.next()),
            trace: job.replay.as_ref().map(|replay| trace(replay, copy)),
            rates: rates(job, random.next()),
            max_request_bytes: job.largest_bytes() as u32,
            depth: depth(job),
            batch: job.conduct.batches.submit,
            reap: job.conduct.batches.complete_max,
            polled: job.hipri,
            cpus: cpus(copy, job),
            verification: content::verification(job, self.fresh_seed)?,
            data_seed: (job.writes() && filler.is_none()).then(|| random.next()),
            filler,
            log: job.logs.as_ref().map(|logs| logs.rule(job, copy)),
            conduct: Conduct::default(),
            end_flush: job.settings.flag("end_fsync") && job.writes(),
            delay: Duration::from_micros(delay_us),
            ramp: Duration::from_micros(job.ramp_us),
            runtime: job.runtime_us.map(Duration::from_micros),
        })
    }

    /// With `randrepeat`, the default, every run makes the same requests.
    fn seed(&self, copy: &Copy, job: &Job) -> u64 {
        let repeats = job.settings.flag_or("randrepeat", true);
        let base = match job.settings.number("randseed") {
            Some(seed) => seed,
            None if repeats => DEFAULT_SEED,
            None => self.fresh_seed,
        };
        let thread = (copy.job as u64) << 32 | u64::from(copy.number);
        base ^ thread.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// How a thread of a stage behaves, with the others of the stage in mind.
fn conduct(stage: &[&Copy], index: usize, job: &Job) -> Conduct {
    let copy = stage[index];
    // Threads of a group become steady together where they are reported together.
    let together = match job.settings.flag("group_reporting") {
        true => copy.group,
        false => usize::MAX - index,
    };
    let awaited = stage.iter().enumerate();
    let awaited = awaited.filter(|(_, other)| Some(other.job) == copy.after);
    Conduct {
        steady: job.conduct.steady.map(|(_, rule)| (together, rule)),
        after: awaited.map(|(index, _)| index).collect(),
        ..job.conduct.clone()
    }
}

/// Plain system calls are one at a time.
pub(super) fn depth(job: &Job) -> u32 {
    match job.access {
        Access::File(Engine::Sync) => 1,
        _ => job.depth,
    }
}

fn cpus(copy: &Copy, job: &Job) -> Vec<u32> {
    use crate::jobfile::value::Value;
    let Some(Value::Cpus(cpus)) = job
        .settings
        .find("cpus_allowed")
        .map(|setting| &setting.value)
    else {
        return Vec::new();
    };
    match job.settings.text("cpus_allowed_policy") {
        Some("split") => cpus
            .get(copy.number as usize % cpus.len().max(1))
            .copied()
            .into_iter()
            .collect(),
        _ => cpus.clone(),
    }
}

/// The requests of a copy of a job, in the words of the generator.
#[must_use]
pub fn script(copy: &Copy, job: &Job) -> Script {
    let flushes = ["fsync", "fdatasync"].map(|name| job.settings.number(name).unwrap_or(0));
    let offsets = &job.offsets;
    Script {
        rw: job.pattern.rw,
        rwmixread_percent: job.rwmixread_percent,
        lengths: [job.read_lengths.clone(), job.write_lengths.clone()],
        align_bytes: offsets.align_bytes,
        random_percent: offsets.random_percent,
        repeats: offsets.repeats,
        spread: offsets.spread.clone(),
        run_ios: offsets.run_ios,
        run: offsets.run,
        step_bytes: offsets.step_bytes,
        strides: offsets.strides,
        spans: copy.ranges.iter().map(span).collect(),
        service: job.service,
        total_bytes: copy.total_bytes,
        total_ios: copy.total_ios,
        flush_every: flushes.into_iter().max().unwrap_or(0),
    }
}

fn span(range: &Range) -> Span {
    Span {
        start_bytes: range.base_bytes + range.start_bytes,
        len_bytes: range.len_bytes,
    }
}

fn trace(replay: &Replay, copy: &Copy) -> Trace {
    Trace {
        path: replay.path.clone(),
        changes: replay.changes.clone(),
        speed_percent: replay.speed_percent,
        starts_bytes: replay.starts_bytes(copy),
    }
}

/// A trace has its own times.
fn rates(job: &Job, seed: u64) -> Rates {
    if job.replay.is_some() {
        return Rates::default();
    }
    let per_direction = |name: &str| {
        let [read, write, _] = job.settings.numbers(name);
        [read, write].map(|rate| rate.filter(|rate| *rate > 0))
    };
    Rates {
        bytes_per_s: per_direction("rate"),
        ios_per_s: per_direction("rate_iops"),
        think_ns: job
            .settings
            .time_us("thinktime")
            .map_or(0, |time| time.0 * 1000),
        think_every: job.settings.number("thinktime_blocks").unwrap_or(1),
        poisson_seed: (job.settings.text("rate_process") == Some("poisson")).then_some(seed),
    }
}

/// A copy of a job in the words of a matrix, which is what the guards and devices understand: a cell per file.
pub(super) fn cells(plan: &Plan, copy: &Copy) -> Vec<CellParams> {
    let job = &plan.jobs[copy.job];
    let ranges = copy.ranges.iter();
    ranges.map(|range| cell(plan, job, range)).collect()
}

fn cell(plan: &Plan, job: &Job, range: &Range) -> CellParams {
    let (device, size_bytes) = match &range.place {
        Place::Null => (DeviceSpec::Null, range.start_bytes + range.len_bytes),
        Place::File(path) => {
            let bytes = plan.file(path).map_or(0, |file| file.bytes);
            (DeviceSpec::File(path.clone()), bytes)
        }
    };
    let engine = match job.access {
        Access::File(Engine::Sync) => "sync",
        _ => "io_uring",
    };
    CellParams {
        device: device.to_string(),
        cipher: "none".to_owned(),
        key_bits: None,
        sector_size_bytes: 512,
        rw: access(job),
        rwmixread_percent: job.rwmixread_percent,
        block_size_bytes: job.largest_bytes(),
        block_sizes: None,
        depth: depth(job),
        jobs: 1,
        issuer_cpus: Vec::new(),
        devices: 1,
        cores: None,
        workers: 0,
        policy: "inline".to_owned(),
        hipri: job.hipri,
        readahead: false,
        direct: job.direct,
        engine: engine.to_owned(),
        cipher_throttle_bytes_per_s: None,
        size_bytes,
        runtime_ms: job.runtime_us.unwrap_or(0) / 1000,
        ramp_ms: job.ramp_us / 1000,
        slice_us: None,
        seed: 0,
    }
}

/// What a job does with its file. One that only verifies reads what it would write.
fn access(job: &Job) -> Rw {
    match job.writes() {
        true => job.pattern.rw,
        false if job.pattern.rw.is_random() => Rw::RandRead,
        false => Rw::Read,
    }
}

fn check_cpus(plan: &Plan) -> Outcome {
    let allowed = host::allowed_cpus();
    for copy in &plan.copies {
        let job = &plan.jobs[copy.job];
        if let Some(cpu) = cpus(copy, job).iter().find(|cpu| !allowed.contains(cpu)) {
            let message = format!("cpus_allowed: there is no CPU {cpu} for this program");
            return Err(Failure::usage(
                job.refuse("cpus_allowed", message).to_string(),
            ));
        }
    }
    Ok(())
}

pub(super) fn in_job(job: &Job, message: &str) -> Failure {
    Failure::usage(format!("{}: [{}]: {message}", job.position, job.name))
}
