//! The native result format, version 1: one [`ResultRecord`] as one JSON line per finished
//! measurement, that is per cell, policy and repeat. Published as `schema/result.schema.json`.
//!
//! Units are part of every key. Latency is never averaged from averages: every distribution carries
//! its whole histogram, so records merge without loss. What was asked stands in `cell`, what
//! really happened in `achieved`, and what casts doubt on the numbers in `doubts`.
//! Plain data: nothing here computes statistics (see `summary`) or touches a file (see `journal`).

#![forbid(unsafe_code)]

mod check;
mod decisions;
mod rw;

pub use decisions::{DecisionCount, PredictedTime};
pub use rw::Rw;

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;

#[cfg(test)]
use schemars::JsonSchema;

/// The policy of a measurement without any crypt stage: what the device does by itself, beside which the
/// others stand. The cipher of such a cell is the one that is left out.
pub const RAW_POLICY: &str = "raw";

/// Version of the format that this build writes.
pub const SCHEMA_VERSION: u32 = 1;

/// One finished measurement: a cell under one policy, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ResultRecord {
    /// Version of this format.
    pub schema_version: u32,
    /// SHA-256 over the cell's parameters, the program's binary and the host, in hex.
    pub cell_hash: String,
    /// What was asked for.
    pub cell: CellParams,
    /// Number of this repeat, counted from 1.
    pub repeat: u32,
    /// Position in the order of execution over the whole matrix, counted from 0: policies of one
    /// cell run interleaved.
    pub sequence: u64,
    /// When measuring started, in milliseconds since the Unix epoch; 0 where an import does not say.
    pub started_unix_ms: u64,
    /// What happened really.
    pub achieved: Achieved,
    /// Reads; null where none completed.
    pub read: Option<DirectionStats>,
    /// Writes; null where none completed.
    pub write: Option<DirectionStats>,
    /// Length of one slice of the throughput over time; 0 where there are none.
    pub slice_ns: u64,
    /// Processor time of the whole process while measuring.
    pub cpu: CpuTime,
    /// Everything that casts doubt on the numbers.
    pub doubts: Vec<Doubt>,
    /// SHA-256 over the record without this field, in hex: a record is finished when it fits.
    pub mark: String,
}

impl ResultRecord {
    /// Whether the numbers may be coloured, ranked or compared.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.doubts.iter().any(Doubt::invalidates)
    }

    /// The directions that completed requests, reads first.
    pub fn directions(&self) -> impl Iterator<Item = &DirectionStats> {
        self.read.iter().chain(&self.write)
    }

    /// Throughput of both directions together, in bytes per second.
    #[must_use]
    pub fn bw_bytes_per_s(&self) -> f64 {
        // Nothing sums up to -0.
        0.0 + self
            .directions()
            .map(|stats| stats.bw_bytes_per_s)
            .sum::<f64>()
    }

    /// Requests per second of both directions together.
    #[must_use]
    pub fn iops(&self) -> f64 {
        0.0 + self.directions().map(|stats| stats.iops).sum::<f64>()
    }
}

/// Parameters of a cell, its policy included. Equal parameters are the same cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CellParams {
    /// Device as on the command line: `null`, `memory`, `model:nvme`, `file:PATH`, `scratch`.
    pub device: String,
    /// Cipher in dm-crypt's notation, or `none` for no crypt stage at all.
    pub cipher: String,
    /// Length of the volume key; null without a key.
    pub key_bits: Option<u32>,
    /// Unit of one IV.
    pub sector_size_bytes: u32,
    /// Direction and order of the requests.
    pub rw: Rw,
    /// Share of reads; 100 and 0 for the pure patterns.
    pub rwmixread_percent: u8,
    /// Length of every request; of the longest where `block_sizes` says which there are.
    pub block_size_bytes: u64,
    /// Lengths of requests where they differ, of reads and of writes, in fio's notation for `bssplit`:
    /// `64k/60:1m/40,1m`. Left out where all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_sizes: Option<String>,
    /// Requests in flight per job.
    pub depth: u32,
    /// Jobs (threads with a queue of their own) per volume.
    pub jobs: u32,
    /// CPUs that jobs are pinned to, round-robin; empty for no pinning.
    pub issuer_cpus: Vec<u32>,
    /// Volumes that share one worker pool.
    pub devices: u32,
    /// Cores of the simulated machine, where results are of several; left out where the machine is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Threads of the worker pool.
    pub workers: u32,
    /// Dispatch policy with its flags, or `raw` for no crypt stage.
    pub policy: String,
    /// Whether requests ask to be polled for.
    pub hipri: bool,
    /// Whether reads are marked as read-ahead.
    pub readahead: bool,
    /// Whether the page cache is to be bypassed.
    pub direct: bool,
    /// Mechanism of files: `auto`, `io_uring` or `sync`.
    pub engine: String,
    /// Upper bound of the cipher's speed on one core; null for none.
    pub cipher_throttle_bytes_per_s: Option<u64>,
    /// Bytes of each volume that requests fall into.
    pub size_bytes: u64,
    /// Measuring time.
    pub runtime_ms: u64,
    /// Warm-up before it, which counts towards nothing.
    pub ramp_ms: u64,
    /// Length of the slices of throughput over time that was asked for, of which the next smaller power
    /// of two nanoseconds is taken. Left out where the runtime decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<u64>,
    /// Seed of the request generators.
    pub seed: u64,
}

