//! What makes the figures of a job doubtful: the same typed doubts as those of a matrix. Pure but for the number
//! of CPUs.

#![forbid(unsafe_code)]

use crypt_core::clock::Clock;

use super::outcome::Report;
use super::{logs, setup};
use crate::doubt::Doubt;
use crate::host;
use crate::jobfile::job::Job;
use crate::jobfile::place::{Copy, Plan};
use crate::judge::{self, Evidence};
use crate::play::Played;
use crate::result::{Achieved, CellParams, DirectionStats, Placements};

/// Fewest requests per slot for a depth to mean anything: at the start and at the end not all are in use.
const FEWEST_PER_SLOT: u64 = 50;

/// The doubts about a report of these threads, which begin with `first`. What was asked counts where all are of
/// one job (`alike`).
pub(super) fn of(
    plan: &Plan,
    first: &Copy,
    alike: bool,
    report: &Report,
    threads: &[&Played],
) -> Vec<Doubt> {
    let achieved = achieved(report, threads);
    let cell = asked(plan, first, alike, &achieved, report);
    let storage = threads
        .first()
        .map_or_else(Default::default, |played| played.storage);
    let mut doubts = judge::judge(&Evidence {
        cell: &cell,
        achieved: &achieved,
        read: report.read.as_ref(),
        write: report.write.as_ref(),
        slice_ns: report.slice_ns,
        steal_percent: 0.0,
        storage,
        storage_read_bytes: None,
        cpus: host::allowed_cpus().len() as u32,
        governor: None,
    });
    let requests = logs::lost(threads);
    if requests > 0 {
        doubts.push(Doubt::LogFull { requests });
    }
    doubts
}

/// What the job asks for, in the words of a matrix. What it does not ask for is as it was.
fn asked(
    plan: &Plan,
    first: &Copy,
    alike: bool,
    achieved: &Achieved,
    report: &Report,
) -> CellParams {
    let job = &plan.jobs[first.job];
    // What is asked is the same for all of its files.
    let mut cell = setup::cells(plan, first).swap_remove(0);
    cell.jobs = report.threads as u32;
    cell.block_size_bytes = job.smallest_bytes();
    cell.runtime_ms = match (job.time_based, job.runtime_us) {
        (true, Some(us)) => us / 1000,
        _ => 0,
    };
    cell.depth = if alike && keeps_depth(job, achieved, report) {
        job.depth
    } else {
        0
    };
    let mixed = job.pattern.rw.reads() && job.pattern.rw.writes();
    if !(alike && mixed) || job.replay.is_some() {
        cell.rwmixread_percent = achieved.rwmixread_percent.unwrap_or(0.0).round() as u8;
    }
    if !alike || job.replay.is_some() {
        cell.block_size_bytes = 0;
    }
    cell
}

/// Whether its depth is to be looked at: it would be in use all the time, and less than half of it was. The mean is
/// that of Little's law, in which the thread's own time between two requests counts as an empty slot; so less
/// than that says nothing.
fn keeps_depth(job: &Job, achieved: &Achieved, report: &Report) -> bool {
    let paced = [
        "rate",
        "rate_iops",
        "thinktime",
        "fsync",
        "fdatasync",
        "read_iolog",
    ]
    .into_iter()
    .any(|name| {
        job.settings
            .find(name)
            .is_some_and(|setting| setting.text != "0")
    });
    let ios: u64 = directions(report).map(|stats| stats.ios).sum();
    let unused = achieved.depth_mean < 0.5 * f64::from(job.depth);
    let instant = achieved.engine == "immediate";
    !paced
        && unused
        && !instant
        && job.depth > 1
        && ios >= FEWEST_PER_SLOT * u64::from(job.depth) * report.threads as u64
}

fn directions(report: &Report) -> impl Iterator<Item = &DirectionStats> {
    report.read.iter().chain(&report.write)
}

fn achieved(report: &Report, threads: &[&Played]) -> Achieved {
    let ios: u64 = directions(report).map(|stats| stats.ios).sum();
    let bytes: u64 = directions(report).map(|stats| stats.bytes).sum();
    let reads = report.read.as_ref().map_or(0, |stats| stats.ios);
    let busy_ns: f64 = directions(report)
        .map(|stats| stats.lat.mean_ns * stats.ios as f64)
        .sum();
    let times: u64 = threads.iter().map(|played| played.window.length_ns()).sum();
    let facts = threads.first().map(|played| &played.facts);
    let every = |holds: fn(&Played) -> bool| threads.iter().all(|played| holds(played));
    let per_io = |value: u64| (ios > 0).then(|| value as f64 / ios as f64);
    Achieved {
        depth_mean: busy_ns / times.max(1) as f64,
        device_depth_mean: 0.0,
        rwmixread_percent: per_io(reads).map(|share| 100.0 * share),
        block_size_bytes_mean: per_io(bytes),
        runtime_ns: report.runtime_ns,
        errors: report.errors,
        first_error: None,
        engine: facts.map_or("", |facts| facts.engine).to_owned(),
        direct: every(|played| played.facts.direct),
        polled: every(|played| played.facts.polled),
        registered_buffers: every(|played| played.facts.registered_buffers),
        cipher_backend: None,
        clock: Clock::monotonic().source().to_owned(),
        pinned: every(|played| played.pinned),
        workers: 0,
        placements: Placements::default(),
        decisions: Vec::new(),
        predictions: Vec::new(),
        notes: Vec::new(),
    }
}
