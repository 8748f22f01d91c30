//! Every way a number may not be what it seems, as a type next to the number.
//!
//! A doubt that *invalidates* takes the cell out of colouring, ranking and comparison; any other is
//! shown beside it. What is not a doubt is trusted.

#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use schemars::JsonSchema;

/// One reason to doubt a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// Nothing completed while measuring.
    NoSamples,
    /// Requests failed.
    Errors {
        /// How many.
        errors: u64,
    },
    /// Fewer requests were in flight than 90 % of what was asked.
    DepthNotReached {
        /// Asked, per job.
        asked: u32,
        /// In flight on average.
        mean: f64,
    },
    /// The mix of reads and writes is off by more than 5 points.
    MixOff {
        /// Asked share of reads.
        asked_percent: u8,
        /// Share among completed requests.
        achieved_percent: f64,
    },
    /// Completed requests were shorter than asked.
    ShortTransfers {
        /// Mean length.
        mean_bytes: f64,
    },
    /// Measured for less than 95 % of the time asked.
    RuntimeShort {
        /// Asked.
        asked_ms: u64,
        /// Measured.
        achieved_ms: u64,
    },
    /// Reads went to a file that was never written: the device may not have been asked at all.
    NeverWritten,
    /// Reads came from the page cache rather than from the device.
    Cached {
        /// Share of the bytes read that the storage delivered; null where it can't be known.
        from_storage_percent: Option<f64>,
    },
    /// The file lives in memory (tmpfs): this measures no disk.
    MemoryFilesystem,
    /// The page cache was to be bypassed, and was not.
    NotDirect,
    /// Polling was asked for, and the device can't: the queue spins on completions instead.
    PollingNotPossible,
    /// Buffers could not be registered with the kernel.
    BuffersNotRegistered,
    /// The system refuses io_uring; system calls that wait were used instead.
    IoUringRefused,
    /// A job could not be pinned to its CPU.
    NotPinned,
    /// There are more busy threads than CPUs.
    Oversubscribed {
        /// Jobs.
        jobs: u32,
        /// CPUs that the process may use.
        cpus: u32,
    },
    /// Time stamps come from the system clock, which costs tens of nanoseconds each.
    SlowClock,
    /// Nothing was measured: the figures come from a model of a machine.
    Simulated,
    /// The host took processor time away.
    Steal {
        /// Share of all processor time.
        percent: f64,
    },
    /// Throughput changed much over the measurement.
    NoisySlices {
        /// Standard deviation over mean of the slices.
        relative_stddev: f64,
    },
    /// Too few samples for the percentile to mean anything.
    FewSamples {
        /// Samples of the direction with the fewest.
        samples: u64,
        /// The highest percentile that stands on ten samples or more; null for none.
        trusted_percentile: Option<f64>,
    },
    /// The cipher was slowed down on purpose.
    CipherThrottled,
    /// Latencies beyond the histogram's range.
    OverRange {
        /// How many.
        samples: u64,
    },
    /// Logs are not whole: there was no room for more.
    LogFull {
        /// Requests that are missing.
        requests: u64,
    },
    /// The frequency governor is not `performance`.
    Governor {
        /// What it is.
        governor: String,
    },
    /// This build is not optimised.
    DebugBuild,
    /// Another program measured, and all that is known is what its file says: nothing was interleaved with
    /// anything, and nothing of its machine was looked at.
    Imported {
        /// Which, with its version.
        program: String,
    },
    /// The imported file does not say this, and nobody else did; it stands in the result as 0 or `unknown`.
    NotSaid {
        /// What.
        what: Vec<String>,
    },
    /// The imported job had options that bear on its figures and that a cell does not hold.
    OtherOptions {
        /// Each with its value.
        options: Vec<String>,
    },
    /// Latencies come from fio's buckets, each 1/64 wide, and stand at their middles.
    CoarseHistogram,
    /// Only some percentiles of the latency are known, or none, so repeats have none together.
    NoHistogram,
    /// fio kept percentiles of `clat` and none of `lat`.
    LatNotKept,
    /// The depth reached is known in powers of two only.
    DepthBetween {
        /// Least mean.
        least: f64,
        /// Largest mean, which the result holds.
        most: f64,
    },
    /// Other jobs ran at the same time.
    RanBeside {
        /// How many, without their copies.
        jobs: u32,
    },
}

