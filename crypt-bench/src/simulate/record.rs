//! A simulated cell as a record of the published format.

#![forbid(unsafe_code)]

use super::{Machine, Simulated};
use crate::judge::{self, Evidence, StorageEvidence, VIRTUAL_CLOCK};
use crate::manifest::Environment;
use crate::result::{Achieved, CellParams, CpuTime, ResultRecord, SCHEMA_VERSION};

/// The record of one run. Nothing in it depends on when or where it was made, but for `cell_hash`, which
/// the caller knows.
#[must_use]
pub fn record(
    cell: &CellParams,
    repeat: u32,
    cell_hash: String,
    simulated: &Simulated,
) -> ResultRecord {
    let window = &simulated.window;
    let (read, write) = (simulated.read.stats(window), simulated.write.stats(window));
    let achieved = achieved(cell, simulated);
    let doubts = judge::judge(&Evidence {
        cell,
        achieved: &achieved,
        read: read.as_ref(),
        write: write.as_ref(),
        slice_ns: window.slice_ns(),
        steal_percent: 0.0,
        storage: StorageEvidence::default(),
        storage_read_bytes: None,
        cpus: u32::MAX,
        governor: None,
    });
    ResultRecord {
        schema_version: SCHEMA_VERSION,
        cell_hash,
        cell: cell.clone(),
        repeat,
        sequence: 0,
        started_unix_ms: 0,
        achieved,
        read,
        write,
        slice_ns: window.slice_ns(),
        cpu: CpuTime {
            total_s: simulated.cpu_ns as f64 / 1e9,
            user_s: simulated.cpu_ns as f64 / 1e9,
            system_s: 0.0,
        },
        doubts,
        mark: String::new(),
    }
}

fn achieved(cell: &CellParams, simulated: &Simulated) -> Achieved {
    let (read, write) = (&simulated.read, &simulated.write);
    let ios = read.ios() + write.ios();
    let per_io = |value: u64| (ios > 0).then(|| value as f64 / ios as f64);
    let jobs = f64::from(cell.jobs * cell.devices);
    let job_ns = simulated.window.length_ns().max(1) as f64 * jobs;
    Achieved {
        depth_mean: simulated.depth_mean,
        device_depth_mean: (read.device_ns() + write.device_ns()) as f64 / job_ns,
        rwmixread_percent: per_io(read.ios()).map(|share| 100.0 * share),
        block_size_bytes_mean: per_io(read.bytes() + write.bytes()),
        runtime_ns: simulated.window.length_ns(),
        engine: "simulated".to_owned(),
        polled: cell.hipri,
        cipher_backend: (!cell.is_plain()).then(|| "simulated".to_owned()),
        clock: VIRTUAL_CLOCK.to_owned(),
        pinned: true,
        workers: simulated.workers,
        placements: read.placements().plus(write.placements()),
        ..Achieved::default()
    }
    .explained(simulated.decided.as_ref())
}

/// The machine where results say which host they are from.
#[must_use]
pub fn environment(machine: &Machine) -> Environment {
    Environment {
        host: machine.name.clone(),
        cpu_model: format!("simulated: {}", machine.description),
        cpus: machine.cpus(),
        clock: VIRTUAL_CLOCK.to_owned(),
        ..Environment::default()
    }
}