impl CellParams {
    /// Whether there is no crypt stage, because of the cipher or of the policy.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.cipher == "none" || self.policy == RAW_POLICY
    }

    /// The parameters without the policy: cells that agree in this are compared with each other.
    #[must_use]
    pub fn without_policy(&self) -> Self {
        Self {
            policy: String::new(),
            ..self.clone()
        }
    }
}

impl Placements {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            inline: self.inline + other.inline,
            offload: self.offload + other.offload,
            split: self.split + other.split,
        }
    }
}

/// What really happened in a measurement, next to what `cell` asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Achieved {
    /// Requests in flight per job whenever it looked for completions, averaged over time. A device
    /// mechanism that holds one request at a time counts as 1.
    pub depth_mean: f64,
    /// Requests at the device per job, averaged over time: what is left of the depth after the
    /// cipher and its queues.
    pub device_depth_mean: f64,
    /// Share of reads among completed requests; null where nothing completed.
    pub rwmixread_percent: Option<f64>,
    /// Bytes per completed request, averaged; null where nothing completed.
    pub block_size_bytes_mean: Option<f64>,
    /// Measured time, the longest job's.
    pub runtime_ns: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The first failure, in words.
    pub first_error: Option<String>,
    /// Device mechanism: `immediate`, `io_uring`, `sync`, ...
    pub engine: String,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// Whether completions were polled from the hardware.
    pub polled: bool,
    /// Whether buffers were registered with the kernel.
    pub registered_buffers: bool,
    /// Cipher backend that ran; null for no crypt stage.
    pub cipher_backend: Option<String>,
    /// Source of time stamps: `tsc` or `clock_monotonic`.
    pub clock: String,
    /// Whether every job ran on the CPU it was asked to.
    pub pinned: bool,
    /// Threads of the worker pool; 0 for policies that never hand off.
    pub workers: u32,
    /// Where the cipher ran.
    pub placements: Placements,
    /// Why the policy placed work where it did within the measured time; left out where it keeps no account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionCount>,
    /// What it predicted and what it took; left out likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<PredictedTime>,
    /// Remarks of the queues, one sentence each.
    pub notes: Vec<String>,
}

/// How many requests had their cipher work in which place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Placements {
    /// On the queue's own thread.
    pub inline: u64,
    /// On one worker.
    pub offload: u64,
    /// On several workers.
    pub split: u64,
}

/// Everything measured about one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DirectionStats {
    /// Completed requests.
    pub ios: u64,
    /// Transferred bytes.
    pub bytes: u64,
    /// Throughput.
    pub bw_bytes_per_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// From submission to issue to the device.
    pub slat: Distribution,
    /// From issue to the device to completion.
    pub clat: Distribution,
    /// From submission to completion.
    pub lat: Distribution,
    /// Where the time went; null in imported results.
    pub stages: Option<Stages>,
    /// Requests completed in each slice of `slice_ns`; the last one may be shorter. Empty in imported
    /// results.
    pub slice_ios: Vec<u64>,
}

/// Mean time of a request in each stage. `dispatch` is what the others leave of `lat`; cipher time
/// is summed over the parts of a split request, so it can exceed its share of `lat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Stages {
    /// Waiting for a worker to start on it.
    pub wait_ns_mean: f64,
    /// Queueing and bookkeeping outside the other stages.
    pub dispatch_ns_mean: f64,
    /// Encrypting or decrypting.
    pub cipher_ns_mean: f64,
    /// At the device.
    pub device_ns_mean: f64,
}

/// A latency distribution: figures to read, and the histogram to merge. Only imported results lack some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Distribution {
    /// Number of samples, at least 1; 0 where the program that measured records no such latency, and all
    /// other figures are 0 or null.
    pub samples: u64,
    /// Samples beyond the histogram's range: counted, and shown as `>=` its end.
    pub over_range_samples: u64,
    /// Smallest sample.
    pub min_ns: u64,
    /// Largest sample.
    pub max_ns: u64,
    /// Exact mean.
    pub mean_ns: f64,
    /// Standard deviation of the population.
    pub stddev_ns: f64,
    /// The ceil(0.5 n)-th sample, to 3 significant digits like all percentiles; null where it is not known.
    pub p50_ns: Option<u64>,
    /// The ceil(0.9 n)-th.
    pub p90_ns: Option<u64>,
    /// The ceil(0.99 n)-th.
    pub p99_ns: Option<u64>,
    /// The ceil(0.999 n)-th.
    pub p99_9_ns: Option<u64>,
    /// The ceil(0.9999 n)-th.
    pub p99_99_ns: Option<u64>,
    /// The whole histogram: HdrHistogram V2, deflated, base64.
    pub hdr_v2_deflate_base64: Option<String>,
}

impl Distribution {
    /// The smallest value, the percentiles that are known and the largest value: rising, in a distribution.
    pub(crate) fn rising_ns(&self) -> impl Iterator<Item = u64> + Clone {
        let percentiles = [
            self.p50_ns,
            self.p90_ns,
            self.p99_ns,
            self.p99_9_ns,
            self.p99_99_ns,
        ];
        let known = percentiles.into_iter().flatten();
        [self.min_ns].into_iter().chain(known).chain([self.max_ns])
    }
}

/// Processor time of all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CpuTime {
    /// In total, from the process's own clock.
    pub total_s: f64,
    /// In user mode, counted by the kernel in ticks of 10 ms.
    pub user_s: f64,
    /// In the kernel, in the same ticks.
    pub system_s: f64,
}