impl Doubt {
    /// Whether the cell may not be coloured, ranked or compared.
    #[must_use]
    pub fn invalidates(&self) -> bool {
        matches!(
            self,
            Self::NoSamples
                | Self::Errors { .. }
                | Self::DepthNotReached { .. }
                | Self::MixOff { .. }
                | Self::ShortTransfers { .. }
                | Self::RuntimeShort { .. }
                | Self::NeverWritten
                | Self::Cached { .. }
                | Self::NotDirect
        )
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str("nothing completed while measuring"),
            Self::Errors { errors } => write!(f, "{errors} requests failed"),
            Self::DepthNotReached { asked, mean } => {
                write!(f, "depth {asked} asked, {mean:.1} in flight on average")
            }
            Self::MixOff {
                asked_percent,
                achieved_percent,
            } => write!(
                f,
                "{asked_percent} % reads asked, {achieved_percent:.1} % done"
            ),
            Self::ShortTransfers { mean_bytes } => {
                write!(f, "transfers came short, {mean_bytes:.0} bytes on average")
            }
            Self::RuntimeShort {
                asked_ms,
                achieved_ms,
            } => write!(f, "{asked_ms} ms asked, {achieved_ms} ms measured"),
            Self::NeverWritten => f.write_str("reads of a file that was never fully written"),
            Self::Cached {
                from_storage_percent,
            } => cached(f, *from_storage_percent),
            Self::MemoryFilesystem => f.write_str("the file lives in memory: no disk was measured"),
            Self::NotDirect => f.write_str("direct I/O asked for, but the page cache was used"),
            Self::PollingNotPossible => {
                f.write_str("HIPRI on a device that can't poll: spinning on completions instead")
            }
            Self::BuffersNotRegistered => f.write_str("buffers are not registered with the kernel"),
            Self::IoUringRefused => f.write_str("io_uring is refused here: blocking calls instead"),
            Self::NotPinned => f.write_str("jobs could not be pinned to their CPUs"),
            Self::Oversubscribed { jobs, cpus } => write!(f, "{jobs} jobs on {cpus} CPUs"),
            Self::SlowClock => f.write_str("no trustworthy TSC: the slower system clock is used"),
            Self::Simulated => f.write_str("simulated: a model's figures, nothing was measured"),
            Self::Steal { percent } => write!(f, "the host took {percent:.1} % of the CPU time"),
            Self::NoisySlices { relative_stddev } => noisy(f, *relative_stddev),
            Self::FewSamples {
                samples,
                trusted_percentile,
            } => few_samples(f, *samples, *trusted_percentile),
            Self::CipherThrottled => f.write_str("the cipher is slowed down on purpose"),
            Self::OverRange { samples } => {
                write!(f, "{samples} latencies beyond the histogram's range")
            }
            Self::LogFull { requests } => log_full(f, *requests),
            Self::Governor { governor } => write!(f, "frequency governor {governor}"),
            Self::DebugBuild => f.write_str("this build is not optimised"),
            Self::Imported { program } => write!(f, "imported, measured by {program}"),
            Self::NotSaid { what } => {
                write!(f, "the imported file does not say: {}", what.join(", "))
            }
            Self::OtherOptions { options } => {
                write!(f, "the job also had {}", options.join(", "))
            }
            Self::CoarseHistogram => f.write_str("latencies in fio's buckets, to 1/64"),
            Self::NoHistogram => f.write_str("a few percentiles at most, no histogram: use json+"),
            Self::LatNotKept => {
                f.write_str("fio kept percentiles of clat only: run it with lat_percentiles=1")
            }
            Self::DepthBetween { least, most } => {
                write!(f, "between {least:.1} and {most:.1} in flight on average")
            }
            Self::RanBeside { jobs } => write!(f, "{jobs} other jobs ran at the same time"),
        }
    }
}

fn cached(f: &mut fmt::Formatter<'_>, from_storage_percent: Option<f64>) -> fmt::Result {
    match from_storage_percent {
        Some(percent) => write!(
            f,
            "page cache: the storage delivered only {percent:.0} % of the bytes read"
        ),
        None => f.write_str("reads may come from the page cache"),
    }
}

fn noisy(f: &mut fmt::Formatter<'_>, relative_stddev: f64) -> fmt::Result {
    let percent = relative_stddev * 100.0;
    write!(f, "throughput varied by {percent:.0} % over time")
}

fn log_full(f: &mut fmt::Formatter<'_>, requests: u64) -> fmt::Result {
    write!(
        f,
        "the logs lack {requests} requests, for which there was no room: raise log_entries or log_avg_msec"
    )
}

fn few_samples(f: &mut fmt::Formatter<'_>, samples: u64, trusted: Option<f64>) -> fmt::Result {
    match trusted {
        Some(percentile) => write!(
            f,
            "{samples} samples: nothing beyond p{percentile} can be trusted"
        ),
        None => write!(f, "{samples} samples: too few for any percentile"),
    }
}
